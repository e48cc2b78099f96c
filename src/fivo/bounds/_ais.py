"""The annealed importance sampling objective (Appendix of the paper; Neal 2001)."""

from fivo.bounds._smc_sampler import SMCSampler
from fivo.bounds.temperatures import Temperatures
from fivo.resampling import Never
from fivo.smc import Kernel


class AIS(SMCSampler):
    """E[log of N averaged annealed weights]: an SMC sampler that never resamples.

    Args:
        num_particles: N, independent chains whose weights are averaged. The paper has one; its N is the number of
            temperature steps.
        temperatures: where annealing goes from 0 to 1, such as `temperatures.linear(8)`.
        kernel: how trajectories move at each temperature, such as `HMC(0.1, 5)`.

    Works on whole trajectories of a sequential model, and on plain latent variable models as sequences of one frame.
    The gradient is exact with `Leapfrog` and `Copy`, and biased with `HMC` and `RandomWalk`, whose decision to accept
    it leaves out.
    """

    def __init__(self, num_particles: int, temperatures: Temperatures, kernel: Kernel) -> None:
        super().__init__(num_particles, temperatures, kernel, criterion=Never())
