"""A run's directory, owned by one writing process at a time.

config.toml     the settings                     checkpoints/latest.safetensors            to continue from, to the bit
run.json        versions, data, host-free        checkpoints/latest-previous.safetensors   the one before it
metrics.jsonl   one object per logged step       checkpoints/best.safetensors              best on validation
result.json     written when training ends       evaluation.json, diagnosis/               scores, what limits the run
table.json      how the table was read           forecast.json, anomaly.json               what was last drawn of tables

Every file has a checksum and names the run it belongs to (lines of metrics have only a checksum).
"""

import logging
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

from fivo.errors import InputError
from fivo.files import lock, remove, remove_parts, write_atomically
from fivo.runs._checkpoints import Arrays, Best, Checkpoints, Latest, Progress
from fivo.runs._metrics import Row, append_line, keep_until, read_lines
from fivo.runs._records import Evaluations, Provenance, Result
from fivo.runs._sealing import AnyRecord, Record, read_record, write_record
from fivo.runs._settings import Identity, encode_settings, read_settings

CONFIG = "config.toml"
"""The file that makes a directory a run."""
logger = logging.getLogger(__name__)

AnyDirectory = TypeVar("AnyDirectory", bound="RunDirectory")


class RunDirectory:
    """The files of a run, each read once it is seen to be whole; hold it as a context manager to write.

    Args:
        path: The directory; it need not exist yet.
    """

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = Path(path)
        self.checkpoints = Checkpoints(self.path / "checkpoints")
        self._new_id = secrets.token_hex(8)
        self._lock: Any = None
        self._handle: int | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    @property
    def config_path(self) -> Path:
        """The settings."""
        return self.path / CONFIG

    @property
    def metrics_path(self) -> Path:
        """One line for every step that was logged."""
        return self.path / "metrics.jsonl"

    @property
    def latest(self) -> Path:
        """The checkpoint to continue from."""
        return self.checkpoints.latest

    @property
    def previous(self) -> Path:
        """The checkpoint before the latest."""
        return self.checkpoints.previous

    @property
    def best(self) -> Path:
        """The parameters that were best on validation."""
        return self.checkpoints.best

    def exists(self) -> bool:
        """Whether a run was ever started here.

        Returns:
            True if the directory holds settings.
        """
        return self.config_path.exists()

    @property
    def id(self) -> str:
        """What ties the files of the run together; a new one where none was started yet."""
        return self.identity().run if self.exists() else self._new_id

    def identity(self) -> Identity:
        """Read what tells this run from others.

        Returns:
            The run's id, and the steps at which its settings were changed.
        """
        return self._settings()[1]

    def settings(self) -> dict[str, Any]:
        """Read the settings of the run.

        Returns:
            The settings in their sections, as plain values.
        """
        return self._settings()[0]

    def provenance(self) -> Provenance:
        """Read what trained the run.

        Returns:
            Versions and the dataset's fingerprint.
        """
        return self.read(Provenance)

    def result(self) -> Result:
        """Read what training ended with.

        Returns:
            The result; a run that has not ended has none, which is an `InputError`.
        """
        return self.read(Result)

    def evaluations(self) -> Evaluations:
        """Read the scores that a sweep has made.

        Returns:
            The scores by split.
        """
        return self.read(Evaluations)

    def read(self, kind: type[AnyRecord]) -> AnyRecord:
        """Read a record of this run; one that is missing, damaged or of another run is refused.

        Args:
            kind: The class of the record, such as `Result`.

        Returns:
            The record.
        """
        path = self.path / kind.FILE
        if not path.exists():
            raise InputError(f"{str(self.path)!r} has no {kind.FILE}; {kind.REMEDY}.")
        return read_record(path, kind, run=self.id)

    def metrics(self) -> list[Row]:
        """Read the metrics; a warning says what was lost, if anything was.

        Returns:
            All good lines.
        """
        lines = read_lines(self.metrics_path)
        lost = lines.lost(self._steps())
        if lost is not None:
            logger.warning("%r %s; what is left is used.", str(self.metrics_path), lost)
        return lines.rows

    def progress(self) -> Progress | None:
        """Read the progress of training.

        Returns:
            The progress of the latest checkpoint; None before the first one.
        """
        return self.checkpoints.progress(self.id)

    def read_latest(self) -> Latest | None:
        """Read the checkpoint to continue from, or the one before it if that is lost or damaged.

        Returns:
            The checkpoint; None before the first one.
        """
        return self.checkpoints.read_latest(self.id)

    def read_best(self) -> tuple[Arrays, Best]:
        """Read the parameters that were best on validation.

        Returns:
            The arrays by name, and which step they are of.
        """
        return self.checkpoints.read_best(self.id)

    def write_settings(self, settings: Mapping[str, Any], changed_at: Sequence[int] = ()) -> None:
        """Write the settings that the run is continued with, unless they are there already.

        Args:
            settings: The settings in their sections.
            changed_at: The steps at which they were changed.
        """
        content = encode_settings(settings, self.id, changed_at)
        if not self.exists() or self.config_path.read_bytes() != content:
            self.ensure_in_place()
            write_atomically(self.config_path, content)

    def write(self, record: Record) -> None:
        """Write a record of this run.

        Args:
            record: The record.
        """
        self.ensure_in_place()
        write_record(self.path / record.FILE, record, run=self.id)

    def write_latest(self, arrays: Mapping[str, np.ndarray], progress: Progress) -> None:
        """Write a checkpoint to continue from; the latest one so far becomes the one before it.

        Args:
            arrays: The training state by name.
            progress: Where the run stands.
        """
        self.ensure_in_place()
        self.checkpoints.write_latest(arrays, progress, self.id)

    def write_best(self, arrays: Mapping[str, np.ndarray], best: Best) -> None:
        """Write the parameters that are best on validation so far.

        Args:
            arrays: The parameters by name.
            best: The step that they are of.
        """
        self.ensure_in_place()
        self.checkpoints.write_best(arrays, best, self.id)

    def append_metrics(self, row: Mapping[str, Any]) -> None:
        """Add one line of metrics, on disk before this returns.

        Args:
            row: The step and what was measured.
        """
        self.ensure_in_place()
        append_line(self.metrics_path, dict(row))

    def forget_after(self, step: int) -> None:
        """Drop metrics of steps that a restored checkpoint has not seen, and set damaged lines aside.

        Args:
            step: The last step to keep.
        """
        self.ensure_in_place()
        said = keep_until(self.metrics_path, step)
        if said is not None:
            logger.warning("%s", said)

    def forget_result(self) -> None:
        """A run that goes on has no result yet."""
        self.ensure_in_place()
        remove(self.path / Result.FILE)

    def ensure_in_place(self) -> None:
        """Refuse to write once the directory was moved away: its old name would be made again, with a part of a run."""
        if self._handle is None:
            return
        held = os.fstat(self._handle)
        try:
            found = os.stat(self.path)
        except OSError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != (held.st_dev, held.st_ino):
            raise InputError(
                f"{str(self.path)!r} was moved or removed while it was being written; move it back, or continue it "
                "where it is now by giving that as --out."
            )

    def __enter__(self: AnyDirectory) -> AnyDirectory:
        self._lock = lock(self.path / ".lock", f"another process is writing {str(self.path)!r}")
        self._handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        for folder in (self.path, self.checkpoints.folder):
            remove_parts(folder)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        self._lock.close()

    def _steps(self) -> int:
        """How many steps a finished run has; 0 where that is not known."""
        try:
            return self.result().steps if (self.path / Result.FILE).exists() else 0
        except InputError:
            return 0

    def _settings(self) -> tuple[dict[str, Any], Identity]:
        if not self.exists():
            raise InputError(
                f"{str(self.path)!r} is not a run directory (it has no {CONFIG}); train one with `fivo fit`."
            )
        return read_settings(self.config_path)
