"""An experiment as data: a grid of runs, how they are evaluated, and what the paper published.

One TOML file each; `docs/sweeps.md` explains every key.
"""

import dataclasses
import itertools
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from fivo._run import dataset_setting, names_object
from fivo.errors import InputError
from fivo.experiments.checking import check_places
from fivo.experiments.slugs import slug_of
from fivo.settings import DEFAULTS, OwnData, OwnModel, Settings, flattened, make_settings, read_toml

SELECTED = ("learning_rate",)
"""Chosen on the validation bound, within a cell."""
REPEATED = ("seed",)
"""Averaged over, within a cell."""
PAPER = Path(__file__).parent / "paper"
"""The files of the paper's tables and figures."""
NONE = "-"
"""In a cell, for a setting that its runs do not have."""
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")

Count = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Split = Literal["train", "valid", "test"]
BoundName = Literal["elbo", "iwae", "fivo"]


class Evaluation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the selected run of a cell is scored."""

    splits: tuple[Split, ...] = ("test",)
    particles: Count = 128
    repeats: Count = 3
    unit: Literal["nats_per_step", "nats_per_sequence"] = "nats_per_step"
    measures: dict[str, str] = {}
    """What is scored in place of the bounds, by the names that the table has for it: each is package.module:function of
    (model, batch, *, key) that returns a number per sequence, or a `BoundResult`, and their mean is shown."""
    relative_to: dict[str, Any] = {}
    """The cell whose score is subtracted from all; empty for absolute numbers."""


class Curves(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is scored at every validation while training."""

    split: Split = "test"
    particles: Count = 128
    bounds: tuple[BoundName, ...] = ("elbo", "iwae", "fivo")
    kl: bool = False
    sequences: Annotated[int, Meta(ge=0)] = 0
    """Only the first of the split; 0 means all."""


class Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which columns of the metrics are drawn, against the step."""

    fields: list[str]
    y_label: str
    panels: str = ""
    """The key whose values each get a panel."""
    lines: str = ""
    """The key whose values each get a line."""


class Layout(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The keys that go down and across the table."""

    rows: list[str]
    columns: list[str]


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The TOML file."""

    name: str
    title: str
    place: str
    directory: str = ""
    """Where its runs go, under `runs/`; experiments that share it share runs."""
    settings: dict[str, Any] = {}
    grid: list[dict[str, list[Any]]]
    evaluation: Evaluation = Evaluation()
    curves: Curves | None = None
    figure: Figure | None = None
    table: Layout | None = None
    published: list[dict[str, Any]] = []


@dataclasses.dataclass(frozen=True)
class PlannedRun:
    """A point of the grid.

    Args:
        slug: The name of the run's directory.
        settings: Its settings.
        cell: Keys and values of the cell of the table that it belongs to.
    """

    slug: str
    settings: Settings
    cell: tuple[tuple[str, Any], ...]

    def __hash__(self) -> int:
        return hash(self.slug)

    @property
    def flat(self) -> dict[str, Any]:
        """The settings by the names that the experiment's file has for them."""
        return flattened(self.settings)


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A checked experiment file and the runs of its grid.

    Args:
        document: What the file says.
        runs: The runs, in the file's order.
        keys: What tells cells apart: the keys of the grid without those selected or averaged over.
    """

    document: Document
    runs: tuple[PlannedRun, ...]
    keys: tuple[str, ...]

    @property
    def directory(self) -> str:
        """The directory of the runs, under `runs/`."""
        return self.document.directory or self.document.name


def read_experiment(name_or_path: str | Path) -> Experiment:
    """Read an experiment.

    Args:
        name_or_path: A TOML file, or the name of one that comes with the package, such as table1.

    Returns:
        The experiment; mistakes in the file are refused in one sentence.
    """
    path = find_experiment(name_or_path)
    return make_experiment(read_toml(path), str(name_or_path))


def find_experiment(name_or_path: str | Path) -> Path:
    """A file as it is named; without one, and without a suffix or a folder, the paper's experiment of that name."""
    path = Path(name_or_path)
    if path.is_file() or path.suffix or len(path.parts) != 1:
        return path
    known = {file.stem: file for file in sorted(PAPER.glob("*.toml"))}
    if path.name not in known:
        raise InputError(
            f"{path.name!r:.60} is no experiment of the paper ({', '.join(known)}); choose one, or give a TOML file."
        )
    return known[path.name]


def make_experiment(content: dict[str, Any], where: str = "the experiment") -> Experiment:
    """An experiment from plain values; `where` names it in messages."""
    if isinstance(content.get("grid"), dict):
        content = {**content, "grid": [content["grid"]]}
    grids = content.get("grid")
    if isinstance(grids, list) and all(isinstance(grid, dict) for grid in grids):
        content = {**content, "grid": [_as_lists(grid) for grid in grids]}
    try:
        document = msgspec.convert(content, Document)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).replace("`", "").partition(" - at $.")
        problem = problem[0].lower() + problem[1:].rstrip(".")
        raise InputError(
            f"{where!r} is no experiment: {problem}{f' at {place}' if place else ''}; correct it."
        ) from None
    for name in (document.name, document.directory or document.name):
        if not NAME.fullmatch(name):
            raise InputError(
                f"the name in {where!r} must consist of small letters, digits, - and _, got {name!r:.60}; rename it."
            )
    named = dict.fromkeys(key for grid in document.grid for key in grid)
    keys = tuple(key for key in named if key not in SELECTED + REPEATED)
    runs = _expand(document, keys, tuple(named))
    check_places(document, [dict(cell) for cell in dict.fromkeys(run.cell for run in runs)], keys, where)
    return Experiment(document, runs, keys)


def _settings(given: dict[str, Any]) -> Settings:
    """The settings of a run, whose model and dataset may be objects to import."""
    own = {name: given[name] for name in ("model", "dataset") if names_object(given.get(name))}
    base = DEFAULTS
    if "model" in own:
        base = msgspec.structs.replace(base, model=OwnModel(model_name=own["model"]))
    if "dataset" in own:
        base = msgspec.structs.replace(base, data=OwnData(dataset=own["dataset"]))
    return make_settings({name: value for name, value in given.items() if name not in own}, base)


def _as_lists(grid: dict[str, Any]) -> dict[str, Any]:
    return {key: value if isinstance(value, list) else [value] for key, value in grid.items()}


def _expand(document: Document, keys: tuple[str, ...], named: tuple[str, ...]) -> tuple[PlannedRun, ...]:
    runs: dict[str, PlannedRun] = {}
    for grid in document.grid:
        for values in itertools.product(*grid.values()):
            given = {**document.settings, **dict(zip(grid, values, strict=True))}
            settings = _settings(given)
            flat = flattened(settings)
            named_settings = {"recipe": given.get("recipe", "paper"), **flat}
            # A setting that only some grids have, such as how a twist is trained, is none of the others' runs.
            cell = tuple((key, named_settings.get(key, NONE)) for key in keys)
            if not isinstance(settings.data, OwnData):
                settings = make_settings({"dataset": dataset_setting(flat["dataset"])}, settings)
            slug = slug_of(settings, named)
            runs.setdefault(slug, PlannedRun(slug, settings, cell))
    if not runs:
        raise InputError(f"the grid of {document.name!r} is empty; give every key at least one value.")
    return tuple(runs.values())
