"""A sweep: trains the runs of a grid that are missing, then evaluates the one that validation selects in each cell."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fivo.errors import InputError
from fivo.experiments.experiment import Experiment, PlannedRun
from fivo.experiments.launching import MISTAKE, Outcome, launch
from fivo.experiments.lease import Lease
from fivo.experiments.selection import is_evaluated, is_trained, score_of, selected, unscored
from fivo.experiments.status import Status, status_of
from fivo.experiments.tables import write_summary

POLL_SECONDS = 1.0
ATTEMPTS = 2

Cell = tuple[tuple[tuple[str, Any], ...], int]


class Job(NamedTuple):
    """What is to be done with a run: "train", "validate" (score it on the validation split) or "evaluate"."""

    kind: str
    run: PlannedRun


class Finished(NamedTuple):
    """What a sweep leaves: the summary that a report reads, and a sentence for every job that failed."""

    summary: dict[str, Any]
    failures: dict[str, str]


def sweep(
    experiment: Experiment,
    out: str | Path,
    executor: Executor,
    *,
    runs: Sequence[PlannedRun] | None = None,
    capacity: int | None = None,
    data_dir: str | Path | None = None,
    report: Callable[[Status], None] = lambda status: None,
) -> Finished:
    """Run what is missing of an experiment, or of some of its runs.

    Killed at any instant and started again it continues, and ends in the same results. A job that crashes is started
    once more, from its checkpoint.

    Args:
        experiment: The experiment.
        out: The directory for the runs.
        executor: Where jobs run: `local_executor`, `cluster_executor`, or any other of `concurrent.futures`.
        runs: Some of the experiment's runs; all by default.
        capacity: How many jobs are given to the executor at once; all by default.
        data_dir: Where to look for datasets first.
        report: Called about once a second with how far the runs are.

    Returns:
        The summary that a report reads, and a sentence for every job that failed.
    """
    out = Path(out).absolute()
    with Lease(out) as lease:
        work = _Sweep(experiment, out, experiment.runs if runs is None else runs, data_dir, lease)
        work.run(executor, capacity, report)
        return Finished(write_summary(experiment, out), work.failures)


class _Sweep:
    def __init__(
        self,
        experiment: Experiment,
        out: Path,
        runs: Sequence[PlannedRun],
        data_dir: str | Path | None,
        lease: Lease,
    ) -> None:
        self.experiment, self.out, self.runs, self.lease = experiment, out, runs, lease
        self.data_dir = None if data_dir is None else str(Path(data_dir).absolute())
        self.trained = {run.slug for run in runs if is_trained(out / run.slug, run)}
        self.failures: dict[str, str] = {}
        self.attempts: dict[Job, int] = {}
        self.flying: dict[Future, Job] = {}
        self.queue: deque[Job] = deque(Job("train", run) for run in runs if run.slug not in self.trained)

    def run(self, executor: Executor, capacity: int | None, report: Callable[[Status], None]) -> None:
        for cell in dict.fromkeys(_cell_of(run) for run in self.runs):
            self._evaluate_when_ready(cell)
        while self.queue or self.flying:
            while self.queue and (capacity is None or len(self.flying) < capacity):
                self._submit(executor, self.queue.popleft())
            report(self._status())
            done, _ = wait(self.flying, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
            for future in done:
                self._settle(self.flying.pop(future), _outcome(future))
        report(self._status())

    def _submit(self, executor: Executor, job: Job) -> None:
        self.attempts[job] = self.attempts.get(job, 0) + 1
        try:
            self.flying[executor.submit(launch, self._specification(job))] = job
        except (RuntimeError, OSError) as error:
            raise _scheduler_lost(error) from None

    def _settle(self, job: Job, outcome: Outcome) -> None:
        slug = job.run.slug
        if outcome.code == 0:
            if job.kind == "train":
                self.trained.add(slug)
            elif job.kind == "evaluate":
                write_summary(self.experiment, self.out)
        elif outcome.code != MISTAKE and self.attempts[job] < ATTEMPTS:
            self.queue.appendleft(job)
            return
        else:
            self.failures[slug] = outcome.sentence
        if job.kind != "evaluate":
            self._evaluate_when_ready(_cell_of(job.run))

    def _evaluate_when_ready(self, cell: Cell) -> None:
        """Once every run asked for has ended, one way or the other, the best of the cell's is scored."""
        asked = [run for run in self.runs if _cell_of(run) == cell]
        if any(run.slug not in self.trained and run.slug not in self.failures for run in asked):
            return
        evaluation = self.experiment.document.evaluation
        # All runs of the cell that have ended take part, also those that are not asked for this time.
        mine = [run for run in self.experiment.runs if _cell_of(run) == cell and run.slug not in self.failures]
        wanted = [Job("validate", run) for run in unscored(self.out, mine, evaluation)] if evaluation.splits else []
        self._enqueue(*wanted)
        if any(job in self.queue or job in self.flying.values() for job in wanted):
            return
        best = selected(self.out, mine, evaluation)
        if best is not None and not is_evaluated(self.out / best.slug, evaluation):
            self._enqueue(Job("evaluate", best))

    def _enqueue(self, *jobs: Job) -> None:
        """Put jobs first, once: several of a cell may end at the same instant, and each asks what is left to do."""
        self.queue.extendleft([job for job in jobs if job not in self.attempts and job not in self.queue])

    def _specification(self, job: Job) -> dict[str, Any]:
        document = self.experiment.document
        common = {
            "kind": job.kind,
            "directory": str(self.out / job.run.slug),
            "data_dir": self.data_dir,
            "lease": str(self.lease.file),
            "token": self.lease.token,
            "settings": job.run.flat,
        }
        if job.kind == "train":
            curves = msgspec.to_builtins(document.curves) if document.curves else None
            return {**common, "curves": curves}
        evaluation = document.evaluation
        splits = evaluation.splits if job.kind == "evaluate" else ("valid",)
        return {
            **common,
            "splits": [split for split in splits if score_of(self.out / job.run.slug, evaluation, split) is None],
            "particles": evaluation.particles,
            "repeats": evaluation.repeats,
            "measures": evaluation.measures,
        }

    def _status(self) -> Status:
        running = [(job.kind, job.run) for job in self.flying.values()]
        return status_of(self.out, self.runs, running, self.lease.token, self.trained, self.failures)


def _cell_of(run: PlannedRun) -> Cell:
    """Runs that only differ in what is selected."""
    return run.cell, run.settings.training.seed


def _outcome(future: Future) -> Outcome:
    try:
        return Outcome(*future.result())
    except CancelledError as error:
        raise _scheduler_lost(error) from None
    except Exception as error:  # of the scheduler: a worker that died too often, say
        return Outcome(-1, " ".join(str(error).split()) or type(error).__name__)


def _scheduler_lost(error: BaseException) -> InputError:
    return InputError(
        f"the scheduler is lost ({' '.join(str(error).split())[:90] or type(error).__name__}); start it again, and the "
        "same command goes on."
    )
