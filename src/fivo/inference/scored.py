"""What a stream says of one row, in the user's units."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from fivo.data import TableSchema
from fivo.errors import InputError
from fivo.inference.rowfilters import Rows
from fivo.inference.rowwise import state_columns, value_columns


@dataclass(frozen=True)
class ScoredRow:
    """A row of a stream: what was expected of it, how likely it was, and the latents after it.

    Args:
        schema: How the table was read that the model was trained on.
        quantiles: Which quantiles there are.
        id: Of the series, as the row has it; None without an id column.
        time: As the row has it; None without a time column.
        log_likelihood: log p(row | rows before), in nats of the user's units; -inf for rows that are impossible.
        p_value: How often an ordinary row is as strange; None without calibration.
        alarm: Whether the p-value is at most the false-alarm rate.
        found: The same on the model's scale; parts that were not asked for are None.
    """

    schema: TableSchema = field(repr=False)
    quantiles: tuple[float, ...]
    id: Any
    time: Any
    log_likelihood: float
    p_value: float | None
    alarm: bool | None
    found: Rows = field(repr=False)

    @property
    def mean(self) -> dict[str, float]:
        """What was expected of every value but categories before the row was seen."""
        columns = self._values
        names = [column.name for column in self.schema.values if column.kind != "category"]
        return {name: columns[f"{name}_mean"] for name in names}

    def quantile(self, level: float) -> dict[str, float]:
        """What every value but categories was expected to lie below.

        Args:
            level: With this probability.

        Returns:
            The quantile of every column by its name, in the table's units.
        """
        if level not in self.quantiles:
            raise InputError(f"level must be one of the stream's quantiles {self.quantiles}, got {level!r:.40}.")
        columns = self._values
        names = [column.name for column in self.schema.values if column.kind != "category"]
        return {name: columns[f"{name}_q{level:g}"] for name in names}

    @property
    def state_mean(self) -> Float[np.ndarray, " latent"]:
        """The mean of the latents given the rows so far, this one included."""
        return np.asarray(self.found.state_mean)

    @property
    def ess(self) -> float:
        """The effective sample size of the particles after the row."""
        return float(self.found.ess)

    def to_dict(self) -> dict[str, Any]:
        """The row as `fivo filter` writes it.

        Returns:
            id, time, `y_mean`, `y_q0.1`, `log_likelihood`, `state0_mean`, ...
        """
        names = (self.schema.id, self.schema.time_column)
        made = {name: cell for name, cell in zip(names, (self.id, self.time), strict=True) if name is not None}
        made |= self._values | {"log_likelihood": self.log_likelihood}
        if self.p_value is not None:
            made |= {"p_value": self.p_value, "alarm": self.alarm}
        mean, given = np.asarray(self.found.state_mean)[None], self.found.state_quantiles
        quantile, levels = (mean[:, None], ()) if given is None else (np.asarray(given)[None], self.quantiles)
        return made | {name: float(cell[0]) for name, cell in state_columns(mean, quantile, levels).items()}

    @cached_property
    def _values(self) -> dict[str, float]:
        mean, quantile = np.asarray(self.found.mean)[None], np.asarray(self.found.quantiles)[None]
        columns = value_columns(self.schema, mean, quantile, self.quantiles)
        return {name: float(cell[0]) for name, cell in columns.items()}
