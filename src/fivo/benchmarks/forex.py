"""Stochastic volatility of 22 currencies, as Lawson et al. (2022) have it: one sequence of monthly log-returns."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from fivo.batch import Batch
from fivo.bounds import FIVO
from fivo.data import Dataset, search_path
from fivo.errors import InputError
from fivo.models import ProductProposal, Proposed, SequenceModel, StochasticVolatility

FILE = "forex/monthly_rates.tsv"
NUM_TRAIN, NUM_RETURNS = 119, 173


def data(data_dir: str | Path | None = None) -> Dataset:
    """Log-returns of 22 rates to the dollar: the first 119 train, and choose the step too; the test is the last 55.

    The published test set has the last 54, or 55 to judge by its scores: the test here begins with the last return of
    train, which `bootstrap` leaves out and `bootstrap_of_55` does not.

    Args:
        data_dir: where to look first for `forex/monthly_rates.tsv`: a line of names, and one of rates for every month.
    """
    places = [place / FILE for place in search_path(data_dir)]
    found = next((place for place in places if place.exists()), None)
    if found is None:
        raise InputError(
            f"{FILE}, monthly rates with a line of names and currencies across, must be in one of "
            f"{', '.join(str(place.parent.parent) for place in places)}, got no such file; use --data-dir."
        )
    names = found.read_text().splitlines()[0].split("\t")
    returns = np.diff(np.log(np.loadtxt(found, skiprows=1, delimiter="\t")), axis=0).astype(np.float32)
    if len(returns) != NUM_RETURNS:
        raise InputError(f"{str(found)!r} must have {NUM_RETURNS + 1} months, got {len(returns) + 1}.")
    train, test = returns[:NUM_TRAIN], returns[NUM_TRAIN - 1 :]
    return Dataset.from_arrays([train], [train], [test], name="forex", columns=names, kinds="real")


def model(dataset: Dataset) -> SequenceModel:
    """μ, φ, β and Q to be learned, with a proposal that has a free normal factor for every month of train.

    It starts as theirs does, at μ = 0, φ = 0.1, Q = 1 and factors N(0, 1), but for β, which is the returns' deviation.

    Args:
        dataset: from `data`.
    """
    train = np.asarray(dataset.split("train")[0], np.float32)
    months, currencies = train.shape
    every = jnp.ones(currencies)
    volatility = StochasticVolatility(
        mean=0 * every,
        persistence=0.1 * every,
        scale=every,
        emission_scale=jnp.asarray(train.std(axis=0)),
        stationary=False,
    )
    return Proposed(volatility, ProductProposal(months, currencies))


PARTICLES = 2048


def bootstrap(model: Any, batch: Batch, *, key: Key[Array, "*batch"]) -> Float[Array, " batch"]:
    """The bootstrap filter with 2,048 particles on the last 54 returns.

    Args:
        model: the trained model.
        batch: the test split.
        key: a random key.

    Returns:
        Nats of every sequence.
    """
    return bootstrap_of_55(model, Batch(batch.observations[:, 1:], batch.lengths - 1), key=key)


def bootstrap_of_55(model: Any, batch: Batch, *, key: Key[Array, "*batch"]) -> Float[Array, " batch"]:
    """The bootstrap filter with 2,048 particles, without the proposal and the twist, on all that it is given.

    Args:
        model: the trained model.
        batch: the test split, of 55 returns.
        key: a random key.

    Returns:
        Nats of every sequence.
    """
    return FIVO(PARTICLES)(model.bare, batch, key=key).log_evidence
