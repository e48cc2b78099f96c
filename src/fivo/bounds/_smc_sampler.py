"""The objective of an SMC sampler over temperatures (Appendix of the paper; Del Moral, Doucet and Jasra 2006)."""

from typing import Any

import equinox as eqx
from jaxtyping import Array, Key

from fivo.bounds._result import BoundResult, bound_info
from fivo.bounds.temperatures import Temperatures
from fivo.models import SequenceModel
from fivo.resampling import AnyScheme, Criterion, ESSBelow
from fivo.smc import Kernel, ParticleFilter, anneal


class SMCSampler(eqx.Module):
    """E[log p̂_N] of the same filter as FIVO's, run along temperatures; the time of its `info` is the temperature.

    Args:
        num_particles: N.
        temperatures: where annealing goes from 0 to 1, such as `temperatures.linear(8)`.
        kernel: how trajectories move at each temperature, such as `HMC(0.1, 5)`.
        resampling: how ancestors are drawn, as for `ParticleFilter`.
        criterion: when to resample, as for `ParticleFilter`.
    """

    filter: ParticleFilter
    temperatures: Temperatures
    kernel: Kernel

    def __init__(
        self,
        num_particles: int,
        temperatures: Temperatures,
        kernel: Kernel,
        resampling: str | AnyScheme = "multinomial",
        criterion: Criterion = ESSBelow(0.5),
    ) -> None:
        self.filter = ParticleFilter(num_particles, resampling, criterion)
        self.temperatures, self.kernel = temperatures, kernel

    def __call__(self, model: SequenceModel, batch: Any, *, key: Key[Array, "*batch"]) -> BoundResult:
        """One draw of log p̂_N for every sequence.

        Args:
            model: the model.
            batch: a `Batch`, an array [time, dim] or [batch, time, dim], or a list of [time, dim] arrays.
            key: one random key, or one for each sequence.

        Returns:
            One draw per sequence, and what happened along time.
        """
        betas = self.temperatures.betas()
        result = anneal(self.filter, model, batch, betas=betas, kernel=self.kernel, key=key)
        return BoundResult(result.log_evidence, bound_info(result))
