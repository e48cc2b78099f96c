"""The particles of one sequence and who descends from whom: the data of the paper's Figure 1."""

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from fivo._scoring import device_batch, weights_dtype
from fivo.errors import InputError
from fivo.inference.trained import Trained, filter_of
from fivo.smc import ParticleFilter


class Lineage(NamedTuple):
    """The particles of one sequence, step by step.

    Args:
        ancestors: [t, i] is the particle of step t that particle i of step t + 1 continues [time, particle].
        weights: Normalised weights before resampling [time, particle].
        resampled: Whether particles were resampled after each step [time].
    """

    ancestors: Int[np.ndarray, "time particle"]
    weights: Float[np.ndarray, "time particle"]
    resampled: Bool[np.ndarray, " time"]


def trace_lineage(run: Trained, split: str, index: int, *, num_particles: int = 12, seed: int = 0) -> Lineage:
    """Run the filter of a run once on one of its sequences, and keep who continues whom.

    Args:
        run: The run.
        split: The split of the sequence.
        index: Its position there.
        num_particles: N.
        seed: Random seed.

    Returns:
        The lineage.
    """
    sequences = run.dataset.splits.get(split, ())
    if not 0 <= index < len(sequences):
        raise InputError(f"the sequence must be SPLIT:INDEX with INDEX below {len(sequences)}, got {split}:{index}.")
    own = filter_of(run)
    pf = ParticleFilter(num_particles, own.resampling, own.criterion)
    batch = device_batch(sequences, np.array([index]), len(sequences[index]), weights_dtype(run.model))
    result = pf(run.model, batch, key=jax.random.key(seed), keep=("log_weights", "ancestors"))
    weights = np.exp(np.asarray(result.record("log_weights")[0], np.float64))
    return Lineage(np.asarray(result.record("ancestors")[0]), weights, np.asarray(result.resampled[0]))
