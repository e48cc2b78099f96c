"""How good forecasts are: proper scores of draws against what then happened, and the coverage of intervals."""

import numpy as np
from jaxtyping import Bool, Float, Shaped


def crps(
    samples: Float[np.ndarray, "sample *shape"], actual: Float[np.ndarray, "*shape"]
) -> Float[np.ndarray, "*shape"]:
    """The continuous ranked probability score E|X - y| - ½ E|X - X'| of draws X, the fair estimate; smaller is better.

    Args:
        samples: Draws of the forecast.
        actual: What happened.
    """
    count = samples.shape[0]
    ordered = np.sort(samples, axis=0)
    distance = np.abs(samples - actual).mean(axis=0)
    # Σ_i Σ_j |x_i - x_j| from the sorted draws, without the quadratic table.
    ranks = (2 * np.arange(1, count + 1) - count - 1).reshape(-1, *[1] * (samples.ndim - 1))
    spread = (ranks * ordered).sum(axis=0) / max(count * (count - 1), 1)
    return np.asarray(distance - spread)


def energy_score(
    samples: Float[np.ndarray, "sample *shape dim"], actual: Float[np.ndarray, "*shape dim"]
) -> Float[np.ndarray, "*shape"]:
    """The energy score E‖X - y‖ - ½ E‖X - X'‖ over the last axis: the CRPS of vectors."""
    distance = np.linalg.norm(samples - actual, axis=-1).mean(axis=0)
    half = samples.shape[0] // 2
    pairs = np.linalg.norm(samples[:half] - samples[half : 2 * half], axis=-1).mean(axis=0) if half else 0.0
    return distance - 0.5 * pairs


def coverage(
    lower: Float[np.ndarray, "*shape"],
    upper: Float[np.ndarray, "*shape"],
    actual: Float[np.ndarray, "*shape"],
    seen: Bool[np.ndarray, "*shape"],
) -> float:
    """The share of what happened that lies within its interval.

    Args:
        lower: The intervals' lower ends.
        upper: Their upper ends.
        actual: What happened.
        seen: Where anything was observed.
    """
    inside = (lower <= actual) & (actual <= upper) & seen
    return float(inside.sum() / max(int(seen.sum()), 1))


def log_score(
    samples: Float[np.ndarray, "sample *shape"], actual: Shaped[np.ndarray, "*shape"]
) -> Float[np.ndarray, "*shape"]:
    """The log-density of what happened under a normal with the draws' mean and deviation; larger is better.

    A log-density needs a density, which draws do not have; this is that of the usual normal summary.
    """
    mean, deviation = samples.mean(axis=0), np.maximum(samples.std(axis=0, ddof=1), 1e-12)
    return -0.5 * np.log(2 * np.pi) - np.log(deviation) - 0.5 * ((actual - mean) / deviation) ** 2


def seasonal_naive(
    history: Float[np.ndarray, "time dim"], horizon: int, season: int
) -> tuple[Float[np.ndarray, "horizon dim"], Float[np.ndarray, "horizon dim"]]:
    """The value of one season ago, and the standard deviation of such forecasts so far.

    Args:
        history: What was seen; NaN where missing.
        horizon: How many steps to forecast.
        season: Steps of a season; 1 is the last value.
    """
    season = min(season, len(history))
    filled = history.copy()
    for t in range(1, len(filled)):
        missing = np.isnan(filled[t])
        filled[t, missing] = filled[max(t - season, 0), missing]
    filled = np.where(np.isnan(filled), np.nanmean(history, axis=0), filled)
    last = filled[-season:]
    mean = last[np.arange(horizon) % season]
    differences = filled[season:] - filled[:-season]
    step = np.sqrt(np.maximum(np.nanmean(differences**2, axis=0), 1e-12)) if len(differences) else filled.std(axis=0)
    seasons = np.arange(horizon) // season + 1
    return mean, np.maximum(step, 1e-12) * np.sqrt(seasons)[:, None]
