"""`fivo data list | check | fetch`."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

app = App(name="data", help="List, check and fetch datasets.", result_action="return_value")


@app.command(name="list")
def list_(*, data_dir: Path | None = None) -> None:
    """The datasets known by name, and where they were found.

    Parameters
    ----------
    data_dir
        Where datasets are looked up first.
    """
    from rich.console import Console
    from rich.table import Table

    from fivo.data import list_datasets

    table = Table("name", "what", "train", "valid", "test", "found")
    for entry in list_datasets(data_dir):
        counts = [f"{sequences} / {frames:,}" for sequences, frames in entry.counts.values()]
        table.add_row(
            entry.name, entry.title, *counts, str(entry.path) if entry.path else f"no: fivo data fetch {entry.name}"
        )
    console = Console()
    console.print(table)
    console.print("train, valid and test: sequences / frames. A path to a pickle, .mat, .npz or MIDI folder works too.")


@app.command
def check(*names: str, data_dir: Path | None = None) -> None:
    """Read datasets completely and verify counts and checksums.

    Parameters
    ----------
    names
        Names or paths; without any, every known set that is present.
    data_dir
        Where datasets are looked up first.
    """
    from fivo.data import check as check_datasets
    from fivo.errors import InputError

    results = check_datasets(*names, data_dir=data_dir)
    for result in results:
        if result.counts is not None:
            counts = ", ".join(
                f"{split} {sequences} / {frames:,}" for split, (sequences, frames) in result.counts.items()
            )
            print(f"{result.name}: good ({counts})")
    problems = [result.problem for result in results if result.problem is not None]
    if problems:
        raise InputError("; ".join(problems))


@app.command
def fetch(
    name: str,
    *,
    source: Annotated[str | None, Parameter(name="--from")] = None,
    data_dir: Path | None = None,
) -> None:
    """Download a dataset, resuming a broken download, and verify it before it appears.

    Parameters
    ----------
    name
        The dataset's name.
    source
        A file or an http(s) address to take it from instead of the default source.
    data_dir
        Where to put it.
    """
    from fivo.cli.progress import Bar
    from fivo.data import fetch as fetch_dataset

    with Bar(f"fetching {name}") as bar:
        result = fetch_dataset(name, source, data_dir, lambda done, total: bar.update(done, total=total))
    print(f"{name} is at {result.path}" + ("" if result.source else " (it was there already)"))
