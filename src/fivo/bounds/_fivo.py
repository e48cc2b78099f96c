"""The filtering variational objective (Definition 2 of the paper)."""

from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import Array, Key

from fivo.batch import as_batch
from fivo.bounds._estimate import estimate
from fivo.bounds._result import BoundResult, bound_info
from fivo.errors import InputError
from fivo.gradients import Gradient, get_gradient
from fivo.models import SequenceModel
from fivo.resampling import AnyScheme, Criterion
from fivo.smc import ParticleFilter


class FIVO(eqx.Module):
    """E[log p̂_N] of a particle filter.

    Args:
        num_particles: N.
        resampling: how ancestors are drawn, as for `ParticleFilter`; multinomial by default.
        criterion: when to resample, as for `ParticleFilter`; by default when ESS <= N/2.
        gradient: what `jax.grad` of the bound follows, by name or as a `fivo.gradients.Gradient`; by default the
            paper's estimator ∇ log p̂_N with reparameterized latents, resampling terms dropped.
        filter: a `ParticleFilter`, in place of the first three.
    """

    twisted: ClassVar[bool] = False
    """Whether the filter's targets look ahead; one that is given may be twisted in any case."""

    filter: ParticleFilter
    gradient: Gradient

    def __init__(
        self,
        num_particles: int | None = None,
        resampling: str | AnyScheme | None = None,
        criterion: Criterion | None = None,
        *,
        gradient: str | Gradient = "pathwise",
        filter: ParticleFilter | None = None,
    ) -> None:
        given = {"num_particles": num_particles, "resampling": resampling, "criterion": criterion}
        given = {name: value for name, value in given.items() if value is not None}
        if filter is None and num_particles is None:
            raise InputError(f"{type(self).__name__} must be given num_particles, or a ParticleFilter as filter=.")
        if filter is not None and not isinstance(filter, ParticleFilter):
            raise InputError(f"filter must be a ParticleFilter, got {filter!r:.60}.")
        if filter is not None and given:
            raise InputError(f"{type(self).__name__} must be given either filter= or {' and '.join(given)}, got both.")
        if filter is None:
            filter = ParticleFilter(**given, twisted=self.twisted)  # pyright: ignore[reportArgumentType]
        if self.twisted and not filter.twisted:
            raise InputError(
                f"filter must be a ParticleFilter with twisted=True for {type(self).__name__}, got one without; use "
                "FIVO."
            )
        self.filter = filter
        self.gradient = get_gradient(gradient)
        self.gradient.check(self.filter)

    @property
    def num_particles(self) -> int:
        """N."""
        return self.filter.num_particles

    def __call__(self, model: SequenceModel, batch: Any, *, key: Key[Array, "*batch"]) -> BoundResult:
        """One draw of log p̂_N for every sequence.

        Args:
            model: the model.
            batch: a `Batch`, an array [time, dim] or [batch, time, dim], or a list of [time, dim] arrays.
            key: one random key, or one for each sequence.

        Returns:
            One draw per sequence, and what happened along time.
        """
        log_evidence, result = estimate(self.filter, self.gradient, model, as_batch(batch), key)
        return BoundResult(log_evidence, bound_info(result))
