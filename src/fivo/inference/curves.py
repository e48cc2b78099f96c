"""Scores of a model while it is being trained (Figures 2 and 3 of the paper)."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from fivo._building import BOUNDS, build_bound
from fivo._scoring import nats_per_step, score, scoring_plan
from fivo.batch import Batch
from fivo.bounds import ELBO, BoundResult
from fivo.data import Dataset
from fivo.models import SequenceModel
from fivo.settings import Settings

PASSES = 100


class UnresampledKL(eqx.Module):
    """KL(q(z | x) ‖ p(z)) in the place of a bound, by samples along trajectories of q that are never resampled."""

    num_particles: int = eqx.field(static=True)

    def __call__(self, model: SequenceModel, batch: Batch, *, key: Key[Array, "*batch"]) -> BoundResult:
        result = ELBO(self.num_particles)(model, batch, key=key)
        return BoundResult(jnp.sum(result.info.kl, axis=1), result.info)


class Curves:
    """Bounds on a split as a function of the model, for the `probe` of `fivo.training.Watchers`.

    Args:
        settings: Of the run.
        dataset: Its data.
        split: The split to score.
        particles: N of the bounds.
        bounds: Which bounds: "elbo", "iwae", "fivo".
        kl: Whether to measure KL(q‖p) along unresampled trajectories too.
        sequences: How many sequences of the split, from the first; 0 means all.
    """

    def __init__(
        self,
        settings: Settings,
        dataset: Dataset,
        *,
        split: str = "test",
        particles: int = 128,
        bounds: Sequence[str] = BOUNDS,
        kl: bool = False,
        sequences: int = 0,
    ) -> None:
        self.split = split
        self.frames = dataset.split(split)[: sequences or None]
        self.lengths = self.frames.scored_lengths
        self.scores = {name: build_bound(name, particles, settings.bound) for name in bounds}
        if kl:
            self.scores["kl"] = UnresampledKL(particles)
        self.plan = scoring_plan(self.frames.lengths, particles, passes=PASSES)

    def __call__(self, model: SequenceModel) -> dict[str, float]:
        """Score a model, with the same random numbers every time.

        Args:
            model: The model.

        Returns:
            Nats per timestep by names such as `test_fivo` and `test_kl`.
        """
        return {
            f"{self.split}_{name}": nats_per_step(
                score(model, bound, self.frames, self.plan, key=jax.random.key(0)), self.lengths
            )
            for name, bound in self.scores.items()
        }
