"""config.toml: a run's settings for people to read, with the run's identity and a checksum at its end."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from fivo.errors import InputError
from fivo.files import DamagedError
from fivo.runs._sealing import FORMAT, OLD, check_seal, checksum

RECORD = "record"
"""The table of the run's identity."""
REMEDY = (
    "restore it from a copy; to change settings, give them to `fivo fit` with --override instead of editing the file"
)


class Identity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The last table of the file."""

    format: int
    run: str
    """What ties the files of a run together."""
    changed_at: tuple[Annotated[int, Meta(ge=0)], ...] = ()
    """Steps at which settings were changed: such a run cannot be trained again from its beginning."""
    sha256: str


def encode_settings(settings: Mapping[str, Any], run: str, changed_at: Sequence[int] = ()) -> bytes:
    """The file's content."""
    record: dict[str, Any] = {"format": FORMAT, "run": run}
    if changed_at:
        record["changed_at"] = list(changed_at)
    try:
        return msgspec.toml.encode({**settings, RECORD: {**record, "sha256": _checksum(settings, record)}})
    except UnicodeEncodeError as error:
        raise InputError(f"a setting is no text ({error.object!r:.90}); rename the file or folder it names.") from None


def read_settings(path: Path) -> tuple[dict[str, Any], Identity]:
    """The settings and the run's identity, seen to be what was written."""
    where = repr(str(path))
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except OSError as error:
        raise InputError(f"{where} cannot be read ({error.strerror}); check the path.") from None
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{where} is damaged ({error!s:.90}); {REMEDY}.") from None
    record = content.pop(RECORD, None)
    if record is None and "sha256" not in text:
        raise InputError(
            f"{where} {OLD}; read it with the commit that wrote it (named in run.json), or train in another --out."
        )
    if not isinstance(record, dict):
        raise DamagedError(f"{where} is damaged (its {RECORD} is no table); {REMEDY}.")
    given = {name: value for name, value in record.items() if name != "sha256"}
    check_seal(record, _checksum(content, given), where, REMEDY)
    try:
        return content, msgspec.convert(record, Identity)
    except msgspec.ValidationError as error:
        raise DamagedError(f"{where} is damaged ({error!s:.90}); {REMEDY}.") from None


def _checksum(settings: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    return checksum({**settings, RECORD: record})
