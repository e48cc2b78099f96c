"""Which datasets are present, and whether their content is right."""

import dataclasses
from pathlib import Path

from fivo.data.loading import load, locate
from fivo.data.registry import KNOWN
from fivo.errors import InputError

Counts = dict[str, tuple[int, int]]


@dataclasses.dataclass(frozen=True)
class Listed:
    """A known dataset.

    Args:
        name: Its name.
        title: What it holds.
        path: Where it is; None when it is not on the search path.
        steps_per_quarter: Time steps per quarter note.
        counts: (sequences, frames) by split.
    """

    name: str
    title: str
    path: Path | None
    steps_per_quarter: float | int
    counts: Counts


@dataclasses.dataclass(frozen=True)
class Checked:
    """A dataset that was read completely, or the sentence that says what is wrong with it.

    Args:
        name: Its name.
        path: Where it is; None when it was not found.
        counts: (sequences, frames) by split.
        fingerprint: A digest of its content.
        problem: What is wrong, in a sentence; None if nothing is.
    """

    name: str
    path: Path | None
    counts: Counts | None = None
    fingerprint: str | None = None
    problem: str | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return self.problem is None


def list_datasets(data_dir: str | Path | None = None) -> list[Listed]:
    """List the known datasets and where they are; nothing is read.

    Args:
        data_dir: Where to look first.

    Returns:
        An entry for every known dataset.
    """
    return [
        Listed(entry.name, entry.title, locate(entry.name, data_dir), entry.steps_per_quarter, dict(entry.counts))
        for entry in KNOWN.values()
    ]


def check(*names: str | Path, data_dir: str | Path | None = None) -> list[Checked]:
    """Read datasets completely and verify them.

    Args:
        names: Names or paths; without any, every known dataset that is present.
        data_dir: Where to look first.

    Returns:
        An entry for every dataset.
    """
    chosen = names or [name for name in KNOWN if locate(name, data_dir) is not None]
    return [_check(name, data_dir) for name in chosen]


def _check(name: str | Path, data_dir: str | Path | None) -> Checked:
    path = locate(name, data_dir) if isinstance(name, str) and name in KNOWN else Path(name)
    try:
        dataset = load(name, data_dir=data_dir)
    except InputError as error:
        return Checked(str(name), path, problem=str(error))
    return Checked(str(name), path, dataset.counts, dataset.fingerprint)
