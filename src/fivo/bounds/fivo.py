"""The filtering variational objective (Definition 2 of the paper)."""

import equinox as eqx
from jaxtyping import Array, Key

from fivo.batch import Batch
from fivo.bounds.result import BoundResult, bound_info
from fivo.models.contract import SequenceModel
from fivo.resampling import Criterion, ESSBelow, Scheme, get_scheme
from fivo.smc import filter
from fivo.smc.step import check_particles


class FIVO(eqx.Module):
    """E[log p̂_N] of a particle filter; resampling when ESS <= N/2 by default.

    `jax.grad` follows the paper's estimator ∇ log p̂_N with reparameterised latents, resampling terms dropped.
    """

    num_particles: int = eqx.field(static=True)
    resampling: str | Scheme = eqx.field(static=True, default="multinomial")
    criterion: Criterion = ESSBelow(0.5)

    def __check_init__(self) -> None:
        check_particles(self.num_particles)
        get_scheme(self.resampling)

    def __call__(self, model: SequenceModel, batch: Batch, *, key: Key[Array, "*batch"]) -> BoundResult:
        result = filter(
            model,
            batch,
            num_particles=self.num_particles,
            resampling=self.resampling,
            criterion=self.criterion,
            key=key,
            keep=(),
        )
        return BoundResult(result.log_evidence, bound_info(result))
