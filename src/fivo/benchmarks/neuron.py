"""The Hodgkin–Huxley neuron of Lawson et al. (2022): its current is learned from a voltage seen every 50 steps."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from fivo.batch import Batch
from fivo.bounds import FIVO
from fivo.data import Dataset
from fivo.models import (
    HeldPrior,
    HodgkinHuxley,
    NextObservationTwist,
    Proposed,
    SequenceModel,
    Twisted,
    simulate,
)

CURRENT, START = 13.0, 26.0
"""The true one in µA/cm², and the wrong one that training begins with."""
NUM_STEPS, EVERY = 2001, 50
NUM_TRAIN, NUM_VALID, NUM_TEST = 400, 4, 20
PARTICLES = 256
UNIT = 10.0
"""Millivolts: the unit of voltage in the published bounds, which are densities."""


def data(data_dir: str | Path | None = None) -> Dataset:
    """Simulated neurons, of which one frame in fifty is seen.

    Args:
        data_dir: not read; the data are drawn.
    """
    drawn = jax.jit(jax.vmap(lambda key: simulate(HodgkinHuxley(CURRENT), NUM_STEPS, key=key).observations))
    splits = []
    for number, count in enumerate((NUM_TRAIN, NUM_VALID, NUM_TEST)):
        x = np.array(drawn(jax.random.split(jax.random.key(number), count)))
        x[:, np.arange(NUM_STEPS) % EVERY != 0] = np.nan
        splits.append(x)
    return Dataset.from_arrays(*splits, name="neuron", kinds="real")


def model(dataset: Dataset) -> SequenceModel:
    """The neuron with a wrong current, draws from the prior, and a twist that forecasts the next observation.

    Args:
        dataset: not read.
    """
    latents = ((-60.0, 0.0, -1.5, -0.5), (25.0, 1.0, 2.5, 1.5))
    twist = NextObservationTwist(latents, ((-60.0,), (25.0,)), 32, longest=EVERY, key=jax.random.key(0))
    return Twisted(Proposed(HodgkinHuxley(START), HeldPrior()), twist)


def bootstrap(model: Any, batch: Batch, *, key: Key[Array, "*batch"]) -> Float[Array, " batch"]:
    """The bootstrap filter with 256 particles, of voltages in units of 10 mV.

    Args:
        model: the trained model.
        batch: the sequences.
        key: a random key.

    Returns:
        Nats of every sequence.
    """
    seen = batch.lengths if batch.mask is None else jnp.sum(batch.mask, axis=(1, 2))
    found = FIVO(PARTICLES)(model.bare, batch, key=key).log_evidence
    return found + seen * jnp.log(UNIT)


def true_model(model: Any, batch: Batch, *, key: Key[Array, "*batch"]) -> Float[Array, " batch"]:
    """The same of the neuron that the data were drawn from.

    Args:
        model: not read.
        batch: the sequences.
        key: a random key.

    Returns:
        Nats of every sequence.
    """
    return bootstrap(HodgkinHuxley(CURRENT), batch, key=key)


def current_error(model: Any, batch: Batch, *, key: Key[Array, "*batch"]) -> Float[Array, " batch"]:
    """The relative error of the current.

    Args:
        model: the trained model.
        batch: the sequences.
        key: not used.

    Returns:
        The same number for every sequence.
    """
    return jnp.broadcast_to(jnp.abs(model.bare.current / CURRENT - 1), batch.lengths.shape)
