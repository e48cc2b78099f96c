"""The evidence lower bound (Eq. 1 of the paper)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Key

from fivo.batch import Batch
from fivo.bounds.fivo import FIVO
from fivo.bounds.result import BoundResult, bound_info
from fivo.errors import InputError
from fivo.gradients import DoublyReparameterised, Gradient, Pathwise, Score, get_gradient
from fivo.gradients.score import first_copies, independent_copies
from fivo.models.contract import SequenceModel
from fivo.resampling import Never
from fivo.smc.step import check_particles


class ELBO(eqx.Module):
    """E[log p(x, z) - log q(z | x)], averaged over `num_particles` independent latents."""

    num_particles: int = eqx.field(static=True, default=1)
    gradient: Gradient = eqx.field(converter=get_gradient, default=Pathwise(), kw_only=True)

    def __check_init__(self) -> None:
        check_particles(self.num_particles)
        if isinstance(self.gradient, DoublyReparameterised):
            raise InputError(
                "got the doubly-reparameterised gradient for the ELBO, whose samples have equal weights; use "
                "gradient='sticking-the-landing', which is unbiased for it."
            )
        self._fivo  # noqa: B018 - refuses gradients that mean nothing here

    @property
    def _fivo(self) -> FIVO:
        """Samples that are scored are filters of one particle each: what follows a latent is its own weight."""
        size = 1 if isinstance(self.gradient, Score) else self.num_particles
        return FIVO(size, criterion=Never(), gradient=self.gradient)

    def __call__(self, model: SequenceModel, batch: Batch, *, key: Key[Array, "*batch"]) -> BoundResult:
        if isinstance(self.gradient, Score):
            copied, keys = independent_copies(batch, key, self.num_particles)
            result = self._fivo(model, copied, key=keys)
            return BoundResult(*first_copies(result.log_evidence, result.info, self.num_particles))
        log_evidence, result = self.gradient(self._fivo.setting, model, batch, key)
        # A particle's own log-weight is its normalised one put back on the scale of the sum: log w + log N + log p̂.
        relative = result.particles.log_weights + jnp.log(jnp.asarray(self.num_particles, result.ess.dtype))
        return BoundResult(log_evidence + jnp.mean(relative, axis=1), bound_info(result))
