"""Frames of recordings, decoded once: a file of float32 frames that is memory-mapped from then on.

`KEY.npy` holds the frames of all splits end to end, `KEY.json` what belongs to them; the second is written last and
says that the first is whole. KEY is the SHA-256 of what the recordings hold and of how they are cut, so a changed
recording makes a new entry and a moved one does not. The folder may be removed at any time.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from fivo.data.budget import FACTS_BYTES, Budget
from fivo.data.compression import open_regular, read_raw
from fivo.data.dataset import Dataset
from fivo.data.fingerprint import fingerprint_part, fingerprint_start
from fivo.data.npy import read_header
from fivo.data.places import cache_dir
from fivo.data.sound import Scaling
from fivo.data.speech.framing import SampleMoments, as_frames, num_frames
from fivo.data.speech.recording import at_rate, decode
from fivo.data.splits import SPLITS
from fivo.errors import InputError
from fivo.files import replacing, write_atomically

_VERSION = 1


class Cutting(NamedTuple):
    """How recordings become frames."""

    frame: int
    rate: int
    resample: bool


class _Facts(msgspec.Struct):
    """What belongs to cached frames."""

    lengths: dict[str, list[int]]
    mean: float
    deviation: float
    train_mean: list[float]
    fingerprint: str

    def fit(self, frames: np.ndarray, files: Mapping[str, Sequence[Path]], frame: int) -> bool:
        """Whether they can be those of the given frames of the given recordings."""
        lengths = [length for split in SPLITS for length in self.lengths.get(split, ())]
        return (
            all(len(self.lengths.get(split, ())) == len(files[split]) for split in SPLITS)
            and min(lengths) > 0
            and frames.shape == (sum(lengths), frame)
            and math.isfinite(self.mean)
            and 0 < self.deviation < math.inf
            and len(self.train_mean) == frame
        )


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
    ends = np.cumsum([0, *(length for split in SPLITS for length in facts.lengths[split])])
    pieces = iter([frames[begin:end] for begin, end in pairwise(ends)])
    splits = {split: tuple(next(pieces) for _ in facts.lengths[split]) for split in SPLITS}
    scaling = Scaling(facts.mean, facts.deviation)
    dataset = Dataset.waveform(name, splits, cutting.frame / cutting.rate, scaling)
    # Known since the frames were written: computing them would read every page of the map.
    vars(dataset).update(fingerprint=facts.fingerprint, train_mean=np.asarray(facts.train_mean))
    return dataset


def _key(files: Mapping[str, Sequence[Path]], cutting: Cutting) -> str:
    digest = hashlib.sha256(json.dumps([_VERSION, *cutting]).encode())
    for split in SPLITS:
        digest.update(f"\n{split}".encode())
        for path in files[split]:
            digest.update(hashlib.sha256(read_raw(path, Budget(path))).digest())
    return digest.hexdigest()


class _Entry:
    def __init__(self, base: Path) -> None:
        self.frames, self.facts = base.with_suffix(".npy"), base.with_suffix(".json")

    def read(self, files: Mapping[str, Sequence[Path]], cutting: Cutting) -> tuple[np.memmap, _Facts] | None:
        """The map and its facts; None when there is no entry, or it is damaged."""
        try:
            content = read_raw(self.facts, Budget(self.facts), FACTS_BYTES)
            facts = msgspec.json.decode(content, type=_Facts)
            with open_regular(self.frames) as file:
                shape, order, dtype = read_header(file)
                if order != "C" or dtype != np.dtype("<f4"):
                    return None
                frames = np.memmap(file, dtype, "r", file.tell(), shape)
        except (OSError, ValueError, OverflowError, RecursionError):  # InputError and msgspec's are ValueErrors
            return None
        return (frames, facts) if facts.fit(frames, files, cutting.frame) else None

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
        digest = hashlib.sha256(fingerprint_start("waveform", cutting.frame))
        mean = np.zeros(cutting.frame)
        with replacing(self.frames) as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for split in SPLITS:
                digest.update(fingerprint_part(split, lengths[split]))
                for path in files[split]:
                    frames = as_frames(_samples(path, cutting), cutting.frame, scaling).astype("<f4", copy=False)
                    digest.update(frames.reshape(-1).data)
                    file.write(frames.reshape(-1).data)
                    if split == "train":
                        mean += frames.sum(axis=0, dtype=np.float64)
        train_mean = (mean / sum(lengths["train"])).tolist()
        facts = _Facts(lengths, scaling.mean, scaling.deviation, train_mean, digest.hexdigest())
        write_atomically(self.facts, msgspec.json.encode(facts))


def _samples(path: Path, cutting: Cutting) -> np.ndarray:
    return at_rate(decode(read_raw(path, Budget(path)), str(path)), cutting.rate, cutting.resample, str(path)).samples
