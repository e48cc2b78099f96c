"""A trained model of a table: reads other tables the same way, rows in, rows out, in the user's units."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from fivo._scoring import device_batch, scoring_plan, weights_dtype
from fivo.batch import Batch
from fivo.data import Split, TableSchema, TableSequences, apply_schema, as_table, times_after
from fivo.errors import InputError
from fivo.inference.anomalies import Calibration
from fivo.inference.filtering import filter_rows
from fivo.inference.forecasting import forecast_rows
from fivo.inference.forecasts import Forecast, future_inputs
from fivo.inference.rowfilters import Rows
from fivo.inference.rowwise import (
    Frame,
    by_row,
    centre,
    filled,
    frame_of,
    normal_quantiles,
    raw_offsets,
    restored,
    state_columns,
    value_columns,
)
from fivo.inference.smoothing import impute_rows, smooth_rows
from fivo.models import LinearGaussian, SequenceModel
from fivo.smc import ParticleFilter

QUANTILES = (0.1, 0.5, 0.9)
Parts = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class TableModel:
    """A model and how the table was read that it was trained on.

    Args:
        model: The model.
        schema: How the table was read.
        num_particles: Of the filters.
        seed: Random seed.
        progress: Called with what is being done, the series done and their number.
        warn: Called with a sentence about whatever looks wrong in a table, but may be right.
    """

    model: SequenceModel
    schema: TableSchema
    num_particles: int = 200
    seed: int = 0
    progress: Callable[[str, int, int], None] = lambda what, done, total: None
    warn: Callable[[str], None] = warnings.warn

    def score(self, table: Any, *, repeats: int = 3) -> tuple[Frame, Frame]:
        """log p(x_t | x_<t) of every row, in nats of the table's own units, and totals of every series.

        Args:
            table: A path or a frame.
            repeats: Independent filters, for standard errors; exact models need none.
        """
        frame, seen = self.read(table)
        exact = isinstance(self.model, LinearGaussian)
        draws = np.stack([self._increments(seen, repeat) for repeat in range(1 if exact else repeats)])
        raw = draws + raw_offsets(self.schema, seen)
        rows = self._rows(frame, seen, {"log_likelihood": raw.mean(axis=0), "standard_error": _error(raw)})
        totals = np.stack([raw[:, a:b].sum(axis=1) for a, b in pairwise(_bounds(seen))], axis=1)
        lengths = np.array([len(x) for x in seen.sequences])
        series = {
            **self._ids(seen),
            "rows": lengths,
            "log_likelihood": totals.mean(axis=0),
            "per_row": totals.mean(axis=0) / lengths,
            "standard_error": _error(totals),
        }
        return rows, frame_of(series)

    def filter(self, table: Any, *, quantiles: Sequence[float] = QUANTILES) -> Frame:
        """For every row the latent state given the rows so far, and what was expected of the row before it was seen.

        Args:
            table: A path or a frame.
            quantiles: Which quantiles to give.
        """
        frame, seen = self.read(table)
        found = self.filtered(seen.split, tuple(quantiles))
        columns = value_columns(self.schema, found.mean, found.quantiles, quantiles)
        columns["log_likelihood"] = found.log_likelihood + raw_offsets(self.schema, seen)
        return self._rows(frame, seen, columns | state_columns(found.state_mean, found.state_quantiles, quantiles))

    def smooth(self, table: Any, *, quantiles: Sequence[float] = QUANTILES, num_trajectories: int = 100) -> Frame:
        """For every row the latent state given all rows of its series.

        Args:
            table: A path or a frame.
            quantiles: Which quantiles to give.
            num_trajectories: Draws of each series' latents; exact models need none.
        """
        frame, seen = self.read(table)

        def smoothed(batch: Batch, keys: Key[Array, " batch"]) -> Parts:
            if isinstance(self.model, LinearGaussian):
                moments = self.model.smoothed(batch)
                mean = np.asarray(moments.means, np.float64)
                variance = np.diagonal(np.asarray(moments.covariances, np.float64), axis1=2, axis2=3)
                quantile = normal_quantiles(mean, np.sqrt(np.maximum(variance, 0)), quantiles)
                return mean, quantile, np.full(mean.shape[:2], num_trajectories)
            pf = ParticleFilter(self.num_particles)
            drawn = smooth_rows(pf, self.model, batch, num_trajectories=num_trajectories, key=keys)
            leaves = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(drawn.latents)]
            flat = np.concatenate([leaf.reshape(*leaf.shape[:3], -1) for leaf in leaves], axis=-1)
            quantile = np.moveaxis(np.quantile(flat, quantiles, axis=2), 0, 2)
            return flat.mean(axis=2), quantile, np.asarray(drawn.distinct)

        mean, quantile, distinct = self.each(seen.split, "smoothing", smoothed)
        return self._rows(frame, seen, state_columns(mean, quantile, quantiles) | {"distinct": distinct})

    def impute(self, table: Any, *, quantiles: Sequence[float] = (0.1, 0.9), num_samples: int = 100) -> Frame:
        """The table with its missing cells filled; observed cells stay as they are.

        Args:
            table: A path or a frame.
            quantiles: Which quantiles of filled cells to give.
            num_samples: Draws of each series.

        Returns:
            The given table with a mean in each missing cell, columns for the quantiles of those cells (empty for cells
            that were observed), and `distinct`, the number of different latents behind each row: few say that there
            were too few particles.
        """
        frame, seen = self.read(table)

        def imputed(batch: Batch, keys: Key[Array, " batch"]) -> Parts:
            pf = ParticleFilter(self.num_particles)
            drawn, distinct = impute_rows(pf, self.model, batch, num_samples=num_samples, key=keys)
            return np.swapaxes(drawn.samples, 1, 2), distinct

        samples, distinct = self.each(seen.split, "imputing", imputed)
        missing = ~np.concatenate(seen.masks)
        columns: dict[str, Any] = {"distinct": distinct}
        for place, column in enumerate(self.schema.values):
            drawn, empty = samples[:, :, place].T, missing[:, place]
            columns[column.name] = np.where(empty, centre(column, drawn), np.nan)
            if column.kind != "category":
                levels = np.quantile(restored(column, drawn), quantiles, axis=0)
                for level, value in zip(quantiles, levels, strict=True):
                    columns[f"{column.name}_q{level:g}"] = np.where(empty, value, np.nan)
        return filled(frame, seen, self.schema, columns)

    def forecast(
        self,
        table: Any,
        horizon: int,
        *,
        quantiles: Sequence[float] = QUANTILES,
        inputs_from: Any = None,
        num_samples: int = 200,
    ) -> Forecast:
        """What follows every series of a table.

        Args:
            table: The series so far: a path or a frame.
            horizon: How many rows to forecast.
            quantiles: Which quantiles the table of the forecast has.
            inputs_from: A table with the inputs of those rows, where the model has inputs.
            num_samples: Draws for each series.
        """
        _, seen = self.read(table)
        inputs = self._future_inputs(seen, horizon, inputs_from)
        found: list[Any] = [None] * len(seen.sequences)
        for batch, keys, indices in self.chunks(seen.split, "forecasting"):
            u = None if inputs is None else inputs[np.maximum(indices, 0)]
            drawn = forecast_rows(
                self.model,
                batch,
                horizon,
                inputs=u,
                num_samples=num_samples,
                num_particles=self.num_particles,
                key=keys,
            )
            for slot, index in enumerate(indices):
                if index >= 0:
                    found[index] = drawn.samples[slot]
        times = [times_after(self.schema.time, t[-1], horizon) for t in seen.times]
        return Forecast(self.schema, self._ids(seen), times, np.stack(found), tuple(quantiles))

    def anomaly(self, table: Any, rows: Calibration, series: Calibration, *, rate: float = 0.01) -> tuple[Frame, Frame]:
        """p-values and alarms for every row and every series.

        Args:
            table: A path or a frame.
            rows: What ordinary rows scored (`calibration`).
            series: What ordinary series scored, in nats per row.
            rate: The false-alarm rate; one that the calibration cannot meet is refused.
        """
        rows.check_rate(rate, "rows")
        series.check_rate(rate, "series")
        frame, seen = self.read(table)
        found = self.filtered(seen.split)
        p = rows.p_values(np.asarray(found.surprise), np.random.default_rng(self.seed).random(len(found.surprise)))
        per_row = self._rows(frame, seen, {"p_value": p, "alarm": p <= rate})
        nats = np.array([found.log_likelihood[a:b].mean() for a, b in pairwise(_bounds(seen))])
        whole = series.p_values(nats)
        return per_row, frame_of({**self._ids(seen), "nats_per_row": nats, "p_value": whole, "alarm": whole <= rate})

    def calibration(self, split: Split) -> tuple[Calibration, Calibration]:
        """What the rows and the series of ordinary data score.

        Args:
            split: The data, which took no part in training; of series that begin with context, the rows after it.
        """
        found = self.filtered(split)
        begin = np.zeros(len(split), int) if split.starts is None else np.asarray(split.starts)
        bounds = np.cumsum([0, *split.lengths])
        surprise = [found.surprise[a + s : b] for (a, b), s in zip(pairwise(bounds), begin, strict=True)]
        nats = [found.log_likelihood[a + s : b].mean() for (a, b), s in zip(pairwise(bounds), begin, strict=True)]
        return Calibration(np.concatenate(surprise)), Calibration(np.asarray(nats))

    def read(self, table: Any) -> tuple[Frame, TableSequences]:
        """A table, and its series on the model's scale."""
        frame = as_table(table)
        seen = apply_schema(self.schema, frame)
        for sentence in seen.warnings:
            self.warn(sentence)
        return frame, seen

    def filtered(self, seen: Split, quantiles: tuple[float, ...] = QUANTILES) -> Rows:
        """What a filter says of every row, one series after the other."""
        pf = ParticleFilter(self.num_particles, "systematic")

        def rows(batch: Batch, keys: Key[Array, " batch"]) -> Parts:
            found = filter_rows(pf, self.model, batch, quantiles=quantiles, key=keys)
            return tuple(np.asarray(leaf, np.float64) for leaf in found)

        return Rows(*self.each(seen, "filtering", rows))  # pyright: ignore[reportArgumentType]

    def _increments(self, seen: TableSequences, repeat: int) -> Float[np.ndarray, " row"]:
        pf = ParticleFilter(self.num_particles, "systematic")

        def increments(batch: Batch, keys: Key[Array, " batch"]) -> Parts:
            if isinstance(self.model, LinearGaussian):
                return (np.asarray(self.model.log_increments(batch), np.float64),)
            keys = jax.vmap(lambda key: jax.random.fold_in(key, repeat))(keys)
            return (np.asarray(pf(self.model, batch, key=keys).log_increments, np.float64),)

        return self.each(seen.split, "scoring", increments)[0]

    def each(self, seen: Split, what: str, function: Callable[..., Parts]) -> Parts:
        """What a function says of every step, all series one after the other.

        Args:
            seen: The series.
            what: What is being done, for progress.
            function: Of a batch and a key for each of its sequences, to arrays [batch, time, ...].

        Returns:
            The function's arrays [row, ...].
        """
        found: list[Any] = [None] * len(seen)
        for batch, keys, indices in self.chunks(seen, what):
            parts = function(batch, keys)
            for slot, index in enumerate(indices):
                if index >= 0:
                    found[index] = [part[slot, : len(seen[index])] for part in parts]
        return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))

    def chunks(self, seen: Split, what: str) -> Any:
        """Batches of series of similar lengths.

        Args:
            seen: The series.
            what: What is being done, for progress.

        Yields:
            A batch, a key for each of its sequences, and which series they are; -1 is an empty slot.
        """
        lengths = seen.lengths
        keys = jax.random.split(jax.random.key(self.seed), len(lengths))
        done = 0
        for indices, padded in scoring_plan(lengths, self.num_particles):
            # An empty slot repeats a series: sequences of no rows are refused elsewhere.
            chosen = np.where(indices < 0, indices.max(), indices)
            yield device_batch(seen, chosen, padded, weights_dtype(self.model)), keys[chosen], indices
            done += int((indices >= 0).sum())
            self.progress(what, done, len(lengths))

    def _future_inputs(self, seen: TableSequences, horizon: int, inputs_from: Any) -> np.ndarray | None:
        schema = self.schema
        if not schema.input_columns or seen.inputs is None:
            return None
        if not schema.inputs:  # what is static goes on as it was, and the next rows are one step apart
            last = np.stack([u[-1] for u in seen.inputs])
            if schema.gap is not None:
                last[:, -1] = (schema.time.step - schema.gap.shift) / schema.gap.scale
            return np.repeat(last[:, None], horizon, axis=1)
        if inputs_from is None:
            names = ", ".join(column.name for column in schema.inputs)
            raise InputError(
                f"the model reads {names}, so a forecast needs a table with them for the next {horizon} rows of every "
                "series; give it with --inputs-from (`inputs_from`)."
            )
        return future_inputs(schema, seen, horizon, inputs_from)

    def _ids(self, seen: TableSequences) -> dict[str, Any]:
        return {} if self.schema.id is None else {self.schema.id: seen.ids}

    def _rows(self, frame: Frame, seen: TableSequences, columns: dict[str, Any]) -> Frame:
        """The id and time columns of the given table, and new ones, row for row."""
        kept = [name for name in (self.schema.id, self.schema.time_column) if name is not None]
        return frame.select(kept).with_columns(**by_row(frame, seen, columns))


def _bounds(seen: TableSequences) -> np.ndarray:
    """Where each series begins and ends when all are one after the other."""
    return np.cumsum([0, *map(len, seen.sequences)])


def _error(draws: Float[np.ndarray, "repeat *shape"]) -> Float[np.ndarray, "*shape"]:
    """The standard error of a mean over repeats; zero where there is one, which is then exact."""
    return draws.std(axis=0, ddof=1) / np.sqrt(len(draws)) if len(draws) > 1 else np.zeros(draws.shape[1:])
