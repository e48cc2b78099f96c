"""A small model in double precision, as a user's own module."""

import os

import numpy as np

from fivo.data import Dataset
from fivo.models import LinearGaussian

SETTINGS = {
    "particles": 4,
    "batch_size": 4,
    "learning_rate": 0.01,
    "steps": 20,
    "validate_every": 10,
    "log_every": 5,
}


def make(dataset: object) -> LinearGaussian:
    return LinearGaussian(
        transition_matrix=np.array([[0.8]]),
        transition_covariance=np.array([[0.4]]),
        emission_matrix=np.array([[1.0], [0.5]]),
        emission_covariance=np.eye(2),
        initial_mean=np.zeros(1),
        initial_covariance=np.eye(1),
    )


def sequences(count: int = 8) -> list[np.ndarray]:
    """Random walks, of lengths 6 and 7."""
    rng = np.random.default_rng(0)
    return [np.cumsum(rng.normal(size=(6 + i % 2, 2)), axis=0) for i in range(count)]


def data(data_dir: object = None) -> Dataset:
    """Walks that are not the same in a process with OTHER_DATA, as if its host had another file of that name."""
    return Dataset.from_arrays([walk + ("OTHER_DATA" in os.environ) for walk in sequences()])
