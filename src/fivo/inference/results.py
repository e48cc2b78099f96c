"""What results of series have in common: which series they are of, and how they become tables, arrays and plots."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fivo.data import TableColumn
from fivo.errors import InputError
from fivo.extras import require
from fivo.inference.context import Context
from fivo.inference.rowwise import Frame, by_row, restored
from fivo.report import Track

if TYPE_CHECKING:
    from matplotlib.figure import Figure

QUANTILES = (0.1, 0.5, 0.9)
MOST_SERIES, MOST_PANELS = 3, 4
"""Of a plot, unless series are chosen."""


@dataclass(frozen=True, repr=False)
class Result:
    """A result for every series that a model was given.

    Args:
        context: The series.
        levels: The quantiles that it has.
    """

    context: Context
    levels: tuple[float, ...]

    @property
    def ids(self) -> list[Any]:
        """The ids of the series, in the order of every array's first axis."""
        return self.context.ids

    def plot(self, series: Sequence[Any] | None = None, *, title: str = "") -> "Figure":
        """A matplotlib figure.

        Args:
            series: The ids of the series to show; by default the first few.
            title: Of the figure.
        """
        raise NotImplementedError

    def _chosen(self, series: Sequence[Any] | None) -> list[int]:
        """The places of the series to show."""
        if series is None:
            return list(range(min(MOST_SERIES, len(self.ids))))
        places = {str(name): place for place, name in enumerate(self.ids)}
        unknown = [name for name in series if str(name) not in places]
        if unknown or not len(series):
            raise InputError(f"`series` must name series of the data, got {unknown[0] if unknown else 'none'!r:.60}.")
        return [places[str(name)] for name in series]

    @property
    def time_label(self) -> str:
        """What the column of time is called."""
        return self.context.schema.time_column or "row"

    def _label(self, place: int) -> str:
        return "" if self.context.schema.id is None else f"{self.context.schema.id} {self.ids[place]}"

    @property
    def _plotted(self) -> list[tuple[int, TableColumn]]:
        """Places of the first few columns that have numbers to plot."""
        columns = enumerate(self.context.schema.values)
        return [(place, column) for place, column in columns if column.kind != "category"][:MOST_PANELS]

    def _level(self, level: float) -> int:
        """The place of a quantile that was computed."""
        if level not in self.levels:
            have = ", ".join(f"{known:g}" for known in self.levels)
            raise InputError(f"the quantile must be one that was asked for ({have}), got {level!r:.40}.")
        return self.levels.index(level)

    def _observed(self, place: int) -> np.ndarray:
        """The observed values of a series [time, dim] in the user's units, NaN where they are missing."""
        seen = self.context.seen
        raw = [restored(c, seen.sequences[place][:, i]) for i, c in enumerate(seen.schema.values)]
        return np.where(seen.masks[place], np.stack(raw, axis=-1), np.nan)

    def _rows(self, columns: dict[str, Any]) -> Any:
        """The id and time columns of the given table, and new ones, row for row."""
        context, frame = self.context, self.context.frame
        kept = [name for name in (context.schema.id, context.schema.time_column) if name is not None]
        made = frame.select(kept).with_columns(**by_row(frame, context.seen, columns))
        return context.returned(made, by_row=True)

    def _state_tracks(self, mean: np.ndarray, quantile: np.ndarray, series: Sequence[Any] | None) -> list[Track]:
        """Latents [row, latent] with their quantiles [row, quantile, latent]."""
        found = []
        for place in self._chosen(series):
            begin, end = self.context.bounds[place : place + 2]
            for latent in range(min(MOST_PANELS, mean.shape[1])):
                levels = {level: quantile[begin:end, i, latent] for i, level in enumerate(self.levels)}
                times = self.context.seen.times[place]
                found.append(Track(self._label(place), f"state {latent}", times, None, mean[begin:end, latent], levels))
        return found


def labelled(variables: Mapping[str, tuple[tuple[str, ...], Any]], **coordinates: Any) -> Any:
    """An `xarray.Dataset` of arrays with named dimensions."""
    return require("xarray", "Labelled results").Dataset(dict(variables), coords=coordinates)


def frame_of(columns: dict[str, Any]) -> Frame:
    """A table of columns."""
    return require("polars", "Tables of results").DataFrame(columns)
