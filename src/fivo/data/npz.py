"""The package's own format: one .npz with the frames of each split end to end, and their lengths.

| key | content |
|---|---|
| `train`, `valid`, `test` | the frames of all sequences, one after the other: `[frames, D]` numbers |
| `train_lengths`, `valid_lengths`, `test_lengths` | the length of each sequence, integers |
| `kind` | `pianoroll` (the default) or `waveform` |
| `steps_per_quarter` | frames to the quarter note; 2 by default for a pianoroll |
| `step_seconds` | how long a frame sounds; needed for a waveform |
| `mean`, `deviation` | what a waveform was standardised with, if it was |

A pianoroll may be bit-packed: its 88 columns become the 11 bytes of `numpy.packbits(frames, axis=1)`.
"""

import io
import math
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from fivo.data.compression import MAX_BYTES
from fivo.data.dataset import NOTES, SPLITS, Dataset, Frames, Scaling, checked_kind
from fivo.errors import InputError
from fivo.files import replacing

_PACKED = NOTES // 8
_REQUIRED = {key for split in SPLITS for key in (split, f"{split}_lengths")}
_OPTIONAL = {"kind", "steps_per_quarter", "step_seconds", "mean", "deviation"}
_MAGIC_VERSION = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def save_npz(dataset: Dataset, path: str | Path) -> None:
    """Writes a dataset for `load`; equal datasets give equal bytes."""
    arrays: dict[str, np.ndarray] = {}
    for split in SPLITS:
        frames = np.concatenate(dataset.splits[split])
        arrays[split] = np.packbits(frames, axis=1) if dataset.kind == "pianoroll" else frames
        arrays[f"{split}_lengths"] = dataset.lengths(split).astype(np.int32)
    arrays["kind"] = np.array(dataset.kind)
    arrays["step_seconds"] = np.array(dataset.step_seconds)
    if dataset.steps_per_quarter is not None:
        arrays["steps_per_quarter"] = np.array(dataset.steps_per_quarter, dtype=np.float64)
    if dataset.scaling is not None:
        arrays |= {"mean": np.array(dataset.scaling.mean), "deviation": np.array(dataset.scaling.deviation)}
    # Written member by member, because numpy.savez does not promise the same bytes twice.
    with replacing(Path(path)) as file, zipfile.ZipFile(file, "w") as archive:
        for key, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, array, version=(1, 0), allow_pickle=False)
            member = zipfile.ZipInfo(f"{key}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            member.compress_type = zipfile.ZIP_DEFLATED
            member.create_system = 3
            archive.writestr(member, content.getvalue(), compresslevel=9)


def from_npz(content: bytes, path: Path, name: str, steps_per_quarter: float | int | None = None) -> Dataset:
    """Reads a whole .npz; `steps_per_quarter` serves a file that does not say it itself."""
    arrays = _arrays(content, path)
    missing, unknown = sorted(_REQUIRED - set(arrays)), sorted(set(arrays) - _REQUIRED - _OPTIONAL)
    if missing or unknown:
        problem = f"has no array {missing[0]}" if missing else f"has an unknown array {unknown[0]!r:.60}"
        raise InputError(
            f"{path} {problem}; it needs {', '.join(sorted(_REQUIRED))} and may have {', '.join(sorted(_OPTIONAL))}."
        )
    kind = checked_kind(_scalar(arrays, "kind", path, "U") or "pianoroll", str(path))
    stated = _scalar(arrays, "steps_per_quarter", path, "iuf")
    seconds = _scalar(arrays, "step_seconds", path, "iuf")
    splits = {split: _cut(arrays[split], arrays[f"{split}_lengths"], kind, f"{path}: {split}") for split in SPLITS}
    if kind == "pianoroll":
        if None not in (stated, steps_per_quarter) and stated != steps_per_quarter:
            raise InputError(
                f"{path} says that it has {stated} steps to the quarter note, but {steps_per_quarter} were asked for."
            )
        return Dataset.pianoroll(name, splits, stated or steps_per_quarter or 2.0, seconds)
    if seconds is None:
        raise InputError(f"{path} holds a {kind} without `step_seconds`; add how long a frame sounds.")
    mean, deviation = (_scalar(arrays, key, path, "f") for key in ("mean", "deviation"))
    if (mean is None) != (deviation is None) or (deviation is not None and not 0 < deviation < math.inf):
        raise InputError(f"{path} has the mean {mean} and the deviation {deviation}; give both, the second positive.")
    scaling = None if mean is None or deviation is None else Scaling(mean, deviation)
    frames = {split: tuple(sequences) for split, sequences in splits.items()}
    return Dataset(name, kind, frames, seconds, scaling=scaling)


def _arrays(content: bytes, path: Path) -> dict[str, np.ndarray]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > MAX_BYTES:
                raise InputError(
                    f"{path} decompresses to more than {MAX_BYTES:,} bytes; refused as a decompression bomb."
                )
            # Reading the declared size, not "all", is what bounds a member whose header lies about it.
            return {
                member.filename.removesuffix(".npy"): _array(archive.open(member).read(member.file_size))
                for member in members
            }
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, KeyError, NotImplementedError, RuntimeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path} is not a readable .npz ({error}); save it with `fivo.data.save_npz` or get a fresh copy."
        ) from error


def _array(raw: bytes) -> np.ndarray:
    """An array from its .npy bytes, refusing objects and shapes that the bytes do not fill."""
    stream = io.BytesIO(raw)
    version = np.lib.format.read_magic(stream)
    if version not in _MAGIC_VERSION:
        raise ValueError(f"array format {version}")
    shape, fortran_order, dtype = _MAGIC_VERSION[version](stream)
    body = raw[stream.tell() :]
    if dtype.kind not in "biufU" or len(body) != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"an array of {dtype} that does not hold plain numbers of its shape")
    return np.frombuffer(body, dtype).reshape(shape, order="F" if fortran_order else "C")


def _scalar(arrays: dict[str, np.ndarray], key: str, path: Path, kinds: str) -> Any:
    if key not in arrays:
        return None
    value = arrays[key]
    if value.ndim or value.dtype.kind not in kinds:
        raise InputError(f"{path}: {key} is {value.dtype} of shape {list(value.shape)}, but a single value is needed.")
    return value.item()


def _cut(frames: np.ndarray, lengths: np.ndarray, kind: str, where: str) -> list[Frames]:
    if frames.ndim != 2 or lengths.ndim != 1 or lengths.dtype.kind not in "iu":
        raise InputError(
            f"{where} has shape {list(frames.shape)} and {lengths.dtype} lengths; [frames, D] and integers are needed."
        )
    if lengths.size and lengths.min() < 1:
        raise InputError(f"{where} sequence {int(lengths.argmin())} is empty; remove it or give it at least one frame.")
    if int(lengths.sum()) != len(frames):
        raise InputError(f"{where} has {len(frames)} frames, but its lengths sum to {int(lengths.sum())}.")
    if kind == "pianoroll" and frames.dtype == np.uint8 and frames.shape[1] == _PACKED:
        frames = np.unpackbits(frames, axis=1)
    return np.split(frames, np.cumsum(lengths)[:-1])
