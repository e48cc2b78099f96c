"""Alarms with a false-alarm rate that is met: p-values by rank among data that is known to be ordinary."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Bool, Float

from fivo.errors import InputError
from fivo.inference.context import Context, read_context
from fivo.inference.results import QUANTILES, Result, frame_of, labelled
from fivo.inference.rowfilters import Rows
from fivo.inference.rowwise import restored
from fivo.inference.series import SeriesModel
from fivo.inference.trained import Trained
from fivo.report import Track, plot_anomaly

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Calibration:
    """What ordinary data scored, sorted; new scores are ranked among it.

    Args:
        scores: One score for each ordinary row or sequence; smaller is stranger.
    """

    scores: Float[np.ndarray, " ordinary"]

    def __post_init__(self) -> None:
        scores = np.sort(np.asarray(self.scores, np.float64))
        if not len(scores) or not np.isfinite(scores).all():
            raise InputError("calibration needs at least one finite score; give it some ordinary data.")
        object.__setattr__(self, "scores", scores)

    def p_values(
        self, scores: Float[np.ndarray, " new"], ties: Float[np.ndarray, " new"] | float = 1.0
    ) -> Float[np.ndarray, " new"]:
        """The share of ordinary scores, the new one counted among them, that are at most as large as each new one.

        For a new score that is exchangeable with the ordinary ones, P(p <= α) <= α at any α.

        Args:
            scores: New scores [new].
            ties: What counts of equal scores, the new one's own included; uniform numbers between 0 and 1 make p-values
                exactly uniform, 1 is on the safe side.

        Returns:
            A p-value for every new score [new].
        """
        scores = np.asarray(scores, np.float64)
        less = np.searchsorted(self.scores, scores, side="left")
        equal = np.searchsorted(self.scores, scores, side="right") - less
        return (less + ties * (equal + 1)) / (len(self.scores) + 1)

    def check_rate(self, rate: float, what: str) -> None:
        """Refuse a false-alarm rate that no p-value can fall below.

        Args:
            rate: The false-alarm rate.
            what: What is counted, say "sequences".
        """
        if not 0 < rate < 1:
            raise InputError(f"the false-alarm rate must be between 0 and 1, got {rate!r}.")
        if rate < 1 / (len(self.scores) + 1):
            needed = math.ceil(1 / rate) - 1
            raise InputError(
                f"a false-alarm rate of {rate:g} needs at least {needed:,} {what} to calibrate with, but there are "
                f"{len(self.scores):,}; choose a rate of at least {1 / (len(self.scores) + 1):.2g}, or give more data."
            )


@dataclass(frozen=True)
class Ordinary:
    """What ordinary rows and series score: what alarms are calibrated with.

    Args:
        rows: Their surprise.
        series: Their nats per row; None where there are no whole series to compare with, such as the last rows of the
            series that a model was trained on.
    """

    rows: Calibration
    series: Calibration | None

    @classmethod
    def of(cls, context: Context, found: Rows) -> "Ordinary":
        """From what a filter says of data that took no part in training.

        Rows that are context and rows of which nothing was observed, which are never strange, do not count.

        Args:
            context: The data.
            found: What the filter says of it.
        """
        begin = np.zeros(len(context.ids), int) if context.starts is None else np.asarray(context.starts)
        seen = [mask[start:].any(axis=1) for mask, start in zip(context.seen.masks, begin, strict=True)]
        starts, ends = context.bounds[:-1] + begin, context.bounds[1:]
        parts = [found.surprise[a:b][rows] for a, b, rows in zip(starts, ends, seen, strict=True)]
        surprise = np.concatenate(parts)
        return cls(Calibration(surprise), Calibration(nats_per_row(context, found)) if not begin.any() else None)

    @classmethod
    def held_out(cls, trained: Trained, model: SeriesModel) -> "Ordinary":
        """From the split `calibrate` of a run's data if there is one, else `test`.

        Args:
            trained: The run.
            model: What filters it.
        """
        data = trained.dataset
        split = data.split("calibrate" if "calibrate" in data.splits else "test")
        return cls.of(read_context(None, None, split), model.filtered(split, QUANTILES))

    def check_rate(self, rate: float) -> None:
        """Refuse a false-alarm rate that cannot be met.

        Args:
            rate: The rate, for rows and, where there are whole series, for series.
        """
        self.rows.check_rate(rate, "rows")
        if self.series is not None:
            self.series.check_rate(rate, "series")


def nats_per_row(context: Context, found: Rows) -> Float[np.ndarray, " series"]:
    """The mean log-likelihood of the rows of each series, without those that are context."""
    starts = context.bounds[:-1] + (0 if context.starts is None else np.asarray(context.starts))
    log_likelihood = np.asarray(found.log_likelihood)
    return np.array([log_likelihood[a:b].mean() for a, b in zip(starts, context.bounds[1:], strict=True)])


@dataclass(frozen=True, repr=False)
class Anomalies(Result):
    """p-values of rows and of series against ordinary data, and alarms at a false-alarm rate that is met.

    Args:
        context: The series.
        levels: The ends of the interval that plots show.
        rows: What the filter said, on the model's scale, all series one after the other.
        ordinary: What ordinary rows and series score.
        rate: The false-alarm rate.
        ties: A uniform number for each row, which breaks ties.
    """

    rows: Rows
    ordinary: Ordinary
    rate: float
    ties: Float[np.ndarray, " row"]

    @property
    def p_values(self) -> Float[np.ndarray, "series time"]:
        """Of every row; NaN past the end of a series."""
        return self.context.padded(self._p)

    @property
    def alarms(self) -> Bool[np.ndarray, "series time"]:
        """Rows whose p-value is at most the rate."""
        return self.p_values <= self.rate

    @property
    def series_p_values(self) -> Float[np.ndarray, " series"]:
        """One for each series, from its nats per row; NaN if there are no ordinary series to compare with."""
        if self.ordinary.series is None:
            return np.full(len(self.ids), np.nan)
        return self.ordinary.series.p_values(nats_per_row(self.context, self.rows))

    @property
    def series_alarms(self) -> Bool[np.ndarray, " series"]:
        """Series whose p-value is at most the rate."""
        return self.series_p_values <= self.rate

    @property
    def _p(self) -> Float[np.ndarray, " row"]:
        return self.ordinary.rows.p_values(np.asarray(self.rows.surprise), self.ties)

    def to_frame(self, of: Literal["rows", "series"] = "rows") -> Any:
        """A table of the kind that was given: `p_value` and `alarm` of every row, or of every series.

        Args:
            of: What its rows are.

        Returns:
            A frame; of series it has `nats_per_row` and `row_alarms` too, and no p-values where there are no ordinary
            series to compare with.
        """
        p = self._p
        if of == "rows":
            return self._rows({"p_value": p, "alarm": p <= self.rate})
        nats = nats_per_row(self.context, self.rows)
        columns: dict[str, Any] = {**self.context.id_columns, "nats_per_row": nats}
        columns["row_alarms"] = np.nansum(self.alarms, axis=1)
        if self.ordinary.series is not None:
            columns |= {"p_value": self.series_p_values, "alarm": self.series_alarms}
        return self.context.returned(frame_of(columns))

    def to_xarray(self) -> Any:
        """Labelled arrays.

        Returns:
            An `xarray.Dataset` with dimensions series and step.
        """
        over = ("series", "step")
        return labelled(
            {
                "p_value": (over, self.p_values),
                "alarm": (over, self.alarms),
                "series_p_value": (("series",), self.series_p_values),
            },
            series=self.ids,
        )

    def plot(self, series: Sequence[Any] | None = None, *, title: str = "") -> "Figure":
        """The rows with their alarms, what was expected of them, and their p-values.

        Args:
            series: The ids of the series to show; by default the strangest.
            title: Of the figure.

        Returns:
            A matplotlib figure.
        """
        return plot_anomaly(self.tracks(series), rate=self.rate, time_label=self.time_label, title=title)

    def tracks(self, series: Sequence[Any] | None = None) -> list[Track]:
        """What `plot` draws.

        Args:
            series: The ids of the series to show; by default those that `plot` shows.

        Returns:
            A track for each series and value.
        """
        if series is None:
            strange = self.series_p_values if self.ordinary.series is not None else -np.nansum(self.alarms, axis=1)
            series = [self.ids[place] for place in np.argsort(strange, kind="stable")[: len(self._chosen(None))]]
        p, tracks = self._p, []
        for place in self._chosen(series):
            begin, end = self.context.bounds[place : place + 2]
            observed = self._observed(place)
            for i, column in self._plotted:
                quantiles = np.asarray(self.rows.quantiles)[begin:end, :, i]
                ends = {level: restored(column, quantiles[:, k]) for k, level in enumerate(self.levels)}
                mean = restored(column, np.asarray(self.rows.mean)[begin:end, i])
                times = self.context.seen.times[place]
                tracks.append(Track(self._label(place), column.name, times, observed[:, i], mean, ends, p[begin:end]))
        return tracks

    def __repr__(self) -> str:
        rows, alarms = len(self._p), int((self._p <= self.rate).sum())
        return f"Anomalies({len(self.ids)} series, alarms in {alarms:,} of {rows:,} rows at a rate of {self.rate:g})"
