"""Every message of the package to a user has one form: what must hold, what was given, what to do; one sentence."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import fivo

SOURCE = Path(fivo.__file__).parent
ERRORS = {"InputError", "DamagedError", "UnreadableError"}
VALUE = "\N{WHITE SQUARE}"
"""Stands for whatever is put into a message."""


def messages() -> Iterator[tuple[str, str]]:
    """(where, text) of every literal message that is raised, with its values replaced."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                name = getattr(node.exc.func, "id", getattr(node.exc.func, "attr", ""))
                text = literal(node.exc.args[0])
                if name in ERRORS and text.strip(VALUE + " "):
                    yield f"{path.relative_to(SOURCE)}", text


def literal(node: ast.expr) -> str:
    """A string as it is written, each value in it as one character."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(literal(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return literal(node.left) + literal(node.right)
    return VALUE


def problems(text: str) -> list[str]:
    """What is wrong with the form of a message."""
    found = []
    if not text.endswith((".", "'.", VALUE)):
        found.append("does not end with a period")
    if re.search(r"[.!?] +[A-Z]", re.sub(r"`[^`]*`|'[^']*'", "", text)):
        found.append("is more than one sentence")
    first = text.split()[0].strip(",;:")
    if re.fullmatch(r"[A-Z][a-z]+", first) and first not in NAMES:
        found.append("begins with a capital, but the sentence may follow a colon")
    if re.match(r"got\b", text):
        found.append("begins with what was given; say first what must hold")
    if re.search(r"\b(was|were) expected|; expected", text):
        found.append("says what was expected after what was given; say `must` first")
    return found


NAMES = {"Dask", "Parquet", "Python", "Shorten", "Slurm"} | {
    node.name
    for path in SOURCE.rglob("*.py")
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.ClassDef)
}
"""Words that have a capital anywhere: products, and classes of the package."""


def test_every_message_has_the_form():
    seen = list(messages())
    assert len(seen) > 300
    assert [f"{place}: {text}" for place, text in seen if problems(text)] == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (f"`num_particles` must be a positive integer, got {VALUE}.", 0),
        (f"{VALUE} must be a folder, got a file; name its folder.", 0),
        ("--rate must be positive, got 0.", 0),
        ("Dask is not installed; install it.", 0),
        ("the key must be one key", 1),
        ("The line has no points.", 1),
        ("got 3, give 4.", 1),
        ("x is 3 where 4 was expected.", 1),
        ("the file is damaged. Restore it.", 1),
    ],
)
def test_the_form(text, wrong):
    assert len(problems(text)) == wrong
