"""The training loop: steps, lines of metrics, validation, early stopping, checkpoints."""

import logging
import os
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Any

import msgspec

from fivo.data import Dataset
from fivo.errors import InputError
from fivo.models import SequenceModel
from fivo.runs import Best, Result
from fivo.training.config import TrainConfig
from fivo.training.events import EventWriter
from fivo.training.memory_estimate import check_memory
from fivo.training.run_directory import RunDirectory
from fivo.training.session import Session
from fivo.training.window import Window

CHECKPOINT_SECONDS = 30.0
logger = logging.getLogger(__name__)


class Stopped(Exception):
    """Training was asked to stop, and a checkpoint of the step that it had reached was saved."""


Report = Callable[[dict[str, Any]], None]
Probe = Callable[[SequenceModel], dict[str, float]]


def train(
    config: TrainConfig,
    directory: str | os.PathLike,
    dataset: Dataset,
    *,
    override: bool = False,
    report: Report = lambda row: None,
    probe: Probe | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Train a run to its end, or continue it; returns what `result.json` holds.

    Killed at any instant and started again with the same settings, it ends in the same bits, also if a checkpoint was
    lost or damaged in the meantime. What `probe` says of the model is added to the metrics at every validation. `stop`
    is asked before every step: once it says yes, a checkpoint is saved and `Stopped` raised.
    """
    check_memory(config, dataset)
    with RunDirectory(directory) as run:
        changed = run.check(config, dataset.fingerprint, override=override)
        session = Session(config, run, dataset)
        session.restore()
        if changed and not session.best_is_kept():
            raise InputError(
                f"{str(run.best)!r} is lost or damaged; run the command with the old settings, without --override, "
                "which makes it anew."
            )
        best = _train(session, report, probe, stop)
        if not session.best_is_kept():
            expected, session = best, session.again()
            best = _train(session, report, probe, stop)
            if best != expected:
                logger.warning(
                    "%r came out otherwise than before (%s, not %s); evaluate it again.", str(run.path), best, expected
                )
        progress = session.progress
        result = Result(
            steps=progress.step,
            best_step=best.step,
            best_validation=best.validation,
            stopped_early=progress.step < config.steps,
            seconds=progress.seconds,
            compilations=progress.compilations,
        )
        run.write(result)
        return msgspec.to_builtins(result)


def _train(session: Session, report: Report, probe: Probe | None, stop: Callable[[], bool]) -> Best:
    """Train from where a session stands to the end, with everything on disk agreeing with it first."""
    run, config = session.run, session.config
    if not session.finished:
        # Before the settings change: a kill in between must not leave a result beside settings it is not of.
        run.forget_result()
        run.record_provenance(session.dataset.fingerprint)
    run.record(config, session.progress.step)
    session.settle()
    with ExitStack() as stack:
        reports = [report]
        if config.tensorboard:
            reports.append(stack.enter_context(closing(EventWriter(run.path, session.progress.step))).write)
        _run_to_end(session, reports, probe, stop)
    return session.conclude()


def _run_to_end(session: Session, reports: list[Report], probe: Probe | None, stop: Callable[[], bool]) -> None:
    config = session.config
    started = time.monotonic() - session.progress.seconds
    saved = time.monotonic()
    window = Window(session.trainer, session.progress.unlogged)
    if session.finished and session.progress.unlogged:
        # No more steps were asked for than until a pause between two lines, so the last one has none yet.
        _log(session, window, reports, started, probe=probe, validate=True, save=True)
    while not session.finished:
        if stop():
            session.pause(window, time.monotonic() - started)
            raise Stopped
        window.metrics.append(session.advance())
        step = session.progress.step
        validate = step % config.validate_every == 0 or step == config.steps
        if not validate and step % config.log_every != 0:
            continue
        save = validate or time.monotonic() - saved > CHECKPOINT_SECONDS
        _log(session, window, reports, started, probe=probe, validate=validate, save=save)
        saved = time.monotonic() if save else saved
        window = Window(session.trainer)


def _log(
    session: Session,
    window: Window,
    reports: list[Report],
    started: float,
    *,
    probe: Probe | None,
    validate: bool,
    save: bool,
) -> None:
    """Write the line of metrics of a step, then its checkpoint if one is due: what a checkpoint has seen is logged."""
    step = session.progress.step
    bad = window.first_bad(step)
    if bad is not None:
        raise session.failure(*bad)
    row = window.row(step)
    if validate:
        row["validation"] = session.validate()
        if probe is not None:
            row |= probe(session.trainer.model(session.state))
    row["seconds"] = time.monotonic() - started
    session.note(seconds=row["seconds"], unlogged=())
    session.run.append_metrics(row)
    if save:
        session.save()
    for report in reports:
        report(row)
