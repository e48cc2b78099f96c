"""Backtests: forecasts from origins within held-out rows, by models that were fitted before, on the same rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import numpy as np

from fivo.inference.forecast_scores import scores_of, window_scores
from fivo.inference.forecasting import forecast_rows
from fivo.inference.series import SeriesModel
from fivo.inference.windows import Forecaster, Forecasts, Windows
from fivo.models import LinearGaussian
from fivo.runs import ForecastScores, WindowScores
from fivo.smc import ParticleFilter


@dataclass(frozen=True)
class ModelForecaster:
    """Forecasts of a trained model; its parameters stay as they are, the rows before an origin are context.

    Its log-density of a window is that of the rows one after the other, log p(x_o+1 | x_1:o) + log p(x_o+2 | x_1:o+1)
    + ..., which is the joint one: exact for `LinearGaussian`, a particle filter's estimate for others.

    Args:
        used: The model, with its number of particles and its random key.
        num_samples: Draws of each window.
    """

    used: SeriesModel
    num_samples: int = 200

    def __call__(self, windows: Windows) -> Forecasts:
        """Forecast every window.

        Args:
            windows: The windows; what happened in them is read for its density alone.

        Returns:
            Draws of every window, and the log-density of what happened.
        """
        return Forecasts(windows.restored(self._samples(windows)), self._densities(windows))

    def _samples(self, windows: Windows) -> Any:
        found: list[Any] = [None] * len(windows.places)
        for batch, keys, indices in self.used.chunks(windows.past, "forecasting"):
            inputs = None if windows.inputs is None else windows.inputs[np.maximum(indices, 0)]
            drawn = forecast_rows(
                self.used.model,
                batch,
                windows.horizon,
                inputs=inputs,
                num_samples=self.num_samples,
                num_particles=self.used.num_particles,
                key=keys,
            )
            for slot, index in enumerate(indices):
                if index >= 0:
                    found[index] = drawn[slot]
        return np.stack(found)

    def _densities(self, windows: Windows) -> Any:
        model, pf = self.used.model, ParticleFilter(self.used.num_particles, "systematic")

        def increments(batch: Any, keys: Any) -> tuple[np.ndarray, ...]:
            if isinstance(model, LinearGaussian):
                return (np.asarray(model.log_increments(batch), np.float64),)
            keys = jax.vmap(lambda key: jax.random.fold_in(key, 1))(keys)
            return (np.asarray(pf(model, batch, key=keys).log_increments, np.float64),)

        (rows,) = self.used.each(windows.through, "scoring", increments)
        ends = np.cumsum([0, *windows.through.lengths])
        joint = np.array([rows[end - windows.horizon : end].sum() for _, end in pairwise(ends)])
        return joint + windows.offsets


def backtest(
    windows: Windows,
    forecasters: Mapping[str, Forecaster],
    *,
    labels: Sequence[tuple[str, str]] | None = None,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> tuple[dict[str, ForecastScores], list[WindowScores]]:
    """Score several forecasters on the same windows.

    Args:
        windows: The windows (`make_windows`).
        forecasters: What to score, by its name.
        labels: What to call the series and the origin of each window; by default their numbers.
        progress: Called with a forecaster's name, those done and their number.

    Returns:
        The scores of every forecaster over all windows, and those of every window.
    """
    named = labels or [(str(place.series), str(place.origin)) for place in windows.places]
    scores, each = {}, []
    for done, (name, forecaster) in enumerate(forecasters.items()):
        progress(f"backtesting {name}", done, len(forecasters))
        made = forecaster(windows)
        scores[name] = scores_of(windows, made)
        each += window_scores(windows, made, name, named)
    progress("backtesting", len(forecasters), len(forecasters))
    return scores, each
