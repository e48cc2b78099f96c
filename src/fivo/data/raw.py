"""Sequences as they were given, before anything is known of their columns."""

import dataclasses
from typing import Any

import numpy as np

from fivo.data.columns import MOST_COLUMNS
from fivo.errors import InputError

FEW_SEQUENCES = 10
"""With fewer, validation is held out in time."""

Arrays = list[np.ndarray]


@dataclasses.dataclass(frozen=True)
class RawSplit:
    """Sequences as they were given."""

    sequences: Arrays
    masks: Arrays | None = None
    inputs: Arrays | None = None
    starts: list[int] | None = None

    def __getitem__(self, part: slice) -> "RawSplit":
        lists = (self.sequences, self.masks, self.inputs, self.starts)
        return RawSplit(*(None if given is None else given[part] for given in lists))  # pyright: ignore[reportArgumentType]


def as_sequences(given: Any, where: str) -> Arrays:
    """Arrays `[T, D]` from a list of them, one of them, or an array `[N, T, D]`."""
    if isinstance(given, np.ndarray) or hasattr(given, "__array__"):
        array = np.asarray(given)
        if array.ndim not in (2, 3) or array.dtype.kind not in "biuf":
            raise InputError(
                f"{where} must be numbers of shape [time, dimension] or [sequence, time, dimension], got {array.dtype} "
                f"of shape {list(array.shape)}; give a series of single numbers a last axis with x[:, None]."
            )
        given = [array] if array.ndim == 2 else list(array)
    try:
        pieces = list(given)
    except TypeError:
        raise InputError(f"{where} must be a list of arrays [time, dimension], got {given!r:.40}.") from None
    if not pieces:
        raise InputError(f"{where} must hold at least one sequence, got none.")
    arrays = []
    for index, piece in enumerate(pieces):
        try:
            array = np.asarray(piece)
        except ValueError:  # rows of different lengths
            array = np.empty(0, object)
        if array.ndim != 2 or array.dtype.kind not in "biuf" or not array.size:
            raise InputError(
                f"{where} sequence {index} must be numbers of shape [time, dimension], got {array.dtype} of shape "
                f"{list(array.shape)}."
            )
        arrays.append(array)
    if arrays[0].shape[1] > MOST_COLUMNS:
        raise InputError(f"{where} has {arrays[0].shape[1]:,} columns, more than {MOST_COLUMNS:,}; leave some out.")
    return arrays


def found_missing(arrays: Arrays) -> Arrays | None:
    """True where an entry is not NaN; None if none is."""
    if not any(x.dtype.kind == "f" and np.isnan(x).any() for x in arrays):
        return None
    return [~np.isnan(x) if x.dtype.kind == "f" else np.ones(x.shape, bool) for x in arrays]


def raw_split(given: Any, split: str, inputs: Any, masks: Any) -> RawSplit:
    """What was given for a split, if its parts fit each other."""
    sequences = as_sequences(given, f"`{split}`")
    if inputs is not None:
        inputs = as_sequences(inputs, f"the inputs of `{split}`")
        _check_steps(inputs, sequences, f"the inputs of `{split}`")
        if len({u.shape[1] for u in inputs}) > 1:
            raise InputError(
                f"the inputs of `{split}` must have one width, got {sorted({u.shape[1] for u in inputs})}."
            )
    if masks is None:
        return RawSplit(sequences, found_missing(sequences), inputs)
    masks = as_sequences(masks, f"the mask of `{split}`")
    _check_steps(masks, sequences, f"the mask of `{split}`")
    for index, (m, x) in enumerate(zip(masks, sequences, strict=True)):
        if m.dtype != bool or m.shape != x.shape:
            raise InputError(
                f"the mask of `{split}` sequence {index} must be booleans of shape {list(x.shape)}, got {m.dtype} of "
                f"shape {list(m.shape)}."
            )
    return RawSplit(sequences, masks, inputs)


def held_out(train: RawSplit, name: str) -> dict[str, RawSplit]:
    """Train and valid: the last tenth of the sequences, or of the steps if there are few sequences."""
    count = len(train.sequences)
    if count >= FEW_SEQUENCES:
        kept = count - count // FEW_SEQUENCES
        return {"train": train[:kept], "valid": train[kept:]}
    cuts = [len(x) - max(1, len(x) // FEW_SEQUENCES) for x in train.sequences]
    chosen = [i for i, cut in enumerate(cuts) if cut > 0]
    if not chosen:
        raise InputError(f"{name}: `valid` must be given, as sequences of one step leave none for it.")

    def beginnings(parts: Arrays | None) -> Arrays | None:
        return None if parts is None else [x[:cut] if cut > 0 else x for x, cut in zip(parts, cuts, strict=True)]

    def wholes(parts: Arrays | None) -> Arrays | None:
        return None if parts is None else [parts[i] for i in chosen]

    valid = RawSplit(
        [train.sequences[i] for i in chosen], wholes(train.masks), wholes(train.inputs), [cuts[i] for i in chosen]
    )
    begun = beginnings(train.sequences) or []
    return {"train": RawSplit(begun, beginnings(train.masks), beginnings(train.inputs)), "valid": valid}


def _check_steps(parts: Arrays, sequences: Arrays, what: str) -> None:
    got, needed = [len(part) for part in parts], [len(x) for x in sequences]
    if got != needed:
        raise InputError(f"{what} must have as many steps as the sequences, {needed[:5]}, got {got[:5]}.")
