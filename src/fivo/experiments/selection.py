"""The results of a sweep, read from the files of its runs, and the run selected for each cell of the table.

As in the paper, the learning rate and the step are chosen on the validation split: the step by the run's own bound
while it trains, the learning rate by the score that is then reported. For models trained with FIVO that is FIVO; for
the others it is the maximum over three bounds, which is chosen on the split itself and therefore optimistic for them.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from fivo.errors import InputError
from fivo.experiments.experiment import Evaluation, PlannedRun
from fivo.runs import Result, Score
from fivo.settings import OwnModel, Settings
from fivo.training import RunDirectory


def is_trained(directory: Path, run: PlannedRun) -> bool:
    """Whether a run has ended with the settings that are asked for."""
    if result_of(directory) is None:
        return False
    try:
        return _without_digests(RunDirectory(directory).config()) == run.settings
    except InputError:
        return False  # training it again says what is wrong


def _without_digests(settings: Settings) -> Settings:
    """What an experiment can say of a run: of a model of the user's own its name, not what it looks like when made."""
    if not isinstance(settings.model, OwnModel):
        return settings
    return msgspec.structs.replace(settings, model=msgspec.structs.replace(settings.model, model_digest=""))


def is_evaluated(directory: Path, evaluation: Evaluation) -> bool:
    """Whether a trained run's best step has all the scores that are asked for."""
    return all(score_of(directory, evaluation, split) is not None for split in evaluation.splits)


def score_of(directory: Path, evaluation: Evaluation, split: str) -> Score | None:
    """The scores of a run on a split, if they are of its best step and as exact as asked for."""
    result, score = result_of(directory), scores_of(directory).get(split)
    if result is None or score is None:
        return None
    made = (score.steps, score.particles, score.repeats)
    complete = evaluation.measures.keys() <= score.bounds.keys()
    return score if complete and made == (result.best_step, evaluation.particles, evaluation.repeats) else None


def scores_of(directory: Path) -> dict[str, Score]:
    """All scores of a run, by split; what is damaged is made again."""
    try:
        return RunDirectory(directory).evaluations().splits
    except InputError:
        return {}


def selected(out: Path, runs: Iterable[PlannedRun], evaluation: Evaluation) -> PlannedRun | None:
    """The run with the best validation score among those that have ended, the first of equals; or the only one."""
    ended = _ended(out, runs)
    if len(ended) == 1:
        return ended[0]
    scores = {run: score_of(out / run.slug, evaluation, "valid") for run in ended}
    values = {run: score.reported.nats_per_step for run, score in scores.items() if score is not None}
    return max(values, key=lambda run: values[run], default=None)


def unscored(out: Path, runs: Iterable[PlannedRun], evaluation: Evaluation) -> list[PlannedRun]:
    """The runs that have ended without a validation score, where one is needed to choose among several."""
    ended = _ended(out, runs)
    lacking = [run for run in ended if score_of(out / run.slug, evaluation, "valid") is None]
    return lacking if len(ended) > 1 else []


def _ended(out: Path, runs: Iterable[PlannedRun]) -> list[PlannedRun]:
    return [run for run in runs if result_of(out / run.slug) is not None]


def result_of(directory: Path) -> Result | None:
    """The result of training, if it has ended and the file is intact; training again rewrites a damaged one."""
    try:
        return RunDirectory(directory).result()
    except InputError:
        return None


def commit_of(directory: Path) -> str | None:
    """The code that trained a run, if that is known."""
    try:
        return RunDirectory(directory).provenance().commit
    except InputError:
        return None
