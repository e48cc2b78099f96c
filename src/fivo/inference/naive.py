"""The seasonal-naive forecast: every value is what it was one season ago, with the spread that this had so far."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from scipy import stats

from fivo.data import TableColumn
from fivo.errors import InputError
from fivo.inference.windows import Forecasts, Windows

SMALLEST = 1e-9
"""Share of a column's own deviation below which a spread is not trusted."""


@dataclass(frozen=True)
class SeasonalNaive:
    """x_t = x_t-m + noise for a season of m rows, estimated at each origin from the rows before it.

    The noise of real columns is normal with the covariance of seasonal differences so far, that of counts is normal and
    rounded. Binaries and categories stay as they were with the share that did so far, and are else drawn from all.

    Args:
        season: Rows of a season; 1 is the last value.
        num_samples: Draws of each window.
        seed: Random seed.
    """

    season: int = 1
    num_samples: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.season, int) or self.season < 1:
            raise InputError(f"season must be a positive integer, got {self.season!r:.60}.")

    def __call__(self, windows: Windows) -> Forecasts:
        """Forecast every window.

        Args:
            windows: The windows; what happened in them is read for its density alone.

        Returns:
            Draws of every window, and the log-density of what happened.
        """
        rng = np.random.default_rng(self.seed)
        past = windows.past
        samples, densities = [], []
        for index, rows in enumerate(past):
            mask = np.ones(rows.shape, bool) if past.masks is None else past.masks[index]
            history = np.where(mask, windows.restored(rows), np.nan)
            drawn, density = self._window(windows, history, windows.actual[index], windows.seen[index], rng)
            samples.append(drawn)
            densities.append(density)
        return Forecasts(np.stack(samples), np.array(densities))

    def _window(
        self,
        windows: Windows,
        history: Float[np.ndarray, "time dim"],
        actual: Float[np.ndarray, "horizon dim"],
        seen: Bool[np.ndarray, "horizon dim"],
        rng: np.random.Generator,
    ) -> tuple[Float[np.ndarray, "sample horizon dim"], float]:
        columns, horizon = windows.schema.values, windows.horizon
        filled = carried(history, self.season, columns)
        differences = filled[self.season :] - filled[: -self.season]
        known = ~np.isnan(history)
        observed = known[self.season :] & known[: -self.season]
        samples = np.empty((self.num_samples, horizon, len(columns)))
        total = 0.0
        reals = [place for place, column in enumerate(columns) if column.kind == "real"]
        if reals:
            deviations = np.array([columns[place].deviation for place in reals])
            covariance = _covariance(differences[:, reals], observed[:, reals], deviations)
            noise = rng.multivariate_normal(np.zeros(len(reals)), covariance, (self.num_samples, horizon))
            samples[:, :, reals] = _walk(filled[-self.season :, reals], noise, self.season)
            total += self._normal(filled[:, reals], actual[:, reals], seen[:, reals], covariance)
        for place, column in enumerate(columns):
            if column.kind == "real":
                continue
            happened = np.where(seen[:, place], actual[:, place], np.nan)
            if column.kind == "count":
                drawn, density = self._count(filled[:, place], differences[:, place], happened, column, rng)
            else:
                drawn, density = self._stays(filled[:, place], happened, column, rng)
            samples[:, :, place], total = drawn, total + density
        return samples, total

    def _normal(self, filled: np.ndarray, actual: np.ndarray, seen: np.ndarray, covariance: np.ndarray) -> float:
        """Each row given those before it, of which the window's own are known by then: the joint density."""
        before = self._before(filled, np.where(seen, actual, np.nan))
        total = 0.0
        for row, mean, there in zip(actual, before, seen, strict=True):
            if there.any():
                part = covariance[np.ix_(there, there)]
                law: Any = stats.multivariate_normal
                total += float(law(mean[there], part, allow_singular=True).logpdf(row[there]))
        return total

    def _before(self, filled: np.ndarray, actual: np.ndarray) -> np.ndarray:
        """What each row of a window was one season before; a missing one as it was a season before that."""
        whole = np.concatenate([filled, actual])
        for t in range(len(filled), len(whole)):
            whole[t] = np.where(np.isnan(whole[t]), whole[t - self._season(filled)], whole[t])
        return whole[len(filled) - self._season(filled) : len(whole) - self._season(filled)]

    def _season(self, filled: np.ndarray) -> int:
        return min(self.season, len(filled))

    def _count(
        self, filled: np.ndarray, differences: np.ndarray, happened: np.ndarray, column: TableColumn,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, float]:  # fmt: skip
        spread = float(np.sqrt(np.mean(differences**2))) if len(differences) else column.deviation
        spread = max(spread, 0.3)  # what is rounded to its own value has some chance to be its neighbours
        noise = rng.normal(0, spread, (self.num_samples, len(happened), 1))
        drawn = np.maximum(np.rint(_walk(filled[-self.season :, None], noise, self.season)), 0)[..., 0]
        mean = self._before(filled[:, None], happened[:, None])[:, 0]
        lower = np.where(happened > 0, stats.norm.cdf(happened - 0.5, mean, spread), 0)
        mass = stats.norm.cdf(happened + 0.5, mean, spread) - lower
        return drawn, float(np.nansum(np.log(np.maximum(mass, 1e-300))))

    def _stays(
        self, filled: np.ndarray, happened: np.ndarray, column: TableColumn, rng: np.random.Generator
    ) -> tuple[np.ndarray, float]:
        kinds = 2 if column.kind == "binary" else len(column.categories)
        stayed = filled[self.season :] == filled[: -self.season]
        stay = (stayed.sum() + 0.5) / (len(stayed) + 1)
        rates = (np.bincount(filled.astype(int), minlength=kinds) + 1 / kinds) / (len(filled) + 1)
        season = self._season(filled)
        state = np.repeat(filled[-season:][None], self.num_samples, axis=0)
        drawn = np.empty((self.num_samples, len(happened)))
        for step in range(len(happened)):
            before = state[:, step % season]
            new = rng.choice(kinds, size=self.num_samples, p=rates / rates.sum())
            drawn[:, step] = state[:, step % season] = np.where(rng.random(self.num_samples) < stay, before, new)
        before = self._before(filled[:, None], happened[:, None])[:, 0]
        there = ~np.isnan(happened)
        mass = stay * (happened == before)[there] + (1 - stay) * rates[happened[there].astype(int)]
        return drawn, float(np.log(mass).sum())


def carried(
    history: Float[np.ndarray, "time dim"], season: int, columns: tuple[TableColumn, ...]
) -> Float[np.ndarray, "time dim"]:
    """A missing value is what it was a season before, or else the nearest known one after, or the mean of train."""
    filled = history.copy()
    for t in range(season, len(filled)):
        filled[t] = np.where(np.isnan(filled[t]), filled[t - season], filled[t])
    for t in range(len(filled) - season - 1, -1, -1):
        filled[t] = np.where(np.isnan(filled[t]), filled[t + season], filled[t])
    means = np.array([0.0 if column.kind in ("binary", "category") else column.mean for column in columns])
    return np.where(np.isnan(filled), means, filled)


def _walk(last: np.ndarray, noise: np.ndarray, season: int) -> np.ndarray:
    """A season that repeats itself, with noise that adds up from season to season: [sample, horizon, dim]."""
    season = min(season, len(last))
    walked = np.empty_like(noise)
    for step in range(noise.shape[1]):
        walked[:, step] = noise[:, step] + (last[step] if step < season else walked[:, step - season])
    return walked


def _covariance(differences: np.ndarray, observed: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    """Of seasonal differences around zero, where all columns were observed; without enough, each by itself."""
    whole = differences[observed.all(axis=1)]
    floor = np.diag((SMALLEST * deviations) ** 2)
    if len(whole) > 2 * len(deviations):
        return whole.T @ whole / len(whole) + floor
    seen = np.where(observed, differences**2, 0).sum(axis=0)
    counts = observed.sum(axis=0)
    return np.diag(np.where(counts > 0, seen / np.maximum(counts, 1), deviations**2)) + floor
