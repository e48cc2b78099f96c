"""How likely rows and series are under a model."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from fivo.inference.results import Result, frame_of, labelled


@dataclass(frozen=True, repr=False)
class Likelihoods(Result):
    """log p(x_t | x_<t) of every row, in nats of the data's own units.

    Args:
        context: The series.
        levels: None.
        draws: Of independent filters, all series one after the other; one where the model knows the answer exactly.
    """

    draws: Float[np.ndarray, "repeat row"]

    @property
    def log_likelihood(self) -> Float[np.ndarray, "series time"]:
        """The mean over filters; NaN past the end of a series."""
        return self.context.padded(self.draws.mean(axis=0))

    @property
    def standard_error(self) -> Float[np.ndarray, "series time"]:
        """Of the mean; zero where it is exact."""
        return self.context.padded(_error(self.draws))

    @property
    def totals(self) -> Float[np.ndarray, " series"]:
        """log p(x_1:T) of every series."""
        return self._totals.mean(axis=0)

    @property
    def _totals(self) -> Float[np.ndarray, "repeat series"]:
        return np.stack([self.draws[:, a:b].sum(axis=1) for a, b in pairwise(self.context.bounds)], axis=1)

    def to_frame(self, of: Literal["rows", "series"] = "rows") -> Any:
        """A table of the kind that was given: the likelihood of every row, or the totals of every series.

        Args:
            of: What its rows are.

        Returns:
            `log_likelihood` and `standard_error`; of series also `rows` and `per_row`.
        """
        if of == "rows":
            mean, error = self.draws.mean(axis=0), _error(self.draws)
            return self._rows({"log_likelihood": mean, "standard_error": error})
        lengths = np.diff(self.context.bounds)
        columns = {
            **self.context.id_columns,
            "rows": lengths,
            "log_likelihood": self.totals,
            "per_row": self.totals / lengths,
            "standard_error": _error(self._totals),
        }
        return self.context.returned(frame_of(columns))

    def to_xarray(self) -> Any:
        """Labelled arrays.

        Returns:
            An `xarray.Dataset` with dimensions series and step.
        """
        over = ("series", "step")
        variables = {"log_likelihood": (over, self.log_likelihood), "standard_error": (over, self.standard_error)}
        return labelled(variables, series=self.ids)

    def __repr__(self) -> str:
        return f"Likelihoods({len(self.ids)} series, {self.totals.sum():.4f} nats in all)"


def _error(draws: Float[np.ndarray, "repeat *shape"]) -> Float[np.ndarray, "*shape"]:
    """The standard error of a mean over repeats; zero where there is one, which is then exact."""
    return draws.std(axis=0, ddof=1) / np.sqrt(len(draws)) if len(draws) > 1 else np.zeros(draws.shape[1:])
