"""What a sweep leaves: the cells of a table and the lines of a figure, with the runs behind each number."""

import json
import math
import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, UnsetType

from fivo.errors import InputError
from fivo.runs._records import Part
from fivo.runs._sealing import Record, opened

Number = int | float


class Evidence(Part, frozen=True):
    """A selected run, and everything needed to make its number again."""

    run: str
    value: Number
    standard_error: Number | None
    reported: str
    bounds: dict[str, Number]
    validation: Number | None
    result: dict[str, Any]
    config: dict[str, Any]
    commit: str
    trained_with: str | None
    commands: list[str]


class Cell(Part, frozen=True):
    """A number of a table: what was published, and what came out here.

    `ours` is the mean over the selected runs, one per seed; `standard_error` is that of their evaluations, and
    `deviation` the standard deviation over seeds, where there are several.
    """

    keys: dict[str, Any]
    published: Number | None
    ours: Number | None
    standard_error: Number | None
    note: str | None
    runs_trained: int
    runs_planned: int
    selected: list[Evidence]
    difference: Number | None
    deviation: Number | None = None


def average_of(selected: Sequence[dict[str, Any]]) -> dict[str, Number | None]:
    """The mean of the runs of a cell, the standard error of their evaluations, and their spread.

    Args:
        selected: the evidence of every run, as plain values.

    Returns:
        `ours`, `standard_error` and `deviation` of the cell; each is None where there is nothing to make it from.
    """
    values = [run["value"] for run in selected]
    errors = [run["standard_error"] for run in selected]
    known = values and None not in errors
    return {
        "ours": statistics.fmean(values) if values else None,
        "standard_error": math.hypot(*errors) / len(errors) if known else None,
        "deviation": statistics.stdev(values) if len(values) > 1 else None,
    }


class FigureLine(Part, frozen=True):
    """What a run logged, against the step, and how it was made."""

    label: str
    run: str
    x: list[int]
    y: list[Number | None]
    command: str | UnsetType = UNSET
    trained_with: str | UnsetType | None = UNSET


class FigurePanel(Part, frozen=True):
    """A chart."""

    title: str
    y_label: str
    lines: list[FigureLine]


class SummaryLayout(Part, frozen=True):
    """The keys that go down and across."""

    rows: list[str]
    columns: list[str]


class Summary(Record, frozen=True):
    """Everything that a report says about an experiment; it belongs to no single run.

    Args:
        name: Of the experiment.
        title: Of its table or figure.
        place: Where the paper has it.
        unit: Of the scores: "nats_per_step" or "nats_per_sequence".
        relative_to: The keys of the cell that scores are relative to; empty for absolute scores.
        layout: The keys that go down and across the table; None for the default.
        particles: N of the evaluations.
        repeats: Independent evaluations of every run.
        cells: The numbers of the table.
        figure: The charts of the figure; None if it has none.
        runs: The directories of all runs.
    """

    KIND: ClassVar[str] = "summary"
    FILE: ClassVar[str] = "NAME.json"
    REMEDY: ClassVar[str] = "run `fivo sweep` again, or restore it from a copy"

    name: str
    title: str
    place: str
    unit: str
    relative_to: dict[str, Any]
    layout: SummaryLayout | None
    particles: int
    repeats: int
    cells: list[Cell]
    figure: list[FigurePanel] | None
    runs: list[str]


class UnreadableError(InputError):
    """A file that is not JSON: a damaged summary, or not one of our files."""


NEEDED = set(Summary.__struct_fields__)


def read_summary(path: str | os.PathLike) -> Summary | None:
    """Read the summary of a JSON file. Summaries from before there were checksums are read as they are.

    Args:
        path: The file.

    Returns:
        The summary, seen to be whole; None where the file is JSON but no summary.
    """
    try:
        content = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read ({error.strerror}); check the path.") from None
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"{str(path)!r} is no readable JSON ({error!s:.90}).") from None
    if not isinstance(content, dict):
        return None
    if content.get("kind") == Summary.KIND or ("sha256" in content and content.keys() >= NEEDED):
        return opened(content, Summary, path, run=None)
    if content.get("format") != 1 or not content.keys() >= NEEDED:
        return None
    try:
        return msgspec.convert({name: content[name] for name in NEEDED}, Summary)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InputError(f"{str(path)!r} is damaged ({error!s:.90}); {Summary.REMEDY}.") from None
