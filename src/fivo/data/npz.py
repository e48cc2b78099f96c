"""The package's own format: one .npz with the frames of each split, and how long its sequences are.

| key | content |
|---|---|
| `train`, `valid`, `test` | numbers: the frames of all sequences end to end `[frames, D]`, or `[N, T, D]` |
| `train_lengths`, `valid_lengths`, `test_lengths` | the length of each sequence, integers |
| `kind` | `pianoroll`, `waveform` or `columns`; without it, frames of 88 columns, or packed ones, are a pianoroll |

A pianoroll may have `steps_per_quarter` (frames to the quarter note; 2 by default) and may be bit-packed: its 88
columns become the 11 bytes of `numpy.packbits(frames, axis=1)`. A waveform needs `step_seconds` (how long a frame
sounds) and has `mean` and `deviation` if it was standardised with them. What else `columns` may have is in
`fivo.data.npz_columns`.
"""

import io
import math
import zipfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np

from fivo.data.budget import ZIP_MEMBERS, Budget
from fivo.data.dataset import Dataset
from fivo.data.foreign import refusing
from fivo.data.frames import DTYPES, Frames, Kind, checked_kind, checked_positive
from fivo.data.npy import read_array
from fivo.data.npz_columns import COLUMNS_KEYS, columns_arrays, from_columns_arrays
from fivo.data.sound import NOTES, Music, Scaling, Speech
from fivo.data.splits import SPLITS
from fivo.errors import InputError
from fivo.files import replacing

_PACKED = NOTES // 8
_REQUIRED = {key for split in SPLITS for key in (split, f"{split}_lengths")}
_OPTIONAL = {"kind", "steps_per_quarter", "step_seconds", "mean", "deviation"}
_ADVICE = "save it with `fivo.data.save_npz` or get a fresh copy"
_DIRECTORY_ENTRY = b"PK\x01\x02"


def save_npz(dataset: Dataset, path: str | Path) -> None:
    """Write a dataset for `load`; equal datasets give equal bytes.

    Args:
        dataset: The dataset.
        path: The file.
    """
    arrays = columns_arrays(dataset) if dataset.sound is None else _sound_arrays(dataset, dataset.sound)
    # Written member by member, because numpy.savez does not promise the same bytes twice.
    with replacing(Path(path)) as file, zipfile.ZipFile(file, "w") as archive:
        for key, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, array, version=(1, 0), allow_pickle=False)
            member = zipfile.ZipInfo(f"{key}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            member.compress_type = zipfile.ZIP_DEFLATED
            member.create_system = 3
            archive.writestr(member, content.getvalue(), compresslevel=9)


def _sound_arrays(dataset: Dataset, sound: Music | Speech) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    for split in SPLITS:
        frames = np.concatenate(dataset.splits[split].sequences)
        arrays[split] = np.packbits(frames, axis=1) if isinstance(sound, Music) else frames
        arrays[f"{split}_lengths"] = dataset.lengths(split).astype(np.int32)
    arrays["kind"] = np.array(dataset.kind)
    arrays["step_seconds"] = np.array(sound.step_seconds)
    if isinstance(sound, Music):
        arrays["steps_per_quarter"] = np.array(sound.steps_per_quarter, dtype=np.float64)
    elif sound.scaling is not None:
        arrays |= {"mean": np.array(sound.scaling.mean), "deviation": np.array(sound.scaling.deviation)}
    return arrays


def from_npz(content: bytes, name: str, steps_per_quarter: float | int | None, budget: Budget) -> Dataset:
    """Reads a whole .npz; `steps_per_quarter` serves a file that does not say it itself."""
    where = budget.where
    arrays = _arrays(content, budget)
    kind = _scalar(arrays, "kind", where, "U") or ("pianoroll" if _looks_like_music(arrays) else "columns")
    _check_keys(list(arrays), kind, where)
    if kind == "columns":
        return from_columns_arrays(arrays, name, budget)
    kind = checked_kind(kind, where)
    stated, seconds = (_scalar(arrays, key, where, "iuf") for key in ("steps_per_quarter", "step_seconds"))
    for key, value in (("steps_per_quarter", stated), ("step_seconds", seconds)):
        if value is not None:
            checked_positive(value, f"{where}: `{key}`")
    splits = {
        split: tuple(_cut(arrays[split], arrays[f"{split}_lengths"], kind, f"{where}: {split}", budget))
        for split in SPLITS
    }
    if kind == "pianoroll":
        if None not in (stated, steps_per_quarter) and stated != steps_per_quarter:
            raise InputError(
                f"{where} says that it has {stated} steps to the quarter note, but {steps_per_quarter} were asked for."
            )
        return Dataset.pianoroll(name, splits, stated or steps_per_quarter or 2.0, seconds)
    if seconds is None:
        raise InputError(f"{where} holds a {kind} without `step_seconds`; add how long a frame sounds.")
    mean, deviation = (_scalar(arrays, key, where, "f") for key in ("mean", "deviation"))
    if mean is None and deviation is None:
        return Dataset.waveform(name, splits, seconds)
    if mean is None or deviation is None or not (math.isfinite(mean) and 0 < deviation < math.inf):
        raise InputError(f"{where} has the mean {mean} and the deviation {deviation}; give both, the second positive.")
    return Dataset.waveform(name, splits, seconds, Scaling(mean, deviation))


def _arrays(content: bytes, budget: Budget) -> dict[str, np.ndarray]:
    where = budget.where
    if content.count(_DIRECTORY_ENTRY) > ZIP_MEMBERS:  # before `zipfile` makes an object of each
        raise InputError(f"{where} is not a readable .npz: it has more than {ZIP_MEMBERS} members; get a fresh copy.")
    with refusing(where, ".npz", _ADVICE), zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        keys = [member.filename.removesuffix(".npy") for member in members]
        if len(keys) > len(set(keys)):
            raise InputError(f"{where} has an array twice; get a fresh copy.")
        unknown = sorted(set(keys) - _REQUIRED - _OPTIONAL - COLUMNS_KEYS)
        if unknown:
            known = ", ".join(sorted(_REQUIRED | _OPTIONAL | COLUMNS_KEYS))
            raise InputError(f"{where} has an unknown array {unknown[0]!r:.60}; it may have {known}.")
        return {key: _array(archive, member, budget) for key, member in zip(keys, members, strict=True)}


def _looks_like_music(arrays: dict[str, np.ndarray]) -> bool:
    """Whether a file that does not say its kind has frames of a piano's notes, or packed ones, and nothing else."""
    frames = [arrays[split] for split in SPLITS if split in arrays]
    if not arrays.keys() <= _REQUIRED | _OPTIONAL or any(array.ndim == 3 for array in frames):
        return False
    flat = [array for array in frames if array.ndim == 2]
    packed = any(array.shape[1] == _PACKED and array.dtype == np.uint8 for array in flat)
    return packed or any(array.shape[1] == NOTES for array in flat)


def _check_keys(keys: list[str], kind: str, where: str) -> None:
    required = {"train"} if kind == "columns" else _REQUIRED
    optional = COLUMNS_KEYS if kind == "columns" else _OPTIONAL
    missing, others = sorted(required - set(keys)), sorted(set(keys) - required - optional)
    if missing or others:
        problem = f"has no array {missing[0]}" if missing else f"has an array {others[0]} that a {kind} does not have"
        raise InputError(
            f"{where} {problem}; it needs {', '.join(sorted(required))} and may have {', '.join(sorted(optional))}."
        )


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, budget: Budget) -> np.ndarray:
    # The other ways to compress are never used for an .npz, and zipfile decompresses them without a limit.
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"it is compressed by method {member.compress_type}")
    budget.spend(member.file_size)
    with archive.open(member) as file:
        return read_array(cast(io.BufferedIOBase, file), member.file_size)


def _scalar(arrays: dict[str, np.ndarray], key: str, where: str, kinds: str) -> Any:
    if key not in arrays:
        return None
    value = arrays[key]
    if value.ndim or value.dtype.kind not in kinds:
        raise InputError(f"{where}: {key} is {value.dtype} of shape {list(value.shape)}, but a single value is needed.")
    with refusing(where, ".npz", _ADVICE):  # a text may be of code points that do not exist
        return value.item()


def _cut(frames: np.ndarray, lengths: np.ndarray, kind: Kind, where: str, budget: Budget) -> Iterator[Frames]:
    if frames.ndim != 2 or lengths.ndim != 1 or lengths.dtype.kind not in "iu":
        raise InputError(
            f"{where} has shape {list(frames.shape)} and {lengths.dtype} lengths; [frames, D] and integers are needed."
        )
    budget.spend_sequences(lengths.size)
    if lengths.size and lengths.min() < 1:
        raise InputError(f"{where} sequence {int(lengths.argmin())} is empty; remove it or give it at least one frame.")
    # None is longer than all together, so that their sum does not overflow.
    total = int(lengths.sum()) if not lengths.size or lengths.max() <= len(frames) else "more"
    if total != len(frames):
        raise InputError(f"{where} has {len(frames)} frames, but its lengths sum to {total}.")
    if kind == "pianoroll" and frames.dtype == np.uint8 and frames.shape[1] == _PACKED:
        budget.spend(len(frames) * NOTES)
        frames = np.unpackbits(frames, axis=1)
        frames.setflags(write=False)
    elif frames.dtype != DTYPES[kind] or not frames.flags.c_contiguous:  # `Dataset` converts it
        budget.spend(frames.size * DTYPES[kind].itemsize)
    ends = np.cumsum(lengths, dtype=np.int64).tolist()
    return (frames[begin:end] for begin, end in pairwise([0, *ends]))
