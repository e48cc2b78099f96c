"""The annealed importance sampling objective (Appendix of the paper; Neal 2001)."""

import equinox as eqx
from jaxtyping import Array, Key

from fivo.batch import Batch
from fivo.bounds.result import BoundResult
from fivo.bounds.smc_sampler import SMCSampler
from fivo.bounds.temperatures import Temperatures
from fivo.models.contract import SequenceModel
from fivo.resampling import Never
from fivo.smc.kernels import Kernel
from fivo.smc.step import check_particles


class AIS(eqx.Module):
    """E[log of `num_particles` averaged annealed weights]: an SMC sampler that never resamples.

    The paper's has one chain; its N is the number of temperature steps. Works on whole trajectories of a sequential
    model, and on plain latent variable models as sequences of one frame. The gradient is exact with `Leapfrog` and
    `Copy`, and biased with `HMC` and `RandomWalk`, whose decision to accept it leaves out.
    """

    num_particles: int = eqx.field(static=True)
    temperatures: Temperatures
    kernel: Kernel

    def __check_init__(self) -> None:
        check_particles(self.num_particles)

    def __call__(self, model: SequenceModel, batch: Batch, *, key: Key[Array, "*batch"]) -> BoundResult:
        return SMCSampler(self.num_particles, self.temperatures, self.kernel, criterion=Never())(model, batch, key=key)
