"""Signatures of classes whose `__init__` is made of their fields: Equinox modules, msgspec records, named tuples.

A griffe extension (mkdocs.yml, `extensions`): the reference is made from the source alone, where no `__init__` stands.
"""

from typing import Any

import griffe

MAKERS = ("eqx.Module", "msgspec.Struct", "NamedTuple")
"""Base classes that turn annotated fields into parameters, as they are spelled here."""


class FieldSignatures(griffe.Extension):
    """Give such classes the `__init__` that they have when they are imported."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Called once the whole package is read."""
        made = [(cls, made_init(cls)) for cls in classes(pkg, set())]
        for cls, init in made:
            if init is not None:
                cls.set_member("__init__", init)


def classes(place: griffe.Object, seen: set[str]) -> list[griffe.Class]:
    """The classes below a module or class."""
    found = []
    for member in place.members.values():
        if member.is_alias or member.path in seen:
            continue
        seen.add(member.path)
        if isinstance(member, griffe.Class):
            found.append(member)
        if isinstance(member, griffe.Class | griffe.Module):
            found += classes(member, seen)
    return found


def made_init(cls: griffe.Class) -> griffe.Function | None:
    """An `__init__` with a parameter for every field, those of base classes first; None where one is written."""
    line = [cls, *cls.mro()]
    if any("__init__" in one.members for one in line) or not any(str(b) in MAKERS for one in line for b in one.bases):
        return None
    fields: dict[str, griffe.Parameter] = {}
    for one in reversed(line):
        for name, member in one.members.items():
            if isinstance(member, griffe.Attribute) and is_field(member):
                kind = griffe.ParameterKind.positional_or_keyword
                fields[name] = griffe.Parameter(name, annotation=member.annotation, kind=kind, default=default(member))
    this = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
    return griffe.Function("__init__", parameters=griffe.Parameters(this, *fields.values()))


def is_field(member: griffe.Attribute) -> bool:
    """Whether an annotated name is a parameter: no class variable, not private, not computed."""
    annotation, value = str(member.annotation or ""), str(member.value or "")
    return bool(annotation) and "ClassVar" not in annotation and "init=False" not in value.replace(" ", "")


def default(member: griffe.Attribute) -> Any:
    """A field's default; `eqx.field(static=True)` is none."""
    value = str(member.value or "")
    if not value.startswith(("eqx.field(", "field(", "msgspec.field(")):
        return member.value
    inside = [part for part in value.split("(", 1)[1].rstrip(")").split(", ") if part.startswith("default=")]
    return inside[0].removeprefix("default=") if inside else None
