"""Soft resampling: ancestors from a mixture of the weights with the uniform law (Karkus, Hsu and Lee 2018)."""

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Key, PyTree

from fivo.errors import InputError
from fivo.resampling._differentiable import DifferentiableScheme, Resampled, pick
from fivo.resampling._multinomial import multinomial
from fivo.weights import normalize


class Soft(DifferentiableScheme):
    """Ancestors from m = α w + (1 - α) / N; each continues with the weight w / (N m), which carries derivatives.

    The weights make up for the mixture, so p̂ stays unbiased and its logarithm a lower bound. They are not normalised:
    their sum belongs to the next increment.

    Args:
        mixture: α, from 0 to 1; 1 is multinomial resampling.
    """

    mixture: float = eqx.field(static=True, default=0.5)

    def __check_init__(self) -> None:
        if not 0 <= self.mixture <= 1:
            raise InputError(f"Soft must be given a mixture from 0 to 1, got {self.mixture!r:.60}.")

    def resample(self, key: Key[Array, ""], log_weights: Float[Array, " particle"], state: PyTree) -> Resampled:
        """Move the particles, as `DifferentiableScheme.resample` says.

        Args:
            key: a random key.
            log_weights: normalised log-weights [particle].
            state: the particles' states [particle, ...].

        Returns:
            The particles that the next step starts from.
        """
        size = log_weights.shape[0]
        mixed = self.mixture * jnp.exp(log_weights) + (1 - self.mixture) / size
        ancestors = multinomial(key, normalize(lax.stop_gradient(jnp.log(mixed)))[0], size)
        corrected = log_weights[ancestors] - jnp.log(mixed[ancestors]) - jnp.log(jnp.asarray(size, mixed.dtype))
        return Resampled(ancestors, pick(state, ancestors), corrected)
