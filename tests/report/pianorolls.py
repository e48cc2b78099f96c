"""Pianorolls that several tests of this folder use."""

import numpy as np


def random_roll(num_steps: int, seed: int = 0) -> np.ndarray:
    """Some notes that stay for a while, as music has, and not one step of noise after the other."""
    rng = np.random.default_rng(seed)
    return np.repeat(rng.random((-(-num_steps // 3), 88)) < 0.05, 3, axis=0)[:num_steps].astype(np.uint8)
