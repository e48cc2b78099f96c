"""What an .npz of plain numbers may hold: the arrays of `fivo.data.npz` with `kind` "columns" or without a kind.

| key | content |
|---|---|
| `train`, `valid`, `test` | `[N, T, D]`, or one sequence `[T, D]`; with lengths, sequences end to end or padded |
| `<split>_lengths` | the length of each sequence, integers |
| `<split>_mask` | booleans of the shape of the frames, true where an entry was observed; without it, NaN is missing |
| `<split>_inputs` | like the frames, with U columns: known quantities that are not modelled |
| `<split>_starts` | the first step of each sequence that is scored; those before it are context |
| `columns`, `kinds` | names and kinds (real, count, binary, category) of the D columns; guessed without |
| `shift`, `scale` | of each column: the frames are (x - shift) / scale of what was measured |
| `categories`, `categories_lengths` | labels of all columns end to end, and how many each of the D columns has |
| `input_columns`, `input_kinds`, `input_shift`, `input_scale` | the same of the inputs |

Only `train` is needed; without `valid` some of it is held out (`Dataset.from_arrays`).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from fivo.data.arrays import assemble
from fivo.data.budget import COLUMN_BYTES, ENTRY_BYTES, Budget
from fivo.data.columns import Column, ColumnKind, checked_column_kind
from fivo.data.dataset import Dataset
from fivo.data.foreign import refusing
from fivo.data.raw import RawSplit, found_missing
from fivo.data.splits import ALL_SPLITS as SPLITS
from fivo.errors import InputError

_PARTS = ("lengths", "mask", "inputs", "starts")
_FACTS = ("columns", "kinds", "shift", "scale")
COLUMNS_KEYS = {
    "kind",
    "categories",
    "categories_lengths",
    *SPLITS,
    *(f"{split}_{part}" for split in SPLITS for part in _PARTS),
    *_FACTS,
    *("input_columns", "input_kinds", "input_shift", "input_scale"),
}


def columns_arrays(dataset: Dataset) -> dict[str, np.ndarray]:
    """What is written of a dataset that is not sound."""
    arrays: dict[str, np.ndarray] = {"kind": np.array("columns")}
    for split, part in dataset.splits.items():
        if not len(part):
            continue
        arrays[split] = np.concatenate(part.sequences)
        arrays[f"{split}_lengths"] = part.lengths.astype(np.int32)
        if part.masks is not None:
            arrays[f"{split}_mask"] = np.concatenate(part.masks)
        if part.inputs is not None:
            arrays[f"{split}_inputs"] = np.concatenate(part.inputs)
        if part.starts is not None:
            arrays[f"{split}_starts"] = np.array(part.starts, np.int32)
    arrays |= dict(zip(_FACTS, _facts(dataset.columns), strict=True))
    labels = [label for column in dataset.columns for label in column.categories]
    if labels:
        arrays["categories"] = np.array(labels)
        arrays["categories_lengths"] = np.array([len(column.categories) for column in dataset.columns], np.int32)
    if dataset.input_columns:
        keys = ("input_columns", "input_kinds", "input_shift", "input_scale")
        arrays |= dict(zip(keys, _facts(dataset.input_columns), strict=True))
    return arrays


def _facts(columns: Sequence[Column]) -> tuple[np.ndarray, ...]:
    names, kinds = (np.array([getattr(column, key) for column in columns]) for key in ("name", "kind"))
    return names, kinds, np.array([c.shift for c in columns], float), np.array([c.scale for c in columns], float)


def from_columns_arrays(arrays: dict[str, np.ndarray], name: str, budget: Budget) -> Dataset:
    """The dataset of arrays that were read."""
    where = budget.where
    splits = {split: _raw(arrays, split, budget) for split in SPLITS if split in arrays}
    others = [key for key in arrays for split in SPLITS if key.startswith(f"{split}_") and split not in arrays]
    if others:
        raise InputError(f"{where} has an array {others[0]}, but no {others[0].partition('_')[0]}; add it.")
    width = splits["train"].sequences[0].shape[1]
    budget.spend(width * COLUMN_BYTES)
    names, kinds = (_texts(arrays, key, width, where) for key in ("columns", "kinds"))
    described = None
    if kinds is not None and ("shift" in arrays or "scale" in arrays or "categories" in arrays):
        chosen = names or [f"x{index}" for index in range(width)]
        shift, scale = (_numbers(arrays, key, width, where) for key in ("shift", "scale"))
        labels = _labels(arrays, width, where)
        checked: list[ColumnKind] = [
            checked_column_kind(kind, column) for column, kind in zip(chosen, kinds, strict=True)
        ]
        described = [Column(*facts) for facts in zip(chosen, checked, shift, scale, map(tuple, labels), strict=True)]
    elif kinds is None and {"shift", "scale", "categories"} & arrays.keys():
        raise InputError(f"{where} says how its columns were scaled, but not their `kinds`; add them.")
    inputs = splits["train"].inputs
    known = None if inputs is None else _input_columns(arrays, inputs[0].shape[1], where)
    return assemble(name, splits, names, kinds, described, None, known, already_scaled=True)


def _input_columns(arrays: dict[str, np.ndarray], width: int, where: str) -> list[Column] | None:
    names, kinds = (_texts(arrays, key, width, where) for key in ("input_columns", "input_kinds"))
    if names is None:
        return None
    shift, scale = (_numbers(arrays, key, width, where) for key in ("input_shift", "input_scale"))
    checked: list[ColumnKind] = [
        checked_column_kind(kind, name) for name, kind in zip(names, kinds or ["real"] * width, strict=True)
    ]
    return [Column(*facts) for facts in zip(names, checked, shift, scale, strict=True)]


def _raw(arrays: dict[str, np.ndarray], split: str, budget: Budget) -> RawSplit:
    where = f"{budget.where}: {split}"
    frames = arrays[split]
    if frames.ndim not in (2, 3) or frames.dtype.kind not in "biuf":
        raise InputError(
            f"{where} must be numbers of shape [time, D] or [sequence, time, D], got {frames.dtype} of shape "
            f"{list(frames.shape)}."
        )
    lengths = _integers(arrays, f"{split}_lengths", budget.where)
    budget.spend_sequences(_count(frames, lengths))
    budget.spend(frames.size * ENTRY_BYTES)
    if not frames.size:
        raise InputError(f"{where} is empty; remove it or give it at least one frame.")
    sequences = _cut(frames, lengths, where)
    masks, inputs = (arrays.get(f"{split}_{part}") for part in ("mask", "inputs"))
    if masks is not None and (masks.dtype != bool or masks.shape != frames.shape):
        raise InputError(
            f"{where}_mask must be booleans of shape {list(frames.shape)}, got {masks.dtype} of {list(masks.shape)}."
        )
    if inputs is not None:
        if inputs.dtype.kind not in "biuf" or inputs.shape[:-1] != frames.shape[:-1] or not inputs.size:
            raise InputError(
                f"{where}_inputs must be numbers of shape {[*frames.shape[:-1], 'U']}, got {inputs.dtype} of "
                f"{list(inputs.shape)}."
            )
        budget.spend(inputs.size * ENTRY_BYTES)
    starts = _integers(arrays, f"{split}_starts", budget.where)
    if starts is not None and len(starts) != len(sequences):
        raise InputError(f"{where}_starts must have one for each of {len(sequences)} sequences, got {len(starts)}.")
    return RawSplit(
        sequences,
        found_missing(sequences) if masks is None else _cut(masks, lengths, where),
        None if inputs is None else _cut(inputs, lengths, where),
        None if starts is None else starts.tolist(),
    )


def _count(frames: np.ndarray, lengths: np.ndarray | None) -> int:
    if lengths is not None:
        return len(lengths)
    return len(frames) if frames.ndim == 3 else 1


def _cut(frames: np.ndarray, lengths: np.ndarray | None, where: str) -> list[np.ndarray]:
    if lengths is None:
        return [frames] if frames.ndim == 2 else list(frames)
    if not len(lengths) or lengths.min() < 1:
        raise InputError(f"{where} sequence {int(lengths.argmin()) if len(lengths) else 0} is empty; remove it.")
    if frames.ndim == 3:
        if len(lengths) != len(frames) or lengths.max() > frames.shape[1]:
            raise InputError(
                f"{where} has {len(frames)} sequences of {frames.shape[1]} frames, but {len(lengths)} lengths up to "
                f"{lengths.max()}."
            )
        return [x[:length] for x, length in zip(frames, lengths.tolist(), strict=True)]
    # None is longer than all together, so that their sum does not overflow.
    total = int(lengths.sum()) if lengths.max() <= len(frames) else "more"
    if total != len(frames):
        raise InputError(f"{where} has {len(frames)} frames, but its lengths sum to {total}.")
    ends = np.cumsum(lengths, dtype=np.int64).tolist()
    return [frames[begin:end] for begin, end in pairwise([0, *ends])]


def _integers(arrays: dict[str, np.ndarray], key: str, where: str) -> np.ndarray | None:
    if key not in arrays:
        return None
    if arrays[key].ndim != 1 or arrays[key].dtype.kind not in "iu":
        raise InputError(
            f"{where}: {key} must be integers, one for each sequence, got {arrays[key].dtype} {key.rpartition('_')[2]} "
            f"of shape {list(arrays[key].shape)}."
        )
    return arrays[key]


def _texts(arrays: dict[str, np.ndarray], key: str, width: int, where: str) -> list[Any] | None:
    return None if key not in arrays else _listed(arrays[key], key, "U", width, where)


def _numbers(arrays: dict[str, np.ndarray], key: str, width: int, where: str) -> list[float]:
    if key not in arrays:
        return [1.0 if key.endswith("scale") else 0.0] * width
    return [float(value) for value in _listed(arrays[key], key, "iuf", width, where)]


def _labels(arrays: dict[str, np.ndarray], width: int, where: str) -> list[list[str]]:
    if "categories" not in arrays:
        return [[]] * width
    lengths = _integers(arrays, "categories_lengths", where)
    if lengths is None or len(lengths) != width or lengths.min() < 0 or lengths.max() > arrays["categories"].size:
        raise InputError(f"{where}: categories_lengths must say how many categories each of {width} columns has.")
    labels = _listed(arrays["categories"], "categories", "U", int(lengths.sum(dtype=np.int64)), where)
    ends = np.cumsum(lengths, dtype=np.int64).tolist()
    return [labels[begin:end] for begin, end in pairwise([0, *ends])]


def _listed(array: np.ndarray, key: str, kinds: str, count: int, where: str) -> list[Any]:
    if array.ndim != 1 or array.dtype.kind not in kinds or len(array) != count:
        what = "texts" if kinds == "U" else "numbers"
        raise InputError(f"{where}: {key} must be {count} {what}, got {array.dtype} of shape {list(array.shape)}.")
    with refusing(where, ".npz", f"fix its array {key}"):  # a text may be of code points that do not exist
        return array.tolist()
