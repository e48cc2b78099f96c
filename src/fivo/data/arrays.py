"""`Dataset.from_arrays`: the user's numbers, with masks and inputs, and kinds guessed where none are given."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fivo.data.columns import (
    Column,
    ColumnKind,
    check_values,
    checked_column_kind,
    default_categories,
    guess_kind,
    moments,
    scaled,
)
from fivo.data.dataset import Dataset
from fivo.data.foreign import shown
from fivo.data.raw import Arrays, RawSplit, held_out, raw_split
from fivo.data.splits import ALL_SPLITS, SPLITS, Split
from fivo.errors import InputError


def from_arrays(
    given: Mapping[str, Any],
    name: str,
    inputs: Any,
    mask: Any,
    columns: Sequence[str | Column] | None,
    kinds: Any,
    input_columns: Sequence[str] | None,
    standardize: bool,
) -> Dataset:
    """What `Dataset.from_arrays` documents."""
    present = [split for split in SPLITS if given[split] is not None]
    if "train" not in present:
        raise InputError("`train` must hold at least one sequence, got None.")
    known, masks = _by_split(inputs, "inputs", present), _by_split(mask, "mask", present)
    splits = {split: raw_split(given[split], split, known.get(split), masks.get(split)) for split in present}
    described = None
    if columns is not None and all(isinstance(column, Column) for column in columns):
        described = tuple(column for column in columns if isinstance(column, Column))
    names = None if columns is None else [c.name if isinstance(c, Column) else str(c) for c in columns]
    return assemble(name, splits, names, kinds, described, input_columns, standardize=standardize)


def assemble(
    name: str,
    splits: dict[str, RawSplit],
    names: Sequence[str] | None,
    kinds: Any,
    described: Sequence[Column] | None,
    input_names: Sequence[str] | None = None,
    described_inputs: Sequence[Column] | None = None,
    *,
    standardize: bool = False,
    already_scaled: bool = False,
) -> Dataset:
    """A dataset of raw splits: hold out what is missing, find the columns, and scale."""
    width = splits["train"].sequences[0].shape[1]
    for split, part in splits.items():
        for index, x in enumerate(part.sequences):
            if x.shape[1] != width:
                raise InputError(f"{name}: {split} sequence {index} has {x.shape[1]} columns, but {width} are needed.")
    if "valid" not in splits:
        splits = {**splits, **held_out(splits["train"], name)}
    if described is None:
        described = _columns(name, splits, _names(names, width, "x", "columns"), kinds)
    elif len(described) != width:
        raise InputError(f"{name}: `columns` must describe all {width} columns, got {len(described)}.")
    for split, part in splits.items():
        for i, x in enumerate(part.sequences):
            check_values(described, x, None if part.masks is None else part.masks[i], f"{name}: {split} sequence {i}")
    if standardize:
        described = _standardized(described, splits["train"].sequences, splits["train"].masks)
    if described_inputs is None:
        described_inputs = _input_columns(name, splits["train"], input_names, standardize)
    empty = RawSplit([])
    present = [split for split in ALL_SPLITS if split in SPLITS or split in splits]
    return Dataset(
        name,
        {split: _split(splits.get(split, empty), described, described_inputs, already_scaled) for split in present},
        tuple(described),
        tuple(described_inputs),
    )


def _split(part: RawSplit, columns: Sequence[Column], input_columns: Sequence[Column], already_scaled: bool) -> Split:
    sequences, inputs = part.sequences, part.inputs
    if not already_scaled:
        if any(column.is_scaled for column in columns):
            sequences = [scaled(columns, x) for x in sequences]
        if inputs is not None and any(column.is_scaled for column in input_columns):
            inputs = [scaled(input_columns, u) for u in inputs]
    return Split(
        tuple(sequences),
        None if part.masks is None else tuple(part.masks),
        None if inputs is None else tuple(inputs),
        None if part.starts is None else tuple(part.starts),
    )


def _by_split(given: Any, what: str, present: list[str]) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        if present != ["train"]:
            raise InputError(
                f"`{what}` must be a dictionary by split where there are {' and '.join(present)}, got a "
                f"{type(given).__name__}."
            )
        return {"train": given}
    unknown = [split for split in given if split not in present]
    if unknown:
        raise InputError(f"`{what}` must be for {', '.join(present)}, got {unknown[0]!r:.40}.")
    return {split: value for split, value in given.items() if value is not None}


def _names(names: Sequence[str] | None, width: int, letter: str, what: str) -> list[str]:
    chosen = [f"{letter}{index}" for index in range(width)] if names is None else list(names)
    if len(chosen) != width:
        raise InputError(f"`{what}` must name all {width} columns, got {len(chosen)}.")
    return chosen


def _columns(name: str, splits: Mapping[str, RawSplit], names: list[str], kinds: Any) -> tuple[Column, ...]:
    told = _told_kinds(kinds, names)
    found = []
    for index, column in enumerate(names):
        values = np.concatenate([_observed(splits[split], index) for split in ("train", "valid")])
        if not len(values):
            raise InputError(
                f"{name}: column {shown(column)} must have a value in train, but all are missing; leave it out."
            )
        kind = told.get(index) or guess_kind(values[np.isfinite(values)] if values.dtype.kind == "f" else values)
        categories = default_categories(float(values.max()), column) if kind == "category" else ()
        found.append(Column(column, kind, categories=categories))
    return tuple(found)


def _observed(part: RawSplit, index: int) -> np.ndarray:
    if part.masks is None:
        return np.concatenate([x[:, index] for x in part.sequences])
    return np.concatenate([x[m[:, index], index] for x, m in zip(part.sequences, part.masks, strict=True)])


def _told_kinds(kinds: Any, names: list[str]) -> dict[int, ColumnKind]:
    """Kinds by position."""
    if kinds is None:
        return {}
    if isinstance(kinds, str):
        kinds = [kinds] * len(names)
    if isinstance(kinds, Mapping):
        by_place = {names.index(key) if key in names else key: kind for key, kind in kinds.items()}
        unknown = [key for key in by_place if not isinstance(key, int) or not 0 <= key < len(names)]
        if unknown:
            raise InputError(f"`kinds` must be for columns that are there, got {unknown[0]!r:.40}.")
    else:
        if len(kinds) != len(names):
            raise InputError(f"`kinds` must have one kind for each of {len(names)} columns, got {len(kinds)}.")
        by_place = dict(enumerate(kinds))
    return {place: checked_column_kind(kind, names[place]) for place, kind in by_place.items()}


def _standardized(columns: Sequence[Column], sequences: Arrays, masks: Arrays | None) -> tuple[Column, ...]:
    """Real columns that are not scaled yet get the mean and deviation of what was observed."""
    means, deviations = moments(sequences, masks)
    return tuple(
        dataclasses.replace(column, shift=float(mean), scale=float(deviation))
        if column.kind == "real" and not column.is_scaled
        else column
        for column, mean, deviation in zip(columns, means, deviations, strict=True)
    )


def _input_columns(name: str, train: RawSplit, names: Sequence[str] | None, standardize: bool) -> tuple[Column, ...]:
    if train.inputs is None:
        if names:
            raise InputError(f"{name}: `input_columns` names {len(names)} inputs, but train has none; give `inputs`.")
        return ()
    chosen = _names(names, train.inputs[0].shape[1], "u", "input_columns")
    kinds = [guess_kind(np.concatenate([u[:, i] for u in train.inputs])) for i in range(len(chosen))]
    columns = tuple(
        Column(column, "binary" if kind == "binary" else "real") for column, kind in zip(chosen, kinds, strict=True)
    )
    return _standardized(columns, train.inputs, None) if standardize else columns
