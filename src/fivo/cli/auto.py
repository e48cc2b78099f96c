"""`fivo fit TABLE --model auto`."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fivo._run import Run
    from fivo.runs import Selection
    from fivo.training import Callback, Plan


def fit_best(
    settings: Mapping[str, Any], out: Path, *, budget: str | None, horizon: int | None, data_dir: Path | None
) -> None:
    """Train small models of a table, show how they compare, and keep the best."""
    from fivo._run import BUDGET, check_settings, choose, prepare, run_of
    from fivo._terminal.output import note
    from fivo._terminal.progress import summary
    from fivo.caching import compilation_cache
    from fivo.cli.training import train_with_progress

    check_settings(settings)
    compilation_cache()

    def make_plan(candidate: dict[str, Any]) -> "Plan":
        return prepare(settings={**settings, **candidate}, data_dir=data_dir)

    def train(plan: "Plan", directory: Path, name: str, until: "Callback") -> "Run":
        return train_with_progress(plan, directory, label=name, callbacks=(until,))

    def progress(what: str, done: int, total: int) -> None:
        note(f"{done}/{total} candidates{'' if done == total else f': {what}'}")

    selection, plan = choose(
        make_plan, out, budget=BUDGET if budget is None else budget, horizon=horizon, train=train, progress=progress
    )
    show(selection)
    summary(out, run_of(plan, out).result)


def show(selection: "Selection") -> None:
    """Print what was compared as a table."""
    from rich.table import Column, Table

    from fivo._terminal.output import console

    title = f"Forecasts of validation rows: {selection.windows} windows of {selection.horizon} rows in each series"
    headings = ("CRPS", "log score", "in 80 %", "steps", "seconds")
    table = Table(Column("candidate", no_wrap=True), *(Column(name, justify="right") for name in headings), title=title)
    for found in sorted(selection.candidates, key=lambda candidate: candidate.crps):
        scores = ("" if value is None else f"{value:.4g}" for value in (found.crps, found.log_score, found.coverage80))
        name = f"{found.name} *" if found.name == selection.chosen else found.name
        table.add_row(name, *scores, f"{found.steps:,}", f"{found.seconds:.0f}")
    if selection.naive_crps is not None:
        table.add_row("seasonal-naive", f"{selection.naive_crps:.4g}")
    screen = console()
    screen.print(table)
    for sentence in selection.notes:
        screen.print(sentence, soft_wrap=True)
