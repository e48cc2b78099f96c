"""The series that a model is used on: a table read as the run's was, or arrays, both in one form."""

import warnings
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int, Shaped

from fivo.batch import Batch, as_batch
from fivo.data import (
    Column,
    Split,
    SplitRule,
    TableColumn,
    TableSchema,
    TableSequences,
    TimeRule,
    apply_schema,
    as_given,
    as_table,
)
from fivo.errors import InputError
from fivo.inference.rowwise import Frame

SERIES, STEP = "series", "step"
"""What the columns of id and time are called in tables that are made from arrays."""


@dataclass(frozen=True)
class Context:
    """Series on the model's scale, with what is needed to give results row for row in the user's units.

    Args:
        seen: The series.
        table: The table that they were read from; None if they were given as arrays.
        given: The frame that the user gave, whose kind results have; None for a path or arrays.
        starts: The first step of each series that results are wanted of; the steps before it are context.
    """

    seen: TableSequences
    table: Frame | None = None
    given: Any = field(default=None, repr=False)
    starts: tuple[int, ...] | None = None

    @property
    def schema(self) -> TableSchema:
        """Names, kinds and scales of the columns."""
        return self.seen.schema

    @property
    def ids(self) -> list[Any]:
        """The id of each series; its number where there is none."""
        return self.seen.ids if self.schema.id is not None else list(range(len(self.seen.ids)))

    @cached_property
    def split(self) -> Split:
        """The series as a split, for batches."""
        return self.seen.split

    @cached_property
    def bounds(self) -> Int[np.ndarray, " _bounds"]:
        """Where each series begins and ends when all are one after the other."""
        return np.cumsum([0, *map(len, self.seen.sequences)])

    @cached_property
    def frame(self) -> Frame:
        """The table; of arrays, one that is made of them."""
        if self.table is not None:
            return self.table
        import polars as pl

        seen = self.seen
        columns: dict[str, Any] = {SERIES: np.repeat(self.ids, np.diff(self.bounds))}
        columns[STEP] = np.concatenate(seen.times).astype(np.int64)
        values, masks = np.concatenate(seen.sequences).astype(np.float64), np.concatenate(seen.masks)
        for place, column in enumerate(self.schema.values):
            shown = np.where(masks[:, place], values[:, place] * column.scale + column.shift, np.nan)
            columns[column.name] = pl.Series(shown).fill_nan(None)
        return pl.DataFrame(columns)

    @property
    def id_columns(self) -> dict[str, list[Any]]:
        """The id column of a table with one row for each series; empty where there is none."""
        return {} if self.schema.id is None else {self.schema.id: self.seen.ids}

    def padded(self, flat: Shaped[np.ndarray, "row *rest"]) -> Float[np.ndarray, "series time *rest"]:
        """Values of all rows, one series after the other, as an array with NaN past the end of each series."""
        lengths = np.diff(self.bounds)
        whole = np.full((len(lengths), int(lengths.max()), *flat.shape[1:]), np.nan)
        for index, (begin, end) in enumerate(pairwise(self.bounds)):
            whole[index, : end - begin] = flat[begin:end]
        return whole

    def returned(self, frame: Frame, *, by_row: bool = False) -> Any:
        """A table as the kind of frame that was given; with `by_row`, its rows are those of the given one."""
        return as_given(frame, self.given, same_rows=by_row)


def read_context(columns: tuple[Column, ...] | None, schema: TableSchema | None, given: Any) -> Context:
    """What a user gave for series.

    Args:
        columns: What the model's frames consist of, if a dataset describes it.
        schema: How the table was read that the model was trained on, if it was one.
        given: A table (a path or a frame), which needs a schema; a `Batch` or a `Split`, on the model's scale; or
            arrays as they were measured, with NaN for what is missing: [time, dim], [series, time, dim], or a list of
            [time, dim].
    """
    if isinstance(given, Split):
        return _of_arrays(given, None)
    if isinstance(given, Batch):
        return _of_arrays(_split_of(given), None)
    if isinstance(given, np.ndarray | jax.Array | list | tuple):
        return _of_arrays(_measured(given, columns), columns)
    frame = as_table(given)
    if schema is None:
        raise InputError(
            "a table can be read only by a run that was trained on one (`fivo fit my.csv`); give arrays or a Batch."
        )
    seen = apply_schema(schema, frame)
    for sentence in seen.warnings:
        warnings.warn(sentence, stacklevel=4)
    return Context(seen, frame, None if isinstance(given, str) or hasattr(given, "__fspath__") else given)


def _measured(given: Any, columns: tuple[Column, ...] | None) -> Split:
    """Arrays as they were measured, scaled as the run's data were; NaN is missing."""
    is_array = isinstance(given, np.ndarray | jax.Array)
    sequences = [given] if is_array and np.ndim(given) == 2 else given
    if (is_array and np.ndim(given) not in (2, 3)) or not len(sequences):
        as_batch(given)  # refuses it in a sentence
    batch = Batch.from_sequences(sequences, missing="nan")
    split = _split_of(batch)
    if columns is None or not any(column.is_scaled for column in columns):
        return split
    if len(columns) != split[0].shape[1]:
        raise InputError(f"frames must have {len(columns)} entries, as in training, got {split[0].shape[1]}.")
    shift, scale = (np.array([getattr(c, name) for c in columns]) for name in ("shift", "scale"))
    masks = split.masks or tuple(np.ones(x.shape, bool) for x in split)
    scaled = (np.where(m, (x - shift) / scale, 0) for x, m in zip(split, masks, strict=True))
    return Split(tuple(x.astype(np.float32) for x in scaled), split.masks)


def _split_of(batch: Batch) -> Split:
    """The sequences of a batch without their padding."""
    x, lengths = np.asarray(batch.observations), np.asarray(batch.lengths)
    if not len(lengths) or lengths.min() < 1:
        raise InputError("every series must have at least one row.")
    cut = lambda array: tuple(np.asarray(array)[i, :n] for i, n in enumerate(lengths))  # noqa: E731
    masks = None if batch.mask is None else cut(batch.mask)
    x = x if batch.mask is None else np.where(np.asarray(batch.mask), x, np.zeros((), x.dtype))
    return Split(cut(x), masks, None if batch.inputs is None else cut(batch.inputs))


def _of_arrays(split: Split, columns: tuple[Column, ...] | None) -> Context:
    """Series that are numbered, as are their steps."""
    if not len(split):
        raise InputError("there must be at least one series, got none.")
    dim = split[0].shape[1]
    columns = columns or tuple(Column(f"x{i}", "real") for i in range(dim))
    values = tuple(TableColumn(c.name, c.kind, c.shift, c.scale, c.categories) for c in columns)
    schema = TableSchema(values, TimeRule("rows"), SplitRule("series"), id=SERIES, time_column=STEP)
    lengths = split.lengths
    ends = np.cumsum(lengths)[:-1]
    seen = TableSequences(
        schema,
        list(range(len(split))),
        list(split),
        [np.ones(x.shape, bool) for x in split] if split.masks is None else list(split.masks),
        None if split.inputs is None else list(split.inputs),
        np.split(np.arange(lengths.sum()), ends),
        [np.arange(n, dtype=np.float64) for n in lengths],
    )
    return Context(seen, starts=split.starts)
