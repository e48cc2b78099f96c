"""The checkpoints of a run: the latest to continue from, the one before it, and the best on validation.

Arrays are numpy's, by name; what a pytree makes of them is its owner's business.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta

from fivo.errors import InputError
from fivo.files import DamagedError
from fivo.files.tensors import read_metadata, read_tensors, write_tensors
from fivo.runs._sealing import check_run

Arrays = dict[str, np.ndarray]
Count = Annotated[int, Meta(ge=0)]
logger = logging.getLogger(__name__)


class Best(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The step that was best on validation.

    Args:
        step: The step.
        validation: Its bound on validation, in nats per timestep.
    """

    KIND: ClassVar[str] = "best"

    step: Count
    validation: float


class Progress(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The state of a run: everything except the arrays that its future depends on, and what it has cost.

    Args:
        step: Optimizer steps taken.
        best_step: The step that was best on validation.
        best_validation: Its bound there; None before the first validation.
        seconds: Time spent training.
        compilations: Programs compiled.
        unlogged: Metrics of the steps since the last line, where a run was paused between two lines.
        ended: The number of steps that were asked for when a callback ended training; 0 if none did.
    """

    KIND: ClassVar[str] = "latest"

    step: Count = 0
    best_step: Count = 0
    best_validation: float | None = None
    seconds: float = 0.0
    compilations: Count = 0
    unlogged: tuple[dict[str, float], ...] = ()
    ended: Count = 0

    @property
    def logged_step(self) -> int:
        """The step of the last line of metrics."""
        return self.step - len(self.unlogged)

    @property
    def best(self) -> Best | None:
        """What the best checkpoint must be of; None before the first validation."""
        return None if self.best_validation is None else Best(self.best_step, self.best_validation)


class Latest(NamedTuple):
    """A checkpoint to continue from."""

    path: Path
    arrays: Arrays
    progress: Progress


class Checkpoints:
    """The files under `checkpoints/`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.latest = folder / "latest.safetensors"
        self.previous = folder / "latest-previous.safetensors"
        self.best = folder / "best.safetensors"

    def exist(self) -> bool:
        """Whether any was ever written."""
        return any(path.exists() for path in (self.latest, self.previous, self.best))

    def write_latest(self, arrays: Mapping[str, np.ndarray], progress: Progress, run: str) -> None:
        """Write a checkpoint to continue from; the one that was there is kept as the one before it, if it is good."""
        keep = self.previous if _is_good(self.latest, run) else None
        write_tensors(self.latest, arrays, _sealed(progress, run), keep=keep)

    def write_best(self, arrays: Mapping[str, np.ndarray], best: Best, run: str) -> None:
        """Write the parameters that were best on validation."""
        write_tensors(self.best, arrays, _sealed(best, run))

    def read_latest(self, run: str) -> Latest | None:
        """The checkpoint to continue from, which is the one before the latest where that is lost or damaged."""
        state = "lost"
        if self.latest.exists():
            try:
                return self.read(self.latest, run)
            except DamagedError as problem:
                if not self.previous.exists():
                    raise DamagedError(
                        f"{str(problem).rpartition(';')[0]}; there is none before it, so restore it from a copy, or "
                        "remove it to train from the beginning."
                    ) from None
                state = "damaged"
        if not self.previous.exists():
            return None
        try:
            found = self.read(self.previous, run)
        except DamagedError:
            raise DamagedError(
                f"neither {str(self.latest)!r} nor {self.previous.name!r} can be read; restore one of them from a "
                "copy, or remove both to train from the beginning."
            ) from None
        logger.warning(
            "%r is %s; the run continues from the checkpoint before it, of step %d.",
            str(self.latest),
            state,
            found.progress.step,
        )
        return found

    def read(self, path: Path, run: str) -> Latest:
        """A checkpoint to continue from: the latest, or the one before it."""
        arrays, metadata = read_tensors(path)
        return Latest(path, arrays, _opened(metadata, Progress, path, run))

    def read_best(self, run: str) -> tuple[Arrays, Best]:
        """The parameters that were best on validation."""
        arrays, metadata = read_tensors(self.best)
        return arrays, _opened(metadata, Best, self.best, run)

    def progress(self, run: str) -> Progress | None:
        """The state of the run, from its latest readable checkpoint."""
        for path in (self.latest, self.previous):
            if path.exists():
                try:
                    return _opened(read_metadata(path), Progress, path, run)
                except DamagedError:
                    continue
        return None


def _sealed(about: Progress | Best, run: str) -> dict[str, Any]:
    return {"kind": about.KIND, "run": run, **msgspec.to_builtins(about)}


def _opened(metadata: Mapping[str, Any], kind: type, path: Path, run: str) -> Any:
    where = repr(str(path))
    if metadata.get("kind") != kind.KIND:
        raise InputError(f"{where} is no {kind.KIND} checkpoint of a run; remove it and run the same command again.")
    check_run(metadata.get("run"), run, where)
    fields = {key: value for key, value in metadata.items() if key not in ("kind", "run")}
    try:
        if fields.keys() != set(kind.__struct_fields__):
            raise msgspec.ValidationError("it has other fields than expected")
        return msgspec.convert(fields, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        problem = " ".join(str(error).replace("`", "").split())
        raise DamagedError(f"{where} is damaged ({problem:.90}); use another copy, or make it again.") from None


def _is_good(path: Path, run: str) -> bool:
    try:
        _opened(read_metadata(path), Progress, path, run)
    except InputError:
        return False
    return True
