"""How good forecasts are: proper scores of draws against what then happened.

Every score is estimated fairly: its expectation over the draws is that of the forecast they come from, so that few
draws are not punished. References: Gneiting and Raftery, Strictly proper scoring rules, prediction, and estimation
(2007); Ferro, Fair scores for ensemble forecasts (2014).
"""

import numpy as np
from jaxtyping import Bool, Float
from scipy.spatial.distance import pdist


def crps(
    samples: Float[np.ndarray, "sample *shape"], actual: Float[np.ndarray, "*shape"]
) -> Float[np.ndarray, "*shape"]:
    """The continuous ranked probability score E|X - y| - ½ E|X - X'| of draws X, the fair estimate; smaller is better.

    Args:
        samples: Draws of the forecast.
        actual: What happened.

    Returns:
        A score for every entry of `actual`, in its units; of zeros and ones it is the Brier score (p - y)².
    """
    count = samples.shape[0]
    ordered = np.sort(samples, axis=0)
    distance = np.abs(samples - actual).mean(axis=0)
    # Σ_i Σ_j |x_i - x_j| from the sorted draws, without the quadratic table.
    ranks = (2 * np.arange(1, count + 1) - count - 1).reshape(-1, *[1] * (samples.ndim - 1))
    spread = (ranks * ordered).sum(axis=0) / max(count * (count - 1), 1)
    return np.asarray(distance - spread)


def energy_score(
    samples: Float[np.ndarray, "sample *shape dim"],
    actual: Float[np.ndarray, "*shape dim"],
    seen: Bool[np.ndarray, "*shape dim"] | None = None,
) -> Float[np.ndarray, "*shape"]:
    """The energy score E‖X - y‖ - ½ E‖X - X'‖ of vectors over the last axis: the CRPS of many columns at once.

    Args:
        samples: Draws of the forecast.
        actual: What happened.
        seen: True where an entry was observed; a vector is scored by the entries that were.

    Returns:
        A score for every vector; NaN where nothing of one was observed.
    """
    dim = actual.shape[-1]
    flat, happened = samples.reshape(len(samples), -1, dim), actual.reshape(-1, dim)
    known = np.ones(happened.shape, bool) if seen is None else seen.reshape(-1, dim)
    scores = np.full(len(happened), np.nan)
    for place in np.flatnonzero(known.any(axis=1)):
        drawn, target = flat[:, place, known[place]], happened[place, known[place]]
        spread = pdist(drawn).mean() if len(drawn) > 1 else 0.0
        scores[place] = np.linalg.norm(drawn - target, axis=1).mean() - 0.5 * spread
    return scores.reshape(actual.shape[:-1])


def shares(samples: Float[np.ndarray, "sample *shape"], categories: int) -> Float[np.ndarray, "*shape category"]:
    """How often the draws are each of the categories 0 … K - 1."""
    return np.stack([(samples == k).mean(axis=0) for k in range(categories)], axis=-1)


def brier(
    samples: Float[np.ndarray, "sample *shape"], actual: Float[np.ndarray, "*shape"], categories: int
) -> Float[np.ndarray, "*shape"]:
    """The Brier score Σ_k (p_k - 1[y = k])² of categories, from 0 to 2, the fair estimate; smaller is better.

    Args:
        samples: Draws of the forecast, as numbers of categories.
        actual: The categories that happened.
        categories: How many there are.

    Returns:
        A score for every entry of `actual`.
    """
    count, p = samples.shape[0], shares(samples, categories)
    happened = actual[..., None] == np.arange(categories)
    return np.asarray((((p - happened) ** 2) - p * (1 - p) / max(count - 1, 1)).sum(axis=-1))


def log_mass(
    samples: Float[np.ndarray, "sample *shape"], actual: Float[np.ndarray, "*shape"], categories: int
) -> Float[np.ndarray, "*shape"]:
    """The log-probability of the category that happened; larger is better.

    Probabilities are (n_k + 1/K) / (n + 1) for a category that n_k of n draws have: what no draw has is rare, not
    impossible.

    Args:
        samples: Draws of the forecast, as numbers of categories.
        actual: The categories that happened.
        categories: How many there are.

    Returns:
        A log-probability for every entry of `actual`.
    """
    count, p = samples.shape[0], shares(samples, categories)
    chosen = np.take_along_axis(p, actual.astype(int)[..., None], axis=-1)[..., 0]
    return np.asarray(np.log((chosen * count + 1 / categories) / (count + 1)))


def is_covered(
    samples: Float[np.ndarray, "sample *shape"], actual: Float[np.ndarray, "*shape"], level: float
) -> Bool[np.ndarray, "*shape"]:
    """Whether what happened lies in the central interval of the draws that should hold it with probability `level`.

    The interval's ends are the order statistics at (n + 1) p, which hold p of the forecast on average at any n.

    Args:
        samples: Draws of the forecast.
        actual: What happened.
        level: The probability of the interval.

    Returns:
        A truth for every entry of `actual`.
    """
    ends = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2], axis=0, method="weibull")
    return np.asarray((ends[0] <= actual) & (actual <= ends[1]))
