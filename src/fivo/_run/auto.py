"""`fit("auto", ...)`: small candidates, trained within a stated time, compared by forecasts of the validation rows."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fivo._run.backtesting import LINEAR, NAIVE, backtest_run
from fivo._run.run import Run
from fivo.data import Dataset
from fivo.errors import InputError
from fivo.files import write_atomically
from fivo.inference import guess_season, make_windows
from fivo.runs import CONFIG, Backtest, Candidate, Result, Selection, write_record
from fivo.settings import OPTIONS
from fivo.training import Callback, Plan, RunDirectory

AUTO, BUDGET = "auto", "5min"
FOLDER = "candidates"
"""Where in the run's directory the candidates are."""
RECURRENT = {"learning_rate": 1e-3, "clip": 1.0, "validate_every": 50, "log_every": 10, "patience": 10}
CANDIDATES: dict[str, dict[str, Any]] = {
    **{f"{LINEAR}-{n}": {"model": LINEAR, "latents": n} for n in (2, 4, 8)},
    **{f"vrnn-{n}": {"model": "vrnn", "hidden": n, **RECURRENT} for n in (16, 32)},
    "dmm-16": {"model": "dmm", "hidden": 16, **RECURRENT},
}
"""What is compared, by name; a model that this version lacks is left out."""
WINDOWS, DEFAULT_HORIZON, SAMPLES = 5, 8, 100
ALLOWED = {name for name, option in OPTIONS.items() if option.section == "data"} | {"seed", "batch_size"}
"""Settings that are the same for all candidates."""
SECONDS = {"": 1, "s": 1, "sec": 1, "min": 60, "m": 60, "h": 3600}

PlanMaker = Callable[[dict[str, Any]], Plan]
"""Makes the plan of a candidate from its settings; refuses in a sentence what the data does not allow."""
Trainer = Callable[[Plan, Path, str, Callback], Run]
"""Trains a plan in a directory, with a label for progress, until the callback ends it."""


def parse_budget(budget: str | float | int) -> float:
    """Seconds of a time such as "5min", "90s", "1h" or 300."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", str(budget))
    if match is None or match[2] not in SECONDS or float(match[1]) <= 0:
        raise InputError(f"budget must be a time such as 90s, 5min or 1h, got {budget!r:.40}.")
    return float(match[1]) * SECONDS[match[2]]


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings that the candidates have themselves."""
    others = [name for name in settings if name not in ALLOWED]
    if others:
        raise InputError(f"{others[0]} is chosen for each candidate of the model {AUTO!r}; leave it out.")


def choose(
    make_plan: PlanMaker,
    out: str | os.PathLike,
    *,
    budget: str | float | int = BUDGET,
    horizon: int | None = None,
    train: Trainer,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> tuple[Selection, Plan]:
    """Train small candidates, compare their forecasts of the validation rows, and keep the best as a run.

    If killed at any moment, the same call resumes; once a run has been chosen, it is only read.

    Args:
        make_plan: Makes the plan of a candidate.
        out: The directory of the run; its folder `candidates` holds the candidates, as runs.
        budget: Time for training all of them together; each has an equal share of what is left.
        horizon: Rows of the forecasts that are compared; by default a season, or 8, or as many as fit.
        train: Trains a candidate.
        progress: Called with what is being done, how much is done and of how much.

    Returns:
        What was compared and chosen, and the plan of the chosen run, which is in `out`.
    """
    seconds, directory = parse_budget(budget), RunDirectory(out)
    plans, refusals = _plans(make_plan)
    first = next(iter(plans.values()))
    if directory.exists():
        return _kept(directory, plans, first.dataset)
    rule = _windows(first.dataset, horizon)
    compared: list[Candidate] = []
    naive = None
    for place, (name, plan) in enumerate(plans.items()):
        share = (seconds - sum(candidate.seconds for candidate in compared)) / (len(plans) - place)
        progress(f"{name}, at most {max(share, 0):.0f} s", place, len(plans))
        run = _candidate(plan, directory.path / FOLDER / name, name, share, train)
        found = _backtest(run, rule)
        naive = found.models[NAIVE].crps
        compared.append(_compared(name, run, found))
    progress("candidates", len(plans), len(plans))
    best = min(compared, key=lambda candidate: candidate.crps)
    selection = Selection(
        budget_seconds=seconds,
        horizon=rule["horizon"],
        windows=rule["windows"],
        chosen=best.name,
        candidates=compared,
        naive_crps=naive,
        notes=refusals,
    )
    _keep(directory.path / FOLDER / best.name, directory, selection)
    return selection, plans[best.name]


def _plans(make_plan: PlanMaker) -> tuple[dict[str, Plan], list[str]]:
    """The plans of all candidates that the data allows, and why others are left out."""
    plans, refusals, known = {}, [], OPTIONS["model"].type.__args__
    error: InputError | None = None
    for name, settings in CANDIDATES.items():
        if settings["model"] not in known:
            continue
        try:
            plans[name] = make_plan(settings)
        except InputError as problem:
            error = problem
            refusals.append(f"{name} is left out: {problem}")
    if not plans and error is not None:
        raise error
    if next(iter(plans.values())).dataset.table is None:
        raise InputError(f"the model {AUTO!r} is for tables; name a model for other data.")
    return plans, refusals


def _windows(dataset: Dataset, horizon: int | None) -> dict[str, int]:
    """Windows and horizon that fit the validation rows of every series."""
    split, schema = dataset.split("valid"), dataset.table
    rows = int((split.lengths // 2 if split.starts is None else split.scored_lengths).min())
    if horizon is None:
        season = 1 if schema is None else guess_season(schema)
        horizon = max(min(season if season > 1 else DEFAULT_HORIZON, rows // 2), 1)
    windows = max(min(WINDOWS, rows - horizon + 1), 1)
    if schema is not None:
        make_windows(schema, split, windows, horizon)  # refused before anything is trained
    return {"horizon": horizon, "windows": windows}


def _candidate(plan: Plan, directory: Path, name: str, share: float, train: Trainer) -> Run:
    files = RunDirectory(directory)
    if (directory / Result.FILE).exists():
        files.check(plan.settings, plan.dataset.fingerprint, override=False)
        return Run(files, plan.settings, plan.dataset)
    return train(plan, directory, name, lambda event: event.metrics["seconds"] >= share)


def _backtest(run: Run, rule: dict[str, int]) -> Backtest:
    """The candidate's scores on the validation rows; those that were computed before are read."""
    if (run.directory.path / Backtest.FILE).exists():
        found = run.directory.read(Backtest)
        if (found.windows, found.horizon) == (rule["windows"], rule["horizon"]):
            return found
    found = backtest_run(
        run,
        split="valid",
        windows=rule["windows"],
        horizon=rule["horizon"],
        num_samples=SAMPLES,
        num_particles=SAMPLES,
    )
    run.directory.write(found)
    return found


def _compared(name: str, run: Run, found: Backtest) -> Candidate:
    scores, result = found.models[found.own], run.result
    return Candidate(
        name=name,
        model=found.own,
        crps=float("inf") if scores.crps is None else scores.crps,
        log_score=scores.log_score,
        coverage80=scores.coverage80,
        validation=result.best_validation,
        steps=result.steps,
        seconds=result.seconds,
    )


def _keep(candidate: Path, out: RunDirectory, selection: Selection) -> None:
    """Copy the files of a run; its settings come last, as they make a directory a run."""
    left = {".lock", CONFIG, Backtest.FILE}
    for file in sorted(candidate.rglob("*")):
        if file.is_file() and file.name not in left:
            write_atomically(out.path / file.relative_to(candidate), file.read_bytes())
    write_record(out.path / Selection.FILE, selection, run=RunDirectory(candidate).id)
    write_atomically(out.path / CONFIG, (candidate / CONFIG).read_bytes())


def _kept(directory: RunDirectory, plans: dict[str, Plan], dataset: Dataset) -> tuple[Selection, Plan]:
    """What was chosen before; a run that was not, or of other data, is refused."""
    if not (directory.path / Selection.FILE).exists():
        raise InputError(
            f"{str(directory.path)!r} holds a run that was not chosen by the model {AUTO!r}; choose another --out."
        )
    selection = directory.read(Selection)
    plan = plans.get(selection.chosen)
    if plan is None or directory.fingerprint() != dataset.fingerprint:
        raise InputError(f"{str(directory.path)!r} was chosen for other data; choose another --out.")
    return selection, plan
