"""Records on disk: a version, a kind, the run they belong to, and a checksum over all of it."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import msgspec

from fivo.errors import InputError
from fivo.files import DamagedError, write_atomically

FORMAT = 1
"""The version of everything that this package writes into a run's directory."""
ENVELOPE = ("format", "kind", "run", "sha256")
OLD = "was written by a development version of fivo 0.1, before records had checksums"


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a program writes for programs to read: one JSON object in one file."""

    KIND: ClassVar[str]
    FILE: ClassVar[str]
    """Its name in a run's directory."""
    REMEDY: ClassVar[str]
    """What to do when it is lost or damaged."""


AnyRecord = TypeVar("AnyRecord", bound=Record)


def write_record(path: str | os.PathLike, record: Record, *, run: str | None = None) -> None:
    """Write a record, atomically and with a checksum.

    Args:
        path: The file.
        record: The record.
        run: The id of the run that it belongs to, if it belongs to one.
    """
    write_atomically(path, encode_record(record, run=run))


def encode_record(record: Record, *, run: str | None = None) -> bytes:
    """A record as it is on disk: {"format", "kind", "run", its own fields, "sha256"}.

    Args:
        record: The record; NaN and infinite numbers are refused.
        run: The id of the run that it belongs to, if it belongs to one.

    Returns:
        JSON that a person can read.
    """
    try:
        payload = msgspec.json.decode(msgspec.json.encode(record))
        # Infinity and NaN have become null, which would be refused when it is read.
        msgspec.convert(payload, type(record))
    except (msgspec.ValidationError, UnicodeError) as error:
        raise InputError(f"a {record.KIND} record cannot be written: {_problem(error)}.") from None
    content = {"format": FORMAT, "kind": record.KIND, **({} if run is None else {"run": run}), **payload}
    return msgspec.json.format(msgspec.json.encode({**content, "sha256": checksum(content)})) + b"\n"


def read_record(path: str | os.PathLike, kind: type[AnyRecord], *, run: str | None = None) -> AnyRecord:
    """Read a record; one that is damaged, of another kind or of another run is refused.

    Args:
        path: The file.
        kind: The class of the record.
        run: The id of the run that it must belong to, if any.

    Returns:
        The record.
    """
    return opened(read_object(path, kind.REMEDY), kind, path, run=run)


def read_object(path: str | os.PathLike, remedy: str) -> dict[str, Any]:
    """The JSON object of a file."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read ({error.strerror}); {remedy}.") from None
    try:
        return parse_object(content)
    except ValueError as error:
        raise DamagedError(f"{str(path)!r} is damaged ({error!s:.90}); {remedy}.") from None


def parse_object(content: bytes) -> dict[str, Any]:
    """A JSON object, or a `ValueError` whatever else it is."""
    try:
        value = msgspec.json.decode(content)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    return value


def opened(content: Mapping[str, Any], kind: type[AnyRecord], path: str | os.PathLike, *, run: str | None) -> AnyRecord:
    """The record that a JSON object holds; what is wrong with it is one sentence that names `path`."""
    where, remedy = repr(str(path)), kind.REMEDY
    try:
        expected = checksum({name: value for name, value in content.items() if name != "sha256"})
    except (UnicodeError, RecursionError) as error:
        raise DamagedError(f"{where} is damaged ({_problem(error)}); {remedy}.") from None
    check_seal(content, expected, where, remedy)
    if content.get("kind") != kind.KIND:
        raise InputError(f"{where} is a {content.get('kind')!r:.40} record, not a {kind.KIND!r} record; {remedy}.")
    if run is not None:
        check_run(content.get("run"), run, where)
    try:
        return msgspec.convert({name: value for name, value in content.items() if name not in ENVELOPE}, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise DamagedError(f"{where} is damaged ({_problem(error)}); {remedy}.") from None


def check_seal(content: Mapping[str, Any], expected: str, where: str, remedy: str) -> None:
    """Refuse what has no checksum, is of another version, or whose checksum is not the one expected."""
    if "sha256" not in content and "format" not in content:
        raise InputError(f"{where} {OLD}; read it with the commit that wrote it (named in run.json), or make it again.")
    version = content.get("format")
    if version != FORMAT:
        raise InputError(
            f"{where} has format {version!r:.20} where this version of fivo reads format {FORMAT}; install a newer "
            f"fivo, or if the file is damaged {remedy}."
        )
    if content.get("sha256") != expected:
        raise DamagedError(f"{where} is damaged (its checksum is wrong); {remedy}.")


def check_run(found: object, run: str, where: str) -> None:
    """Refuse the file of another run."""
    if found != run:
        raise InputError(
            f"{where} belongs to another run ({found!s:.40}, not {run}); put this run's own file back, or remove it "
            "and run the same command again."
        )


def checksum(content: Mapping[str, Any]) -> str:
    """SHA-256 of the JSON of an object with sorted keys and no spaces, as msgspec writes it."""
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()


def _problem(error: Exception) -> str:
    """What msgspec says, as a part of a sentence."""
    text = " ".join(str(error).replace("`", "").split())
    return f"{text[:1].lower()}{text[1:90]}"
