"""Every public name says what it is, what each argument is, and what comes back."""

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

ROOMS = (
    "fivo", "batch", "bounds", "config", "constants", "data", "devices", "distributions", "experiments", "gradients",
    "inference", "models", "report", "resampling", "runs", "serialization", "settings", "smc", "training", "weights",
)  # fmt: skip


def public(room: str) -> Iterator[tuple[str, Any]]:
    """The names of a room, and the methods that its classes define or override."""
    module = importlib.import_module("fivo" if room == "fivo" else f"fivo.{room}")
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.ismodule(thing) or not getattr(thing, "__module__", "fivo").startswith("fivo"):
            continue
        if inspect.isclass(thing) or inspect.isfunction(thing):
            yield name, thing
        if inspect.isclass(thing):
            fields = inspect.get_annotations(thing)
            for own, value in list(vars(thing).items()):
                if own in fields:  # a function as a field's default is no method
                    continue
                method = getattr(value, "__func__", value)  # of a class method
                if inspect.isfunction(inspect.unwrap(method)) and (own == "__call__" or not own.startswith("_")):
                    yield f"{name}.{own}", getattr(thing, own)
                elif isinstance(value, property) and not own.startswith("_"):
                    yield f"{name}.{own}", value


def described(text: str) -> set[str]:
    """The arguments that a docstring's `Args:` names."""
    section = re.search(r"^Args:\n((?:[ ]+.*\n|\n)*)", text + "\n", re.M)
    if section is None:
        return set()
    heads = re.findall(r"^ {4}(\*{0,2}\w+(?:, \*{0,2}\w+)*):", section[1], re.M)
    return {name.lstrip("*") for head in heads for name in head.split(", ")}


def described_below(thing: Any) -> set[str]:
    """The fields of a class that have a sentence of their own: below them, or in the help of an option."""
    found: set[str] = set()
    for kind in inspect.getmro(thing):
        if not kind.__module__.startswith("fivo"):
            continue
        for name, annotation in inspect.get_annotations(kind).items():
            if any(getattr(meta, "description", None) for meta in getattr(annotation, "__metadata__", ())):
                found.add(name)
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
        for field, after in pairwise(getattr(tree, "body", [])):
            said = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if said and isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                found.add(field.target.id)
    return found


def faults(thing: Any) -> list[str]:
    """What is missing from a docstring."""
    text = inspect.getdoc(thing) or ""
    if not text:
        return ["a docstring"]
    if isinstance(thing, property):
        return []
    try:
        signature = inspect.signature(thing)
    except ValueError:
        return []
    bound = not inspect.isclass(thing) and inspect.ismethod(thing)
    parameters = [p for p in signature.parameters.values() if p.name not in ("self", "cls") and p.name[0] != "_"]
    if inspect.isclass(thing) and (getattr(thing, "_is_protocol", False) or issubclass(thing, BaseException)):
        parameters = []
    known = described(text) | (described_below(thing) if inspect.isclass(thing) and parameters else set())
    missing = [f"the argument {p.name}" for p in parameters if p.name not in known]
    returns = signature.return_annotation
    comes_back = not inspect.isclass(thing) and returns not in (None, "None", inspect.Signature.empty) and not bound
    if comes_back and not re.search(r"^(Returns|Yields):$", text, re.M):
        missing.append("what it returns")
    return missing


@pytest.mark.parametrize("room", ROOMS)
def test_public_names_say_what_they_take_and_give(room):
    wanting = {name: found for name, thing in public(room) if (found := faults(thing))}
    assert not wanting, "\n".join(f"{room}.{name} does not say: {', '.join(found)}" for name, found in wanting.items())


def test_a_docstring_that_leaves_something_out_is_noticed():
    def wanting(x: int, y: int) -> int:
        """Add.

        Args:
            x: a number.
        """
        return x + y

    assert faults(wanting) == ["the argument y", "what it returns"]
