"""The training loop: steps, lines of metrics, validation, early stopping, checkpoints."""

import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

import jax
import msgspec
from jax.sharding import Mesh

from fivo.devices.mesh import checked_mesh, data_mesh
from fivo.devices.processes import AnyRequest, anybody, check_agreement, decided, leads, several
from fivo.errors import InputError
from fivo.models import SequenceModel
from fivo.runs import Best, Result
from fivo.training.events import EventWriter
from fivo.training.following import NothingWritten
from fivo.training.plan import Plan
from fivo.training.run_directory import RunDirectory
from fivo.training.session import Session
from fivo.training.window import Window

CHECKPOINT_SECONDS = 30.0
logger = logging.getLogger(__name__)


class Stopped(Exception):
    """Training was asked to stop, and a checkpoint of the step that it had reached was saved."""


@dataclass(frozen=True)
class Event:
    """What a callback is told at every line of metrics."""

    step: int
    """How many steps were taken."""
    metrics: dict[str, Any]
    """The line: the bound and what else was measured, with `validation` where the run was validated."""
    _session: Session = field(repr=False)

    @property
    def model(self) -> SequenceModel:
        """A copy of the model as trained so far: training reuses its own buffers."""
        model = self._session.trainer.model(self._session.state)
        return jax.tree.map(lambda leaf: leaf.copy() if isinstance(leaf, jax.Array) else leaf, model)


Report = Callable[[dict[str, Any]], None]
Probe = Callable[[SequenceModel], dict[str, float]]
Callback = Callable[[Event], object]
"""Called with an `Event` at every line of metrics; training ends when one returns True."""


@dataclass(frozen=True)
class Watchers:
    """Who is told what happens while a run trains, and who may end it."""

    report: Report = lambda row: None
    """Told every line of metrics."""
    compiling: Callable[[str], None] = lambda what: None
    """Told before something is compiled, which may take a while."""
    probe: Probe | None = None
    """What it says of the model is added to the metrics at every validation."""
    stop: Callable[[], bool] = lambda: False
    """Asked before every step: once it says yes, a checkpoint is saved and `Stopped` raised."""
    callbacks: Sequence[Callback] = ()
    """Called with an `Event` at every line of metrics; one that returns True ends training."""


def train(
    plan: Plan,
    directory: str | os.PathLike,
    *,
    override: bool = False,
    watchers: Watchers | None = None,
    mesh: Mesh | None = None,
) -> Result:
    """Train a run to its end, or continue it.

    Killed at any instant and started again with the same plan, it ends in the same bits, also if a checkpoint was lost
    or damaged in the meantime.

    Args:
        plan: What to train, on what, and how.
        directory: Where the run is kept.
        override: Continue a run whose settings were others.
        watchers: Who is told what happens.
        mesh: Devices that share out the sequences of a step, as for `fit`. Of several processes it has all
            devices, and process 0 alone reads and writes the directory.

    Returns:
        What training ended with.
    """
    watchers = Watchers() if watchers is None else watchers
    facts = {"settings": msgspec.json.encode(plan.settings, order="deterministic")}
    check_agreement(facts | {"data": plan.dataset.fingerprint.encode()})
    mesh = data_mesh() if mesh is None and several() else checked_mesh(mesh)
    run = RunDirectory(directory) if leads() else NothingWritten(directory)
    with ExitStack() as stack:

        def begin() -> bool:
            stack.enter_context(run)
            return run.check(plan.settings, plan.dataset.fingerprint, override=override)

        changed = decided(begin)
        session = Session(plan, run, watchers.compiling, mesh)
        session.restore()
        if changed and not session.best_is_kept():
            raise InputError(
                f"{str(run.best)!r} is lost or damaged; run the command with the old settings, without --override, "
                "which makes it anew."
            )
        best = _train(session, watchers)
        if not session.best_is_kept():
            expected, session = best, session.again()
            best = _train(session, watchers)
            if best != expected:
                logger.warning(
                    "%r came out otherwise than before (%s, not %s); evaluate it again.", str(run.path), best, expected
                )
        progress = session.progress
        result = Result(
            steps=progress.step,
            best_step=best.step,
            best_validation=best.validation,
            stopped_early=progress.step < session.config.steps,
            seconds=progress.seconds,
            compilations=progress.compilations,
        )
        run.write(result)
        decided(lambda: True)  # nobody leaves before the result is there
        return result


def _train(session: Session, watchers: Watchers) -> Best:
    """Train from a session's current step to the end, after making everything on disk agree with it."""
    run = session.run
    if not session.finished:
        # Before the settings change: a kill in between must not leave a result next to other settings than its own.
        run.forget_result()
        run.record_provenance(session.dataset)
    run.record(session.plan.settings, session.progress.step)
    session.settle()
    with ExitStack() as stack:
        reports = [watchers.report]
        if session.config.tensorboard and leads():
            reports.append(stack.enter_context(closing(EventWriter(run.path, session.progress.step))).write)
        _Loop(session, watchers, reports).run()
    return session.conclude()


class _Loop:
    """Steps until the end, a line of metrics every so often."""

    def __init__(self, session: Session, watchers: Watchers, reports: list[Report]) -> None:
        self.session, self.watchers, self.reports = session, watchers, reports
        self.started = time.monotonic() - session.progress.seconds
        self.window = Window(session.trainer, session.progress.unlogged)
        self.ended = False
        """Whether a callback has ended it."""
        self.asked = AnyRequest()

    def run(self) -> None:
        session, config, saved = self.session, self.session.config, time.monotonic()
        if session.finished and session.progress.unlogged:
            # No more steps were asked for than until a pause between two lines, so the last one has none yet.
            self._log(validate=True, save=True)
        while not session.finished and not self.ended:
            if self.asked(self.watchers.stop()):
                session.pause(self.window, time.monotonic() - self.started)
                decided(lambda: True)  # nobody leaves before the checkpoint is there
                raise Stopped
            self.window.metrics.append(session.advance())
            step = session.progress.step
            validate = step % config.validate_every == 0 or step == config.steps
            if not validate and step % config.log_every != 0:
                continue
            save = validate or time.monotonic() - saved > CHECKPOINT_SECONDS
            self._log(validate=validate, save=save)
            saved = time.monotonic() if save else saved
            self.window = Window(session.trainer)

    def _log(self, *, validate: bool, save: bool) -> None:
        """Write the line of a step, then its checkpoint if one is due: what a checkpoint has seen is logged."""
        session, step = self.session, self.session.progress.step
        bad = self.window.first_bad(step)
        if bad is not None:
            raise session.failure(*bad)
        row = self.window.row(step)
        if validate:
            row["validation"] = session.validate()
            if self.watchers.probe is not None:
                row |= self.watchers.probe(session.trainer.model(session.state))
        row["seconds"] = time.monotonic() - self.started
        session.note(seconds=row["seconds"], unlogged=())
        session.run.append_metrics(row)
        event = Event(step, row, session)
        answers = [callback(event) for callback in self.watchers.callbacks]
        stopped = anybody(True in answers) if answers else False
        self.ended = stopped or step == session.last_step
        session.note(ended=session.config.steps if self.ended else 0)
        if save or self.ended:
            session.save()
        for report in self.reports:
            report(row)
