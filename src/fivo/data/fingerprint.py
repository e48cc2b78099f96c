"""SHA-256 of what a dataset holds. Runs and results refer to it, so what it covers never changes."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fivo.data.columns import Column
from fivo.data.splits import SPLITS, Split


def fingerprint(
    kind: str, columns: Sequence[Column], input_columns: Sequence[Column], splits: Mapping[str, Split]
) -> str:
    """Of music and speech, the frames and where sequences end; of other data, all facts, masks and inputs too."""
    digest = hashlib.sha256(fingerprint_start(kind, len(columns)))
    plain = kind == "columns"
    if plain:
        facts = [[dataclasses.asdict(column) for column in group] for group in (columns, input_columns)]
        digest.update(json.dumps(facts, sort_keys=True).encode() + b"\n")
    for name in splits if plain else SPLITS:
        digest.update(fingerprint_part(name, splits[name].lengths.tolist()))
        for sequence in splits[name]:
            digest.update(_content(sequence))
        if plain:
            _update(digest, splits[name])
    return digest.hexdigest()


def fingerprint_start(kind: str, dimension: int) -> bytes:
    """What the fingerprint covers first; each split's `fingerprint_part` and little-endian frames follow."""
    return f"fivo-dataset {kind} {dimension}\n".encode()


def fingerprint_part(split: str, lengths: Sequence[int]) -> bytes:
    """What the fingerprint covers before the frames of a split."""
    return f"{split} {' '.join(map(str, lengths))}\n".encode()


def _update(digest: Any, part: Split) -> None:
    """Cover what a split has besides its frames; each part is announced, so that none can be taken for another."""
    for name in ("masks", "inputs", "starts"):
        values = getattr(part, name)
        digest.update(f"{name} {'none' if values is None else len(values)}\n".encode())
        for value in values or ():
            digest.update(_content(np.asarray(value)))


def _content(array: np.ndarray) -> memoryview:
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).data
