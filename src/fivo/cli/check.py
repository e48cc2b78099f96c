"""`fivo check`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from fivo.runs import FileStatus

SHOWN = {"good": "good", "bad": "damaged", "missing": "missing", "unchecked": "not checked"}


def check(run: Path, *, as_json: Annotated[bool, Parameter(name="--json", negative=())] = False) -> None:
    """Verify that every file of a run is what was written, belongs to the run and fits the others.

    Exits with code 2, and says what to do, if any is damaged or missing.

    Parameters
    ----------
    run
        The run's directory.
    as_json
        Print one JSON object instead of a table.
    """
    import msgspec

    from fivo._terminal.output import say
    from fivo.errors import InputError
    from fivo.runs import check_run

    files = check_run(run)
    problems = [status.problem for status in files if status.problem is not None]
    if as_json:
        say(json.dumps({"run": str(run), "good": not problems, "files": msgspec.to_builtins(files)}))
    else:
        _print(run, files)
    if problems:
        checked = sum(status.status != "unchecked" for status in files)
        told = "; ".join(problem.rstrip(".") for problem in problems)
        raise InputError(f"{len(problems)} of the {checked} files of {str(run)!r} cannot be used: {told}.")


def _print(run: Path, files: "list[FileStatus]") -> None:
    from rich.table import Table

    from fivo._terminal.output import console

    table = Table("file", "status", title=str(run))
    for status in files:
        table.add_row(status.file, SHOWN[status.status])
    console().print(table)
