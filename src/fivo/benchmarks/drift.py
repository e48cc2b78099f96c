"""The Gaussian drift diffusion of Lawson et al. (2022): one observation after ten steps, everything known exactly."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from fivo.batch import Batch
from fivo.bounds import FIVO, SIXO
from fivo.data import Dataset
from fivo.models import DriftDiffusion, DriftTwist, SequenceModel, Twisted

NUM_STEPS, NUM_SERIES, DRIFT = 10, 1000, 1.0
PARTICLES = 128
"""Of the evaluation, as theirs."""


def data(data_dir: str | Path | None = None) -> Dataset:
    """A thousand series of drift 1; all splits are these series, as the paper has no others.

    Args:
        data_dir: not read; the data are drawn.
    """
    frames = np.full((NUM_SERIES, NUM_STEPS, 1), np.nan, np.float32)
    frames[:, -1, 0] = _drawn()
    return Dataset.from_arrays(frames, frames, frames, name="drift", kinds="real")


def model(dataset: Dataset) -> SequenceModel:
    """Drift, linear proposal and twist, all to be learned, from a drift of zero.

    Args:
        dataset: not read.
    """
    return Twisted(DriftDiffusion(NUM_STEPS, 0.0, proposal="learned"), DriftTwist(NUM_STEPS))


def fivo_gap(model: Any, batch: Batch, *, key: Key[Array, "*batch"]) -> Float[Array, " batch"]:
    """The best evidence less FIVO with 128 particles.

    Args:
        model: the trained model.
        batch: the series.
        key: a random key.

    Returns:
        Nats of every series.
    """
    return _best_evidence(model, batch) - FIVO(PARTICLES)(model, batch, key=key).log_evidence


def sixo_gap(model: Any, batch: Batch, *, key: Key[Array, "*batch"]) -> Float[Array, " batch"]:
    """The best evidence less SIXO with 128 particles.

    Args:
        model: the trained model.
        batch: the series.
        key: a random key.

    Returns:
        Nats of every series.
    """
    return _best_evidence(model, batch) - SIXO(PARTICLES)(model, batch, key=key).log_evidence


def drift_error(model: Any, batch: Batch, *, key: Key[Array, "*batch"]) -> Float[Array, " batch"]:
    """How far the drift is from the best one for the data, which is the mean of x over T + 1.

    Args:
        model: the trained model.
        batch: the series.
        key: not used.

    Returns:
        The same number for every series.
    """
    return jnp.broadcast_to(jnp.abs(model.bare.drift - BEST_DRIFT), batch.lengths.shape)


def _drawn() -> Float[np.ndarray, " series"]:
    noise = np.random.default_rng(0).standard_normal(NUM_SERIES)
    return (NUM_STEPS + 1) * DRIFT + np.sqrt(NUM_STEPS + 1) * noise


BEST_DRIFT = float(np.mean(_drawn())) / (NUM_STEPS + 1)


def _best_evidence(model: Any, batch: Batch) -> Float[Array, " batch"]:
    return DriftDiffusion(NUM_STEPS, jnp.asarray(BEST_DRIFT, model.bare.drift.dtype)).log_evidence(batch)
