"""Stop-gradient resampling: weights remember what they were drawn with (Ścibior and Wood 2021)."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Key, PyTree

from fivo.resampling._differentiable import DifferentiableScheme, Resampled, pick, uniform_weights
from fivo.resampling._schemes import draw_ancestors


class StopGradient(DifferentiableScheme):
    """Any scheme with expected offspring N w; after it every weight is w / (N ⊥w), where ⊥ hides from derivatives.

    Values are the scheme's own. The derivative of p̂ becomes unbiased for that of p(x): by linearity, since the average
    over ancestors of ∇w / w is Σ ∇w.

    Args:
        scheme: how ancestors are drawn: a function of (key, log_weights, num_draws).
    """

    scheme: Any = eqx.field(static=True)

    def resample(self, key: Key[Array, ""], log_weights: Float[Array, " particle"], state: PyTree) -> Resampled:
        """Move the particles, as `DifferentiableScheme.resample` says.

        Args:
            key: a random key.
            log_weights: normalised log-weights [particle].
            state: the particles' states [particle, ...].

        Returns:
            The particles that the next step starts from.
        """
        held = lax.stop_gradient(log_weights)
        ancestors = draw_ancestors(self.scheme, key, held, log_weights.shape[0])
        slope = jnp.where(jnp.isneginf(held), 0, log_weights - jnp.where(jnp.isneginf(held), 0, held))
        return Resampled(ancestors, pick(state, ancestors), uniform_weights(log_weights) + slope[ancestors])
