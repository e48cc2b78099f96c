"""Which steps of which series are train, valid, calibrate and test: by time within each series, by series, or as told.

Every series is cut at `bounds[series]`: split `k` has the steps from `bounds[series, k]` to `bounds[series, k + 1]`. A
series that is in a later split has its earlier steps as context, so that nothing is scored as if its past were unknown.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Int64, Shaped

from fivo.data.budget import Budget
from fivo.data.foreign import shown
from fivo.data.splits import ALL_SPLITS
from fivo.data.tables.backend import Frame, polars
from fivo.data.tables.cells import cleaned, column_of
from fivo.data.tables.layout import Layout, lay_out
from fivo.data.tables.reading import as_table
from fivo.data.tables.schema import SplitRule, TableSchema
from fivo.errors import InputError

MANY_SERIES = 20
"""From this many on, whole series are held out unless something else is asked for."""
FRACTIONS = {"train": 0.8, "valid": 0.1, "test": 0.1}
Bounds = Int64[np.ndarray, "_series bounds"]


def split_rule(split: str | None, fractions: Mapping[str, float] | None, seed: int, laid: Layout) -> SplitRule:
    """What was asked for, or what fits the number of series."""
    if split is None:
        split = "series" if len(laid.ids) >= MANY_SERIES else "time"
    if split not in ("time", "series"):
        if fractions is not None:
            raise InputError(f"`fractions` are of no use where the column {shown(split)} names the splits; drop one.")
        return SplitRule("column", column=split)
    shares = dict(FRACTIONS if fractions is None else fractions)
    unknown = [name for name in shares if name not in ALL_SPLITS]
    if unknown:
        raise InputError(f"`fractions` must be of {', '.join(ALL_SPLITS)}, got {unknown[0]!r:.40}.")
    if not all(0 <= share <= 1 for share in shares.values()) or abs(sum(shares.values()) - 1) > 1e-6:
        raise InputError(f"`fractions` must be from 0 to 1 and have the sum 1, got {shares!r:.120}.")
    if not (shares.get("train") and shares.get("valid")):
        raise InputError(f"`fractions` must leave something for train and for valid, got {shares!r:.120}.")
    if not isinstance(seed, int) or seed < 0:
        raise InputError(f"`seed` must be a whole number from 0, got {seed!r:.40}.")
    return SplitRule("time" if split == "time" else "series", None, shares, seed)


def split_labels(schema: TableSchema, table: Any, part: str) -> tuple[list[Any], list[Shaped[np.ndarray, " _time"]]]:
    """What the sequences of a split are called, and the times of their steps, context included.

    Args:
        schema: how the table was read (`Dataset.table`).
        table: that table: a path or a frame.
        part: train (of tables that were not cut into windows), valid, calibrate or test.

    Returns:
        The ids, `[None]` without an id column, and the times, datetime64 or numbers, in the order of `Dataset.split`.
    """
    frame = as_table(table)
    laid = lay_out(frame, schema.id, schema.time_column, schema.time.every, Budget("the table"))
    bounds, k = bounds_of(schema.split, laid, frame), ALL_SPLITS.index(part)
    times = laid.times if laid.kind in ("rows", "number") else laid.times.astype("datetime64[us]")
    chosen = np.flatnonzero(bounds[:, k + 1] > bounds[:, k]).tolist()
    return [laid.ids[i] for i in chosen], [times[laid.offsets[i] :][: bounds[i, k + 1]] for i in chosen]


def bounds_of(rule: SplitRule, laid: Layout, frame: Frame) -> Bounds:
    """Where every series is cut."""
    if rule.kind == "column":
        found = _by_column(rule.column or "", laid, frame)
    else:
        shares = np.array([rule.fractions.get(name, 0.0) for name in ALL_SPLITS])
        found = _by_time(shares, laid) if rule.kind == "time" else _by_series(shares, rule, laid)
    sizes = np.diff(found, axis=1).sum(axis=0)
    for name, size in zip(ALL_SPLITS[:2], sizes[:2], strict=True):
        if not size:
            raise InputError(
                f"the {name} split must have at least one row, but none of {len(laid.rows)} rows in {len(laid.ids)} "
                f"series fell into it; split by {'series' if rule.kind == 'time' else 'time'} or give more data."
            )
    return found


def _by_time(shares: np.ndarray, laid: Layout) -> Bounds:
    """Each split that is held out has at least one step of every series that is long enough for all."""
    sizes = np.maximum(np.floor(laid.lengths[:, None] * shares[None, :] + 1e-9), shares[None, :] > 0).astype(np.int64)
    sizes[:, 0] = laid.lengths - sizes[:, 1:].sum(axis=1)
    short = sizes[:, 0] < 1
    sizes[short] = 0
    sizes[short, 0] = laid.lengths[short]
    return np.concatenate([np.zeros((len(laid.ids), 1), np.int64), np.cumsum(sizes, axis=1)], axis=1)


def _by_series(shares: np.ndarray, rule: SplitRule, laid: Layout) -> Bounds:
    count, wanted = len(laid.ids), int((shares > 0).sum())
    if count < wanted:
        raise InputError(f"splitting by series needs at least {wanted} of them, got {count}; split by time.")
    # Raw bits and a stable sort: unlike Generator.permutation, numpy promises these never to change.
    order = np.argsort(np.random.Philox(np.random.SeedSequence(rule.seed)).random_raw(count), kind="stable")
    ends = np.rint(np.minimum(np.cumsum(shares), 1.0) * count).astype(np.int64)
    ends[-1] = count
    sizes = np.diff(np.concatenate([[0], ends]))
    for k in np.flatnonzero((shares > 0) & (sizes == 0)):
        sizes[k] += 1
        sizes[np.argmax(sizes)] -= 1
    split_of = np.empty(count, np.int64)
    split_of[order] = np.repeat(np.arange(len(ALL_SPLITS)), sizes)
    return np.where(np.arange(len(ALL_SPLITS) + 1)[None, :] > split_of[:, None], laid.lengths[:, None], 0)


def _by_column(name: str, laid: Layout, frame: Frame) -> Bounds:
    pl = polars()
    texts = cleaned(column_of(frame, name)).str.to_lowercase()
    places = pl.Series(range(len(ALL_SPLITS)), dtype=pl.Int64)
    codes = texts.replace_strict(pl.Series(ALL_SPLITS), places, default=None)
    if codes.null_count():
        row = int(codes.is_null().arg_max() or 0)
        raise InputError(
            f"column {shown(name)} must say {', '.join(ALL_SPLITS[:-1])} or {ALL_SPLITS[-1]} in every row, got "
            f"{shown(texts[row])} in row {row + 1}."
        )
    by_row = codes.to_numpy()
    there = laid.rows >= 0
    last = np.maximum.accumulate(np.where(there, np.arange(len(there)), 0))  # a step of the grid is like the one before
    by_step = by_row[laid.rows[last]]
    back = (np.diff(by_step) < 0) & (np.diff(laid.series) == 0)
    if back.any():
        row = int(laid.rows[np.argmax(back) + 1])
        raise InputError(
            f"within a series, column {shown(name)} must go from train to valid to calibrate to test in time, but row "
            f"{row + 1} goes back."
        )
    counts = np.zeros((len(laid.ids), len(ALL_SPLITS)), np.int64)
    np.add.at(counts, (laid.series, by_step), 1)
    return np.concatenate([np.zeros((len(laid.ids), 1), np.int64), np.cumsum(counts, axis=1)], axis=1)
