"""What inference needs of a trained model."""

from typing import Any

from fivo.bounds import Bound
from fivo.data import Column, Dataset, TableSchema
from fivo.models import SequenceModel
from fivo.resampling import ESSBelow, Never
from fivo.settings import FIVO, SIXO, Exact, Settings
from fivo.smc import ParticleFilter

EXACT_PARTICLES = 100
"""Of the filter for models that were trained without one."""


class Trained:
    """A trained model with its data and settings; a `fivo.Run` is one, and so can any other class be.

    No protocol: asking whether an object follows one would read its model, and with it its files.
    """

    dataset: Dataset
    """The data it was trained on."""
    settings: Settings
    """How it was trained."""

    @property
    def table(self) -> TableSchema | None:
        """How the table was read that it was trained on; None for other data."""
        return self.dataset.table

    @property
    def columns(self) -> tuple[Column, ...]:
        """What the entries of a frame are, and how they were scaled."""
        return self.dataset.columns

    @property
    def model(self) -> SequenceModel:
        """The model with its best parameters."""
        raise NotImplementedError

    @property
    def step(self) -> int:
        """The step that the model is of."""
        raise NotImplementedError

    @property
    def own_bound(self) -> Bound | None:
        """The objective it was trained with, if that has no name here; None if it is not available."""
        return None


def filter_of(run: Trained) -> ParticleFilter:
    """A run's own filter; runs trained with the ELBO or IWAE never resample.

    Args:
        run: The run.

    Returns:
        The filter.
    """
    chosen: Any = run.settings.bound
    if isinstance(chosen, FIVO):
        criterion = ESSBelow(chosen.ess_threshold)
        return ParticleFilter(chosen.particles, chosen.resampling, criterion, twisted=isinstance(chosen, SIXO))
    if isinstance(chosen, Exact):
        return ParticleFilter(EXACT_PARTICLES)
    if chosen.kind in ("elbo", "iwae"):
        return ParticleFilter(1 if chosen.kind == "elbo" else chosen.particles, criterion=Never())
    own = getattr(run.own_bound, "filter", None)
    return own if isinstance(own, ParticleFilter) else ParticleFilter(FIVO().particles)
