"""Who may import whom: the architecture, read from the imports of every module."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fivo

SOURCE = Path(fivo.__file__).parent
EVERYWHERE = {"errors", "extras"}
LIBRARY = {
    "batch": set(),
    "weights": set(),
    "constants": set(),
    "_fuse": set(),
    "config": {"_fuse"},
    "distributions": {"batch", "weights", "constants"},
    "resampling": {"weights"},
    "models": {"batch", "weights", "constants", "_fuse", "distributions", "resampling"},
    "smc": {"batch", "weights", "constants", "devices", "_fuse", "distributions", "resampling", "models"},
    "gradients": {"batch", "weights", "constants", "distributions", "resampling", "models", "smc"},
    "bounds": {"batch", "weights", "constants", "distributions", "resampling", "models", "smc", "gradients"},
}
"""The rooms of the library, each below what it may import."""
ALONE = ("errors", "weights", "constants", "_fuse")
"""Rooms that import nothing of ours."""
SHARED = {"files", "serialization", "devices"}
"""What both layers stand on, besides errors."""
APPLICATION = {
    "caching": set(),
    "memory": set(),
    "data": {"files"},
    "runs": {"files"},
    "settings": set(),
    "_terminal": {"runs"},
    "_building": {"bounds", "gradients", "models", "resampling", "data", "settings"},
    "_scoring": {"batch", "bounds", "models", "data", "devices"},
    "training": {*LIBRARY, *SHARED, "data", "runs", "settings", "_building", "_scoring"},
    "inference": {*LIBRARY, *SHARED, "data", "runs", "report", "settings", "_building", "_scoring"},
    "_run": {*LIBRARY, *SHARED, "data", "runs", "settings", "_building", "_terminal", "training", "inference"},
    "benchmarks": {"batch", "bounds", "data", "models"},
    "experiments": {"files", "memory", "caching", "data", "runs", "settings", "training", "inference", "_run"},
    "report": {"files", "runs"},
}
"""The rooms of the application; they see no private room of the library."""
ROOMS = {
    "errors": set(),
    "extras": set(),
    "files": set(),
    "devices": set(),
    "serialization": {"files", "constants"},
    **LIBRARY,
    **{room: allowed - {"_fuse"} for room, allowed in APPLICATION.items()},
}
"""What each room may import besides itself; `cli` may import everything, and only `__main__` imports it."""
SEES_NO_WORLD = tuple(room for room in LIBRARY if room != "_fuse")  # which an environment variable switches off
WORLD = {"os", "io", "pathlib", "shutil", "tempfile", "socket", "urllib", "subprocess", "time", "datetime", "random"}
NEEDS_JAX = {"jax", "jaxlib", "equinox", "numpyro", "optax"}


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Name, without the package's, and syntax of every module."""
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        yield ".".join(part for part in parts if part != "__init__"), ast.parse(path.read_text())


def imports(tree: ast.AST) -> Iterator[str]:
    """The dotted name of everything imported, wherever the statement stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def ours(tree: ast.AST) -> Iterator[str]:
    """What is imported of the package, without its name."""
    for name in imports(tree):
        if name.startswith("fivo."):
            yield name.removeprefix("fivo.")


def room_of(name: str) -> str:
    return name.partition(".")[0]


def test_private_modules_are_imported_by_their_own_room_only():
    foreign = [
        f"{name} imports {imported}"
        for name, tree in modules()
        for imported in ours(tree)
        if any(part.startswith("_") and not part.startswith("__") for part in imported.split(".")[1:-1])
        and room_of(imported) != room_of(name)
    ]
    assert not foreign


def within(name: str, allowed: set[str]) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in allowed)


def test_every_room_is_known():
    assert {room_of(name) for name, _ in modules()} <= {*ROOMS, "cli", "__main__", ""}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_what_it_may(room):
    allowed = ROOMS[room] | {room} | EVERYWHERE | {"__version__"}
    broken = [
        f"{name} imports {imported}"
        for name, tree in modules()
        if room_of(name) == room
        for imported in ours(tree)
        if not within(imported, allowed)
    ]
    assert not broken


@pytest.mark.parametrize("room", ALONE)
def test_a_room_that_stands_alone(room):
    assert not [i for name, tree in modules() if room_of(name) == room for i in ours(tree) if room_of(i) != room]


def public_names(room: str) -> set[str] | None:
    """What a room lists in `__all__`; None for a single module, whose names are public unless they begin with `_`."""
    if (SOURCE / f"{room}.py").exists():
        return None
    for node in ast.parse((SOURCE / room / "__init__.py").read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def is_public(imported: str) -> bool:
    """Whether `room.name` is among the names that the room shows to others."""
    room, _, name = imported.partition(".")
    names = public_names(room)
    return (not name.startswith("_") and "." not in name) if names is None else name.partition(".")[0] in names


@pytest.mark.parametrize("room", [*LIBRARY, *APPLICATION, "cli"])
def test_a_room_knows_the_library_by_its_public_names(room):
    broken = [
        f"{name} imports {imported}"
        for name, tree in modules()
        if room_of(name) == room
        for imported in ours(tree)
        if room_of(imported) in {*LIBRARY, "errors", "serialization"} - {room} and not is_public(imported)
    ]
    assert not broken


def test_what_is_public():
    assert is_public("models.SequenceModel")
    assert is_public("bounds.temperatures.linear")
    assert is_public("weights.normalize")
    assert is_public("_fuse.scan")
    for private in ("models._contract.SequenceModel", "models.not_there", "smc._step", "batch._padded"):
        assert not is_public(private)


def test_nothing_imports_the_command_line():
    importers = {name for name, tree in modules() if any(room_of(i) == "cli" for i in ours(tree))}
    assert {room_of(name) for name in importers} <= {"__main__", "cli"}


@pytest.mark.parametrize("room", SEES_NO_WORLD)
def test_the_core_sees_no_dataset_file_or_clock(room):
    seen = {i.partition(".")[0] for name, tree in modules() if room_of(name) == room for i in imports(tree)}
    assert not seen & WORLD


@pytest.mark.parametrize("room", ["report", "runs", "data", "settings", "_terminal", "files", "errors"])
def test_results_and_data_are_read_without_jax(room):
    seen = {i.partition(".")[0] for name, tree in modules() if room_of(name) == room for i in imports(tree)}
    assert not seen & NEEDS_JAX


def loaded(*arguments: str) -> set[str]:
    """The packages that a command of a fresh Python imports."""
    output = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, check=True, timeout=120
    ).stderr
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in output.splitlines() if "|" in line}


@pytest.mark.parametrize(
    "arguments",
    [("-c", "import fivo"), ("-c", "import fivo.data, fivo.report, fivo.runs"), ("-m", "fivo", "--help")],
    ids=["the package", "data, report and runs", "the command's help"],
)
def test_light_things_do_not_load_jax(arguments):
    packages = loaded(*arguments)
    assert "fivo" in packages
    assert not packages & NEEDS_JAX


def test_the_check_sees_jax_when_it_is_loaded():
    assert "jax" in loaded("-c", "import fivo; fivo.Batch")
