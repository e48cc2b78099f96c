"""Frames of recordings, decoded once: a file of float32 frames that is memory-mapped from then on.

`KEY.npy` holds the frames of all splits end to end, `KEY.json` what belongs to them; the second is written last and
says that the first is whole. KEY is the SHA-256 of what the recordings hold and of how they are cut, so a changed
recording makes a new entry and a moved one does not. The folder may be removed at any time.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fivo.data.compression import read_raw
from fivo.data.dataset import SPLITS, Dataset, Scaling
from fivo.data.places import cache_dir
from fivo.data.speech.framing import SampleMoments, as_frames, num_frames
from fivo.data.speech.recording import at_rate, decode
from fivo.errors import InputError
from fivo.files import replacing, write_atomically

_VERSION = 1


class Cutting(NamedTuple):
    """How recordings become frames."""

    frame: int
    rate: int
    resample: bool


def cached_dataset(name: str, files: Mapping[str, Sequence[Path]], cutting: Cutting) -> Dataset:
    """The dataset of the given recordings, from the cache or through it."""
    entry = _Entry(cache_dir() / "frames" / _key(files, cutting))
    known = entry.read(files, cutting)
    if known is None:
        entry.write(name, files, cutting)
        known = entry.read(files, cutting)
    if known is None:
        raise InputError(
            f"{entry.frames} cannot be read back as it was written; check that disk, or set XDG_CACHE_HOME."
        )
    frames, facts = known
    ends = np.cumsum([0, *(length for split in SPLITS for length in facts["lengths"][split])])
    pieces = iter([frames[begin:end] for begin, end in pairwise(ends)])
    splits = {split: tuple(next(pieces) for _ in facts["lengths"][split]) for split in SPLITS}
    scaling = Scaling(facts["mean"], facts["deviation"])
    dataset = Dataset(name, "waveform", splits, cutting.frame / cutting.rate, scaling=scaling)
    # Known since the frames were written: computing them would read every page of the map.
    vars(dataset).update(fingerprint=facts["fingerprint"], train_mean=np.asarray(facts["train_mean"]))
    return dataset


def _key(files: Mapping[str, Sequence[Path]], cutting: Cutting) -> str:
    digest = hashlib.sha256(json.dumps([_VERSION, *cutting]).encode())
    for split in SPLITS:
        digest.update(f"\n{split}".encode())
        for path in files[split]:
            digest.update(hashlib.sha256(read_raw(path)).digest())
    return digest.hexdigest()


class _Entry:
    def __init__(self, base: Path) -> None:
        self.frames, self.facts = base.with_suffix(".npy"), base.with_suffix(".json")

    def read(self, files: Mapping[str, Sequence[Path]], cutting: Cutting) -> tuple[np.memmap, dict[str, Any]] | None:
        """The map and its facts; None when there is no entry, or it is damaged."""
        try:
            facts = json.loads(self.facts.read_text())
            frames = np.load(self.frames, mmap_mode="r", allow_pickle=False)
            total = sum(sum(facts["lengths"][split]) for split in SPLITS)
            counted = all(len(facts["lengths"][split]) == len(files[split]) for split in SPLITS)
        except (OSError, EOFError, ValueError, KeyError, TypeError):
            return None
        good = counted and frames.dtype == np.dtype("<f4") and frames.shape == (total, cutting.frame)
        return (frames, facts) if good and isinstance(frames, np.memmap) else None

    def write(self, name: str, files: Mapping[str, Sequence[Path]], cutting: Cutting) -> None:
        """Decode everything twice, a recording at a time: for the training statistics, and for the frames."""
        moments = SampleMoments()
        lengths: dict[str, list[int]] = {split: [] for split in SPLITS}
        for split in SPLITS:
            for path in files[split]:
                samples = _samples(path, cutting)
                lengths[split].append(num_frames(len(samples), cutting.frame))
                if split == "train":
                    moments.add(samples)
        scaling = moments.scaling(name)
        shape = (sum(map(sum, lengths.values())), cutting.frame)
        digest = hashlib.sha256(Dataset.fingerprint_start("waveform", cutting.frame))
        mean = np.zeros(cutting.frame)
        with replacing(self.frames) as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for split in SPLITS:
                digest.update(Dataset.fingerprint_part(split, lengths[split]))
                for path in files[split]:
                    frames = as_frames(_samples(path, cutting), cutting.frame, scaling).astype("<f4", copy=False)
                    content = frames.tobytes()
                    digest.update(content)
                    file.write(content)
                    if split == "train":
                        mean += frames.sum(axis=0, dtype=np.float64)
        facts = {
            "lengths": lengths,
            "mean": scaling.mean,
            "deviation": scaling.deviation,
            "train_mean": (mean / sum(lengths["train"])).tolist(),
            "fingerprint": digest.hexdigest(),
        }
        write_atomically(self.facts, json.dumps(facts).encode())


def _samples(path: Path, cutting: Cutting) -> np.ndarray:
    return at_rate(decode(read_raw(path), str(path)), cutting.rate, cutting.resample, str(path)).samples
