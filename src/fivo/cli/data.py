"""`fivo data list | check | fetch`."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from fivo._terminal.output import say

app = App(name="data", help="List, check and fetch datasets.", result_action="return_value")


@app.command(name="list")
def list_(*, data_dir: Path | None = None) -> None:
    """List the datasets known by name, and where they were found.

    Parameters
    ----------
    data_dir
        Where to look for datasets first.
    """
    from rich import box
    from rich.table import Table

    from fivo._terminal.output import console
    from fivo.data import list_datasets

    # Titles, paths and commands are printed below the table: on eighty columns they have no room in it.
    table = Table("name", box=box.SIMPLE_HEAD)
    for split in ("train", "valid", "test"):
        table.add_column(split, justify="right", no_wrap=True)
    entries = list_datasets(data_dir)
    for entry in entries:
        counts = [f"{sequences} / {frames:,}" for sequences, frames in entry.counts.values()]
        table.add_row(entry.name, *counts)
    screen = console()
    screen.print(table)
    for entry in entries:
        where = f"found in {entry.path}" if entry.path else f"not found; run `fivo data fetch {entry.name}`"
        screen.print(f"{entry.name}: {entry.title}", soft_wrap=True)
        screen.print(f"  {where}", soft_wrap=True)
    screen.print()
    screen.print("train, valid and test: sequences / frames. A path to a pickle, .npz or MIDI folder works too.")
    screen.print(
        "Speech: a folder of recordings; TIMIT is licensed, `fivo data check timit --from FOLDER` checks a copy."
    )


@app.command
def check(
    *names: str,
    source: Annotated[Path | None, Parameter(name="--from")] = None,
    id: str | None = None,
    time: str | None = None,
    values: str | None = None,
    inputs: str | None = None,
    static: str | None = None,
    data_dir: Path | None = None,
) -> None:
    """Read datasets in full and verify their counts and checksums; of tables, show what their columns hold.

    Parameters
    ----------
    names
        Names or paths, of tables too (.csv, .parquet, .arrow, or a folder of these). [every known dataset present]
    source
        The folder of your copy of TIMIT, as in `fivo data check timit --from FOLDER`.
    id
        The column of a table that says which series a row belongs to.
    time
        The column of time.
    values
        The columns to be modelled, separated by commas. [all others]
    inputs
        Columns that are known and not modelled.
    static
        Columns that are the same in all rows of a series.
    data_dir
        Where to look for datasets first.
    """
    from fivo.cli.tables import show_table
    from fivo.data import check as check_datasets
    from fivo.data import is_table
    from fivo.errors import InputError

    tables = [name for name in names if is_table(name)]
    columns = {"id": id, "time": time, "values": values, "inputs": inputs, "static": static}
    given = [option for option, value in columns.items() if value is not None]
    if given and not tables:
        raise InputError(
            f"--{given[0]} is for tables, but none was given; use `fivo data check my.csv --{given[0]} ...`."
        )
    for table in tables:
        show_table(table, **columns)
    if tables and len(tables) == len(names):
        return
    names = tuple(name for name in names if name not in tables)

    if source is not None and "timit" not in names:
        raise InputError(
            f"--from needs the name timit, got {str(source)!r} alone; use `fivo data check timit --from FOLDER`."
        )
    others = [name for name in names if name != "timit"]
    results = check_datasets(*others, data_dir=data_dir) if others or not names else []
    for result in results:
        if result.counts is not None:
            say(f"{result.name}: good ({_shown(result.counts)})")
    problems = [result.problem for result in results if result.problem is not None]
    if "timit" in names:
        problems += _timit_problems(source, data_dir)
    if problems:
        raise InputError("; ".join(problems))


def _timit_problems(source: Path | None, data_dir: Path | None) -> list[str]:
    from fivo.data import Speech, check_timit

    outcome = check_timit(source, data_dir=data_dir)
    sound = None if outcome.dataset is None else outcome.dataset.sound
    if outcome.dataset is not None and isinstance(sound, Speech) and sound.scaling is not None:
        scaling = sound.scaling
        say(
            f"timit: the released split ({_shown(outcome.dataset.counts)}), training mean {scaling.mean:.6f}, "
            f"standard deviation {scaling.deviation:.6f}" + ("" if outcome.differences else ": good")
        )
    if not outcome.differences:
        return []
    return [f"{outcome.folder} is not the TIMIT of the paper: {'; '.join(outcome.differences)}."]


def _shown(counts: dict[str, tuple[int, int]]) -> str:
    return ", ".join(f"{split} {sequences} / {frames:,}" for split, (sequences, frames) in counts.items())


@app.command
def fetch(
    name: str,
    *,
    source: Annotated[str | None, Parameter(name="--from")] = None,
    data_dir: Path | None = None,
) -> None:
    """Download a dataset, resuming a partial download, and verify its checksum.

    Parameters
    ----------
    name
        The dataset's name.
    source
        A file or an http(s) address to use instead of the default source.
    data_dir
        Where to put it.
    """
    from fivo._terminal.progress import Bar
    from fivo.data import fetch as fetch_dataset

    with Bar(f"fetching {name}") as bar:
        result = fetch_dataset(name, source, data_dir, lambda done, total: bar.update(done, total=total))
    say(f"{name} is at {result.path}" + ("" if result.source else " (it was there already)"))
