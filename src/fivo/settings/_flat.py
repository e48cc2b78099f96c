"""Settings as users write them, flat, and as runs keep them, in sections."""

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
from msgspec import NODEFAULT, Meta

from fivo.errors import InputError
from fivo.settings._recipes import with_recipe
from fivo.settings._sections import OwnOptimizer, Settings, Source, Table

EXTENDABLE = {"steps", "patience", "log_every", "tensorboard"}
"""Settings that a run may be continued with changed: they leave what was already computed as it is."""
OWN = "own"
OF_OBJECTS = ("updates", "validation", OWN)
"""What settings say of objects that they cannot hold: digests, and the user's own values."""
SECTIONS: dict[str, tuple[type, ...]] = {
    field.name: get_args(field.type) or (field.type,)
    for field in msgspec.structs.fields(Settings)
    if field.name not in OF_OBJECTS
}
"""The kinds of every section; `training` has one."""
KINDS: dict[str, dict[str, type]] = {
    name: {str(kind.__struct_config__.tag): kind for kind in kinds}
    for name, kinds in SECTIONS.items()
    if len(kinds) > 1
}
DEFAULTS = Settings()
"""The settings of a run that names none."""
NAMED = ("model", "bound", "twist")
"""Sections whose kind users choose by the section's name."""


class Option(msgspec.Struct, frozen=True):
    """One setting as users write it.

    Args:
        name: Its flat name.
        section: The section that it belongs to.
        type: Its type, with limits and help.
        default: The default value.
        help: A sentence about it.
    """

    name: str
    section: str
    type: Any
    default: Any
    help: str


def options() -> dict[str, Option]:
    """Every setting by its flat name; the kinds of a section go by the section's name."""
    found: dict[str, Option] = {}
    for section, kinds in SECTIONS.items():
        default = getattr(DEFAULTS, section)
        if section in NAMED:
            names = tuple(kind for kind in KINDS[section] if kind != OWN)
            found[section] = Option(section, section, Literal[names], default.kind, _KIND_HELP[section])
        for kind in kinds:
            for field in msgspec.structs.fields(kind):
                if field.name not in found and kind.__struct_config__.tag != OWN and field.default is not NODEFAULT:
                    description = _description(field.type)
                    found[field.name] = Option(field.name, section, field.type, field.default, description)
    return found


_KIND_HELP = {
    "model": "The model.",
    "bound": "The training objective.",
    "twist": "How the bound sixo looks ahead; rnn by default.",
}


def _description(annotation: Any) -> str:
    return next((meta.description for meta in _metas(annotation) if meta.description), "")


def _metas(annotation: Any) -> Iterator[Meta]:
    yield from (meta for meta in getattr(annotation, "__metadata__", ()) if isinstance(meta, Meta))


OPTIONS = options()
"""Every option of `fit`, by its name in Python."""
ONLY_TABLES = frozenset(Table.__struct_fields__) - frozenset(Source.__struct_fields__)
"""Settings that say that data is a table."""
_DEFAULTS_OF: dict[Any, dict[str, Any]] = {
    "linear-gaussian": {
        "bound": "exact",
        "learning_rate": 0.001,
        "steps": 1000,
        "validate_every": 25,
        "log_every": 25,
        "patience": 12,
    }
}
"""Defaults of other sections that come with a model."""


def make_settings(flat: Mapping[str, Any], base: Settings = DEFAULTS) -> Settings:
    """Settings from plain values by their flat names.

    Args:
        flat: What differs from `base`; unknown names, values out of range, and settings that the chosen kind of a
            section does not have are refused in one sentence. A `recipe` expands to the settings that it names.
        base: Where everything else comes from. A section whose kind changes starts from that kind's defaults.

    Returns:
        The settings, checked.
    """
    given: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    if "recipe" in flat and isinstance(base.optimizer, OwnOptimizer):
        raise InputError("a recipe must come without an optimizer of your own, which it would replace.")
    flat = with_recipe({**_DEFAULTS_OF.get(flat.get("model", ""), {}), **flat})
    if flat.get("bound") == "sixo" and base.twist.kind == "none":
        flat = {"twist": "rnn", **flat}
    kinds = {section: getattr(base, section).kind for section in KINDS}
    if kinds["data"] == "source" and any(name in flat for name in ONLY_TABLES):
        kinds["data"] = "table"
    for name, value in flat.items():
        if name in KINDS and name in OPTIONS:
            kinds[name] = _known_kind(name, value)
    for name, value in flat.items():
        if name in KINDS and name in OPTIONS:
            continue
        if name not in OPTIONS:
            near = difflib.get_close_matches(name, OPTIONS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "`fivo fit --help` lists them."
            raise InputError(f"a setting must be an option of `fivo fit`, got {name!r:.60}; {hint}")
        section = OPTIONS[name].section
        if section in KINDS and name not in KINDS[section][kinds[section]].__struct_fields__:
            owner = f"a {section} of your own" if kinds[section] == OWN else f"the {section} {kinds[section]!r}"
            raise InputError(f"`{name}` must be left out with {owner}, which has no such setting, got {value!r:.60}.")
        given[section][name] = value
    built = {section: _section(section, kinds.get(section), given[section], base) for section in SECTIONS}
    return Settings(**built, **{name: getattr(base, name) for name in OF_OBJECTS})


def _known_kind(section: str, value: Any) -> str:
    known = [kind for kind in KINDS[section] if kind != OWN]
    if value not in known:
        raise InputError(f"`{section}` must be one of {', '.join(known)}, got {value!r:.60}.")
    return value


def _section(section: str, kind: str | None, given: dict[str, Any], base: Settings) -> Any:
    old = getattr(base, section)
    wanted = SECTIONS[section][0] if kind is None else KINDS[section][kind]
    kept = msgspec.structs.asdict(old) if type(old) is wanted else {}
    try:
        return msgspec.convert({**kept, **given, **({} if kind is None else {"kind": kind})}, wanted)
    except msgspec.ValidationError as error:
        problem, _, name = str(error).removesuffix("`").partition(" - at `$.")
        raise InputError(f"`{name}` must be {_wanted(name, problem)}, got {given.get(name)!r:.60}.") from None


KIND_WORDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "text"}
LIMIT_WORDS = {">=": "of at least", "<=": "of at most", ">": "greater than", "<": "less than"}


def _wanted(name: str, problem: str) -> str:
    """What a setting must be, from msgspec's "Expected `int` >= 1", "Expected `int`, got `str`" and "Invalid enum"."""
    said = re.match(r"Expected `(\w+)`(?: ([<>]=?) ([\d.]+))?", problem)
    if said is None or said[1] not in KIND_WORDS:
        return "one of " + ", ".join(str(choice) for choice in get_args(_plain_type(OPTIONS[name].type)))
    limit = f" {LIMIT_WORDS[said[2]]} {float(said[3]):,}".removesuffix(".0") if said[2] else ""
    return KIND_WORDS[said[1]] + limit


def _plain_type(annotation: Any) -> Any:
    return getattr(annotation, "__origin__", annotation) if list(_metas(annotation)) else annotation


def flattened(settings: Settings) -> dict[str, Any]:
    """All settings by their flat names.

    Args:
        settings: The settings.

    Returns:
        Plain values; objects of the user's own are represented by their names.
    """
    flat: dict[str, Any] = {}
    for section in SECTIONS:
        part = getattr(settings, section)
        values = msgspec.to_builtins(part)
        kind = values.pop("kind", None)
        if section in NAMED:
            flat[section] = values.get(f"{section}_name", kind)
        flat |= {name: value for name, value in values.items() if not name.endswith(("_name", "_digest"))}
    return flat | dict(settings.own)


def changed(settings: Settings) -> dict[str, Any]:
    """The settings that are not at their defaults.

    Args:
        settings: The settings.

    Returns:
        Plain values by their flat names.
    """
    return {
        name: value
        for name, value in flattened(settings).items()
        if name not in OPTIONS or value != OPTIONS[name].default
    }


def read_toml(path: str | Path) -> dict[str, Any]:
    """Read a TOML file.

    Args:
        path: The file.

    Returns:
        Its content; a file that is missing or not TOML is refused in one sentence.
    """
    try:
        return tomllib.loads(Path(path).read_text())
    except FileNotFoundError:
        raise InputError(f"the configuration {str(path)!r} does not exist; check the path.") from None
    except (ValueError, RecursionError, OSError) as error:
        raise InputError(f"the configuration {str(path)!r} is not readable TOML ({error}); correct it.") from None


OF_RUNS = (*OF_OBJECTS, "record")
"""What a run's config.toml holds besides settings: digests, the user's own values, and the run's identity."""


def read_settings(path: str | Path) -> dict[str, Any]:
    """Read settings from a TOML file, written flat, in sections, or as a run's own config.toml.

    Args:
        path: The file.

    Returns:
        The settings that it gives, by their flat names.
    """
    flat: dict[str, Any] = {}
    for name, value in read_toml(path).items():
        if name in OF_RUNS and isinstance(value, dict):
            continue
        if name not in SECTIONS or not isinstance(value, dict):
            flat[name] = value
            continue
        content = dict(value)
        kind = content.pop("kind", None) if name in KINDS else None
        if kind is not None and name in OPTIONS:
            flat[name] = kind
        elif kind is not None and (name, kind) != ("data", OWN):
            _known_kind(name, kind)
        flat |= content
    return flat


def from_record(content: Mapping[str, Any], where: str) -> Settings:
    """The settings that a run's own config.toml holds.

    Args:
        content: What the file says.
        where: The file, for messages.

    Returns:
        The settings; those of another version of this package are refused.
    """
    try:
        return msgspec.convert(dict(content), Settings)
    except msgspec.ValidationError as error:
        raise InputError(
            f"{where} has settings that this version of fivo does not know ({str(error).replace('`', '')}); read it "
            "with the version that wrote it (named in run.json)."
        ) from None
