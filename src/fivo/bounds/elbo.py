"""The evidence lower bound (Eq. 1 of the paper)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Key

from fivo.batch import Batch
from fivo.bounds.result import BoundResult, bound_info
from fivo.models.contract import SequenceModel
from fivo.resampling import Never
from fivo.smc import filter
from fivo.smc.step import check_particles


class ELBO(eqx.Module):
    """E[log p(x, z) - log q(z | x)], averaged over `num_particles` independent latents."""

    num_particles: int = eqx.field(static=True, default=1)

    def __check_init__(self) -> None:
        check_particles(self.num_particles)

    def __call__(self, model: SequenceModel, batch: Batch, *, key: Key[Array, "*batch"]) -> BoundResult:
        result = filter(model, batch, num_particles=self.num_particles, criterion=Never(), key=key, keep=())
        # A particle's own log-weight is its normalised one put back on the scale of the sum: log w + log N + log p̂.
        relative = result.particles.log_weights + jnp.log(jnp.asarray(self.num_particles, result.ess.dtype))
        return BoundResult(result.log_evidence + jnp.mean(relative, axis=1), bound_info(result))
