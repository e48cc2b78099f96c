"""Named arrays and JSON in one safetensors file with a checksum; nothing in it is ever executed, and JAX is not needed.

The file's metadata hold `fivo` (the JSON), `fivo_format` (the version of this layout) and `sha256`: the SHA-256 of the
whole file with 64 zeros in the place of its digits, so that no bit of it can change unnoticed.
"""

import hashlib
import json
import os
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save as safetensors_bytes

from fivo.errors import InputError
from fivo.files import DamagedError, replacing

FORMAT = "1"
ZEROS = b"0" * 64
# Quotes inside names and metadata are escaped in the header, so that this can only be the checksum's own entry.
DIGEST = re.compile(rb'"sha256":"([0-9a-f]{64})"')
DTYPES: dict[str, Any] = {
    "BOOL": np.bool_,
    "U8": np.uint8,
    "I8": np.int8,
    "U16": np.uint16,
    "I16": np.int16,
    "U32": np.uint32,
    "I32": np.int32,
    "U64": np.uint64,
    "I64": np.int64,
    "F16": np.float16,
    "F32": np.float32,
    "F64": np.float64,
    "C64": np.complex64,
    "BF16": ml_dtypes.bfloat16,
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E5M2": ml_dtypes.float8_e5m2,
}
KNOWN = {np.dtype(dtype) for dtype in DTYPES.values()}


def write_tensors(
    path: str | os.PathLike,
    arrays: Mapping[str, np.ndarray],
    metadata: Mapping[str, Any],
    *,
    keep: Path | None = None,
) -> None:
    """Write named arrays of any layout, and JSON metadata, atomically; with `keep` the old file stays as that."""
    parts = _parts(arrays, metadata, path)
    with replacing(path, keep=keep) as file:
        for part in parts:
            file.write(part)


def tensor_bytes(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> bytes:
    """What `write_tensors` writes."""
    return b"".join(_parts(arrays, metadata, "the arrays"))


def _parts(
    arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any], where: str | os.PathLike
) -> tuple[bytes | memoryview, ...]:
    """The content of a file, in parts, so that large arrays are not copied once more."""
    plain = {name: plain_array(array) for name, array in arrays.items()}
    for name, array in plain.items():
        if array.dtype not in KNOWN:
            raise InputError(
                f"the array {name!r:.90} must hold numbers or booleans of at most 64 bits, got {array.dtype.name}; "
                "convert it."
            )
    try:
        text = json.dumps(dict(metadata), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the metadata of {str(where)!r} must be JSON, got something else ({error!s:.90}).") from None
    about = {"fivo": text, "fivo_format": FORMAT, "sha256": ZEROS.decode()}
    content = _ordered(memoryview(safetensors_bytes(plain, about)))
    start = _digest_place(content)
    return content[:start], _digest(content, start), content[start + len(ZEROS) :]


def read_tensors(path: str | os.PathLike) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the metadata of a file, once its checksum is seen to be right."""
    return tensors_of(_content(path), path)


def tensors_of(
    content: bytes | memoryview, path: str | os.PathLike = "the bytes"
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the metadata of what `tensor_bytes` made; `path` says in messages where it is from."""
    content = _verified(path, memoryview(content))
    metadata = _metadata(path, content)
    arrays = {}
    try:
        for name, entry in deserialize(bytes(content)):
            if entry["dtype"] not in DTYPES:
                raise InputError(f"{path} holds arrays of type {entry['dtype']}, which numpy does not have.")
            arrays[name] = np.frombuffer(entry["data"], np.dtype(DTYPES[entry["dtype"]])).reshape(entry["shape"])
    except (SafetensorError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise _not_whole(path, error) from None
    return arrays, metadata


def read_metadata(path: str | os.PathLike) -> dict[str, Any]:
    """The metadata of a file, once the checksum of all of it is seen to be right."""
    return _metadata(path, _verified(path, _content(path)))


def plain_array(array: np.ndarray) -> np.ndarray:
    """The array laid out row by row, in this machine's byte order: safetensors copies memory as it lies."""
    native = array.dtype.newbyteorder("=") if array.dtype.byteorder == ">" else array.dtype
    return np.asarray(array, native, order="C")


def _content(path: str | os.PathLike) -> memoryview:
    try:
        return memoryview(Path(path).read_bytes())
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; check the path.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check the path.") from None


def _verified(path: str | os.PathLike, content: memoryview) -> memoryview:
    start = _digest_place(content)
    if start < 0:
        raise _without_checksum(path, content)
    if content[start : start + len(ZEROS)] != _digest(content, start):
        raise DamagedError(f"{path} is damaged: its checksum is wrong; use another copy, or make it again.")
    return content


def _ordered(content: memoryview) -> memoryview:
    """The same file with its metadata in order: safetensors writes them in another one in every process."""
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(bytes(content[8 : 8 + size]))
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return memoryview(struct.pack("<Q", len(text)) + text + content[8 + size :])


def _digest_place(content: memoryview) -> int:
    """Where the checksum's digits begin, or -1."""
    found = DIGEST.search(_header(content))
    return -1 if found is None else 8 + found.start(1)


def _header(content: memoryview) -> memoryview:
    size = struct.unpack("<Q", content[:8])[0] if len(content) >= 8 else 0
    return content[8 : 8 + size]


def _digest(content: memoryview, start: int) -> bytes:
    digest = hashlib.sha256(content[:start])
    digest.update(ZEROS)
    digest.update(content[start + len(ZEROS) :])
    return digest.hexdigest().encode()


def _metadata(path: str | os.PathLike, content: memoryview) -> dict[str, Any]:
    about = _about(content)
    version = about.get("fivo_format")
    if version is None:
        raise _not_whole(path, "its header cannot be read")
    if version != FORMAT:
        raise InputError(
            f"{path} has format {version!s:.20} where this version of fivo reads format {FORMAT}; install a newer fivo."
        )
    try:
        metadata = json.loads(about["fivo"])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise _not_whole(path, error) from None
    if not isinstance(metadata, dict):
        raise _not_whole(path, "its metadata are no object")
    return metadata


def _about(content: memoryview) -> dict[str, Any]:
    """The header's own metadata; empty where there is none to be read."""
    try:
        about = json.loads(bytes(_header(content)))["__metadata__"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return {}
    return about if isinstance(about, dict) else {}


def _without_checksum(path: str | os.PathLike, content: memoryview) -> InputError:
    try:
        deserialize(bytes(content))
    except SafetensorError as error:
        return _not_whole(path, error)
    about = _about(content)
    if "fivo" in about and "fivo_format" not in about:
        return InputError(
            f"{path} was written by a development version of fivo 0.1, before files had checksums; read it with the "
            "commit that wrote it (a run's run.json names it), or make it again."
        )
    if "fivo_format" in about:
        return DamagedError(f"{path} is damaged: it has lost its checksum; use another copy, or make it again.")
    return InputError(f"{path} was not written by `fivo.save`; use the library that wrote it.")


def _not_whole(path: str | os.PathLike, problem: object) -> DamagedError:
    words = " ".join(str(problem).split())
    return DamagedError(
        f"{path} is not a whole safetensors file of fivo ({words:.90}); use another copy, or make it again."
    )
