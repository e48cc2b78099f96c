"""`--only KEY=VALUE`: part of a grid, and whether its data is available."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fivo._run import made_dataset, names_object
from fivo.data import find
from fivo.errors import InputError
from fivo.experiments.experiment import Experiment, PlannedRun
from fivo.experiments.selection import is_trained
from fivo.settings import OPTIONS


def chosen_runs(experiment: Experiment, only: Sequence[str] = ()) -> tuple[PlannedRun, ...]:
    """Choose some runs of an experiment.

    Args:
        experiment: The experiment.
        only: `KEY=VALUE` pairs; a run is chosen if it has one of the values given for every key that was given.

    Returns:
        The runs, in the experiment's order; choosing none is refused.
    """
    wanted: dict[str, list[str]] = {}
    for pair in only:
        key, equals, value = pair.partition("=")
        if not equals or key not in (*OPTIONS, *experiment.keys):
            raise InputError(
                f"--only must be KEY=VALUE with a key such as {', '.join(experiment.keys)} or learning_rate, got "
                f"{pair!r:.60}."
            )
        wanted.setdefault(key, []).append(value)
    runs = tuple(
        run
        for run in experiment.runs
        if all(any(_is(_value_of(run, key), text) for text in texts) for key, texts in wanted.items())
    )
    if not runs:
        values = {key: list(dict.fromkeys(str(_value_of(run, key)) for run in experiment.runs)) for key in wanted}
        offered = ", ".join(f"{key}={'|'.join(texts)}" for key, texts in values.items())
        raise InputError(f"no run of {experiment.document.name!r} has {' '.join(only)}; it has {offered}.")
    return runs


def check_data(runs: Sequence[PlannedRun], out: str | Path, data_dir: str | Path | None = None) -> None:
    """Refuse to start where the data of a run that is not trained yet is missing on this machine.

    Args:
        runs: The runs.
        out: The directory that they are in.
        data_dir: Where to look for datasets first.
    """
    for dataset in dict.fromkeys(
        run.settings.data.dataset for run in runs if not is_trained(Path(out) / run.slug, run)
    ):
        try:
            made_dataset(dataset, data_dir) if names_object(dataset) else find(dataset, data_dir)
        except InputError as error:
            raise InputError(f"{str(error).rstrip('.')}; or leave it out with --only.") from None


def _value_of(run: PlannedRun, key: str) -> Any:
    # The cell's dataset is as the file names it; the configuration's may be an absolute path.
    return dict(run.cell).get(key, run.flat.get(key))


def _is(value: Any, text: str) -> bool:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(text) == float(value)
        except ValueError:
            return False
    return str(value).lower() == text.lower()
