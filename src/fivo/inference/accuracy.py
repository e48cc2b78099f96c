"""How good forecasts are: proper scores of draws against what then happened."""

import numpy as np
from jaxtyping import Float


def crps(
    samples: Float[np.ndarray, "sample *shape"], actual: Float[np.ndarray, "*shape"]
) -> Float[np.ndarray, "*shape"]:
    """The continuous ranked probability score E|X - y| - ½ E|X - X'| of draws X, the fair estimate; smaller is better.

    Args:
        samples: Draws of the forecast.
        actual: What happened.

    Returns:
        A score for every entry of `actual`.
    """
    count = samples.shape[0]
    ordered = np.sort(samples, axis=0)
    distance = np.abs(samples - actual).mean(axis=0)
    # Σ_i Σ_j |x_i - x_j| from the sorted draws, without the quadratic table.
    ranks = (2 * np.arange(1, count + 1) - count - 1).reshape(-1, *[1] * (samples.ndim - 1))
    spread = (ranks * ordered).sum(axis=0) / max(count * (count - 1), 1)
    return np.asarray(distance - spread)
