"""Latent states of rows: given the rows so far (filtered), or given all rows of a series (smoothed)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from fivo.inference.results import Result, labelled
from fivo.inference.rowfilters import Rows
from fivo.inference.rowwise import raw_offsets, restored, state_columns, value_columns
from fivo.report import Track, plot_states

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class Filtered(Result):
    """For every row the latent state given the rows so far, and what was expected of the row before it was seen.

    Args:
        context: The series.
        levels: The quantiles that were asked for.
        rows: What the filter said, on the model's scale, all series one after the other.
    """

    rows: Rows

    @property
    def log_likelihood(self) -> Float[np.ndarray, "series time"]:
        """log p̂(x_t | x_<t) in the data's own units; NaN past the end of a series."""
        return self.context.padded(self._log_likelihood)

    @property
    def mean(self) -> Float[np.ndarray, "series time dim"]:
        """What was expected of each row before it was seen."""
        return self.context.padded(self._restored(np.asarray(self.rows.mean)))

    def quantile(self, level: float) -> Float[np.ndarray, "series time dim"]:
        """A quantile of what was expected of each row; one of those that were asked for.

        Args:
            level: One of the quantiles that were asked for.

        Returns:
            An array [series, time, dim].
        """
        return self.context.padded(self._restored(np.asarray(self.rows.quantiles)[:, self._level(level)]))

    @property
    def state_mean(self) -> Float[np.ndarray, "series time latent"]:
        """The mean of the latents after each row."""
        return self.context.padded(np.asarray(self.rows.state_mean))

    def state_quantile(self, level: float) -> Float[np.ndarray, "series time latent"]:
        """A quantile of the latents after each row.

        Args:
            level: One of the quantiles that were asked for.

        Returns:
            An array [series, time, latent].
        """
        return self.context.padded(np.asarray(self.rows.state_quantiles)[:, self._level(level)])

    @property
    def ess(self) -> Float[np.ndarray, "series time"]:
        """The effective sample size of the filter after each row."""
        return self.context.padded(np.asarray(self.rows.ess))

    def to_frame(self) -> Any:
        """The states and predictions as a table.

        Returns:
            A frame of the kind that was given, row for row: `y_mean`, `y_q0.1`, ..., `log_likelihood`, `state0_mean`,
            `state0_q0.1`, ...
        """
        rows, schema = self.rows, self.context.schema
        columns = value_columns(schema, rows.mean, rows.quantiles, self.levels)
        columns["log_likelihood"] = self._log_likelihood
        return self._rows(columns | state_columns(rows.state_mean, rows.state_quantiles, self.levels))

    def to_xarray(self) -> Any:
        """Labelled arrays.

        Returns:
            An `xarray.Dataset` with dimensions series, step, value, latent and quantile.
        """
        over = ("series", "step")
        variables = {
            "log_likelihood": (over, self.log_likelihood),
            "mean": ((*over, "value"), self.mean),
            "quantiles": (("quantile", *over, "value"), np.stack([self.quantile(q) for q in self.levels])),
            "state_mean": ((*over, "latent"), self.state_mean),
            "state_quantiles": (("quantile", *over, "latent"), np.stack([self.state_quantile(q) for q in self.levels])),
        }
        names = [column.name for column in self.context.schema.values]
        return labelled(variables, series=self.ids, value=names, quantile=list(self.levels))

    def plot(self, series: Sequence[Any] | None = None, *, title: str = "") -> "Figure":
        """The latents after each row, within their intervals.

        Args:
            series: The ids of the series to show; by default the first few.
            title: Of the figure.

        Returns:
            A matplotlib figure.
        """
        return plot_states(self.tracks(series), time_label=self.time_label, title=title)

    def tracks(self, series: Sequence[Any] | None = None) -> list[Track]:
        """What `plot` draws.

        Args:
            series: The ids of the series to show; by default those that `plot` shows.

        Returns:
            A track for each series and latent.
        """
        return self._state_tracks(np.asarray(self.rows.state_mean), np.asarray(self.rows.state_quantiles), series)

    @property
    def _log_likelihood(self) -> Float[np.ndarray, " row"]:
        return np.asarray(self.rows.log_likelihood) + raw_offsets(self.context.schema, self.context.seen)

    def _restored(self, values: Float[np.ndarray, "row dim"]) -> Float[np.ndarray, "row dim"]:
        columns = self.context.schema.values
        return np.stack([restored(column, values[:, i]) for i, column in enumerate(columns)], axis=-1)

    def __repr__(self) -> str:
        return f"Filtered({len(self.ids)} series, {self.rows.state_mean.shape[1]} latents)"


@dataclass(frozen=True, repr=False)
class Smoothed(Result):
    """For every row the latent state given all rows of its series.

    Args:
        context: The series.
        levels: The quantiles that were asked for.
        means: Of the latents, all series one after the other.
        quantiles: Of the latents.
        distinct_rows: How many different latents are among the draws of each row: few say that there were too few
            particles.
    """

    means: Float[np.ndarray, "row latent"]
    quantiles: Float[np.ndarray, "row quantile latent"]
    distinct_rows: Int[np.ndarray, " row"]

    @property
    def state_mean(self) -> Float[np.ndarray, "series time latent"]:
        """The mean of the latents; NaN past the end of a series."""
        return self.context.padded(self.means)

    def state_quantile(self, level: float) -> Float[np.ndarray, "series time latent"]:
        """A quantile of the latents; one of those that were asked for.

        Args:
            level: One of the quantiles that were asked for.

        Returns:
            An array [series, time, latent].
        """
        return self.context.padded(self.quantiles[:, self._level(level)])

    @property
    def distinct(self) -> Float[np.ndarray, "series time"]:
        """How many different latents are among the draws."""
        return self.context.padded(self.distinct_rows)

    def to_frame(self) -> Any:
        """The states as a table.

        Returns:
            A frame of the kind that was given, row for row: `state0_mean`, `state0_q0.1`, ..., `distinct`.
        """
        columns = state_columns(self.means, self.quantiles, self.levels)
        return self._rows(columns | {"distinct": self.distinct_rows})

    def to_xarray(self) -> Any:
        """Labelled arrays.

        Returns:
            An `xarray.Dataset` with dimensions series, step, latent and quantile.
        """
        over = ("series", "step")
        variables = {
            "state_mean": ((*over, "latent"), self.state_mean),
            "state_quantiles": (("quantile", *over, "latent"), np.stack([self.state_quantile(q) for q in self.levels])),
            "distinct": (over, self.distinct),
        }
        return labelled(variables, series=self.ids, quantile=list(self.levels))

    def plot(self, series: Sequence[Any] | None = None, *, title: str = "") -> "Figure":
        """The latents at each row, within their intervals.

        Args:
            series: The ids of the series to show; by default the first few.
            title: Of the figure.

        Returns:
            A matplotlib figure.
        """
        return plot_states(self.tracks(series), time_label=self.time_label, title=title)

    def tracks(self, series: Sequence[Any] | None = None) -> list[Track]:
        """What `plot` draws.

        Args:
            series: The ids of the series to show; by default those that `plot` shows.

        Returns:
            A track for each series and latent.
        """
        return self._state_tracks(self.means, self.quantiles, series)

    def __repr__(self) -> str:
        return f"Smoothed({len(self.ids)} series, {self.means.shape[1]} latents)"
