"""The run directory of a process that does not lead: it reads and writes nothing."""

from collections.abc import Mapping
from types import TracebackType
from typing import Any

import numpy as np

from fivo.data import Dataset
from fivo.runs import Best, Progress
from fivo.runs import Record as AnyRecord
from fivo.settings import Settings
from fivo.training.run_directory import RunDirectory


class NothingWritten(RunDirectory):
    """Stands for the directory that process 0 writes, which need not be seen from here."""

    def __enter__(self) -> "NothingWritten":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def record_provenance(self, dataset: Dataset) -> None:
        return

    def record(self, config: Settings, step: int) -> None:
        return

    def write(self, record: AnyRecord) -> None:
        return

    def write_latest(self, arrays: Mapping[str, np.ndarray], progress: Progress) -> None:
        return

    def write_best(self, arrays: Mapping[str, np.ndarray], best: Best) -> None:
        return

    def append_metrics(self, row: Mapping[str, Any]) -> None:
        return

    def forget_after(self, step: int) -> None:
        return

    def forget_result(self) -> None:
        return
