"""The objective of an SMC sampler over temperatures (Appendix of the paper; Del Moral, Doucet and Jasra 2006)."""

import equinox as eqx
from jaxtyping import Array, Key

from fivo.batch import Batch
from fivo.bounds.result import BoundResult, bound_info
from fivo.bounds.temperatures import Temperatures
from fivo.models.contract import SequenceModel
from fivo.resampling import Criterion, ESSBelow, Scheme, get_scheme
from fivo.smc.kernels import Kernel
from fivo.smc.step import check_particles
from fivo.smc.tempering import anneal


class SMCSampler(eqx.Module):
    """E[log p̂_N] of the same filter as FIVO's, run along temperatures; the time of its `info` is the temperature."""

    num_particles: int = eqx.field(static=True)
    temperatures: Temperatures
    kernel: Kernel
    resampling: str | Scheme = eqx.field(static=True, default="multinomial")
    criterion: Criterion = ESSBelow(0.5)

    def __check_init__(self) -> None:
        check_particles(self.num_particles)
        get_scheme(self.resampling)

    def __call__(self, model: SequenceModel, batch: Batch, *, key: Key[Array, "*batch"]) -> BoundResult:
        result = anneal(
            model,
            batch,
            betas=self.temperatures.betas(),
            kernel=self.kernel,
            num_particles=self.num_particles,
            key=key,
            resampling=self.resampling,
            criterion=self.criterion,
        )
        return BoundResult(result.log_evidence, bound_info(result))
