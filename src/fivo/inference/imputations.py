"""Missing entries, drawn given all that was observed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from fivo.inference.results import Result, labelled
from fivo.inference.rowwise import centre, filled, restored
from fivo.report import Track, plot_imputed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLOTTED = (0.1, 0.9)


@dataclass(frozen=True, repr=False)
class Imputed(Result):
    """Draws of whole rows given everything that was observed, with the observed entries as they are.

    Args:
        context: The series.
        levels: The quantiles that `to_frame` gives.
        rows: On the model's scale, all series one after the other.
        distinct_rows: How many different latents are behind the draws of each row: few say that there were too few
            particles.
    """

    rows: Float[np.ndarray, "row sample dim"]
    distinct_rows: Int[np.ndarray, " row"]

    @property
    def samples(self) -> Float[np.ndarray, "series sample time dim"]:
        """The draws in the user's units, categories as their numbers; NaN past the end of a series."""
        return np.moveaxis(self.context.padded(self._restored), 2, 1)

    @property
    def mean(self) -> Float[np.ndarray, "series time dim"]:
        """The average draw."""
        return self.samples.mean(axis=1)

    def quantile(self, level: float) -> Float[np.ndarray, "series time dim"]:
        """The value that a share of `level` of the draws lies below.

        Args:
            level: From 0 to 1.

        Returns:
            An array [series, time, dim].
        """
        return np.quantile(self.samples, level, axis=1)

    @property
    def distinct(self) -> Float[np.ndarray, "series time"]:
        """How many different latents are behind the draws."""
        return self.context.padded(self.distinct_rows)

    def to_frame(self) -> Any:
        """The given table with its missing cells filled, observed cells as they are.

        Returns:
            A frame of the kind that was given, with a mean (or the most frequent category) in each missing cell,
            columns `y_q0.1`, ... for the quantiles of those cells, empty for cells that were observed, and `distinct`.
        """
        context = self.context
        missing = ~np.concatenate(context.seen.masks)
        columns: dict[str, Any] = {"distinct": self.distinct_rows}
        for place, column in enumerate(context.schema.values):
            drawn, empty = self.rows[:, :, place].T, missing[:, place]
            columns[column.name] = np.where(empty, centre(column, drawn), np.nan)
            if column.kind != "category":
                levels = np.quantile(restored(column, drawn), self.levels, axis=0)
                for level, value in zip(self.levels, levels, strict=True):
                    columns[f"{column.name}_q{level:g}"] = np.where(empty, value, np.nan)
        return context.returned(filled(context.frame, context.seen, context.schema, columns), by_row=True)

    def to_xarray(self) -> Any:
        """Labelled arrays.

        Returns:
            The draws as an `xarray.Dataset` with dimensions series, sample and step, one variable for each value.
        """
        samples, over = self.samples, ("series", "sample", "step")
        variables = {c.name: (over, samples[..., i]) for i, c in enumerate(self.context.schema.values)}
        return labelled(variables, series=self.ids)

    def plot(self, series: Sequence[Any] | None = None, *, title: str = "") -> "Figure":
        """The observed values, and what fills their gaps within its intervals.

        Args:
            series: The ids of the series to show; by default those that most entries are missing of.
            title: Of the figure.

        Returns:
            A matplotlib figure.
        """
        return plot_imputed(self.tracks(series), time_label=self.time_label, title=title)

    def tracks(self, series: Sequence[Any] | None = None) -> list[Track]:
        """What `plot` draws.

        Args:
            series: The ids of the series to show; by default those that `plot` shows.

        Returns:
            A track for each series and value.
        """
        seen = self.context.seen
        if series is None:
            order = np.argsort([-(~mask).sum() for mask in seen.masks], kind="stable")
            series = [self.ids[place] for place in order[: len(self._chosen(None))]]
        tracks = []
        for place in self._chosen(series):
            begin, end = self.context.bounds[place : place + 2]
            drawn, observed = self._restored[begin:end], self._observed(place)
            for i, column in self._plotted:
                gap = np.isnan(observed[:, i])
                levels = {q: np.where(gap, np.quantile(drawn[..., i], q, axis=1), np.nan) for q in PLOTTED}
                mean = np.where(gap, drawn[..., i].mean(axis=1), np.nan)
                tracks.append(Track(self._label(place), column.name, seen.times[place], observed[:, i], mean, levels))
        return tracks

    @property
    def _restored(self) -> Float[np.ndarray, "row sample dim"]:
        columns = self.context.schema.values
        return np.stack([restored(column, self.rows[..., i]) for i, column in enumerate(columns)], axis=-1)

    def __repr__(self) -> str:
        missing = sum(int((~mask).sum()) for mask in self.context.seen.masks)
        return f"Imputed({len(self.ids)} series, {missing:,} missing entries, {self.rows.shape[1]} draws)"
