"""What was logged while a run trained, as a table."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fivo.errors import InputError
from fivo.runs import Row


class History(Sequence[Row]):
    """Lines of metrics: index it by number for a line, by name for a column [line], NaN where a line lacks it."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = tuple(rows)

    @property
    def columns(self) -> list[str]:
        """Everything that was logged, by name."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: Any) -> Any:
        if not isinstance(which, str):
            return self.rows[which]
        if which not in self.columns:
            raise InputError(f"the history has no column {which!r:.60}; it has {', '.join(self.columns)}.")
        values = (row.get(which) for row in self.rows)
        return np.array([np.nan if value is None else value for value in values])

    def __repr__(self) -> str:
        if not self.rows:
            return "History of 0 lines"
        last = ", ".join(f"{name} {value:.4g}" for name, value in self.rows[-1].items() if value is not None)
        return f"History of {len(self)} lines; the last: {last}"
