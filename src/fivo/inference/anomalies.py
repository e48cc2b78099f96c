"""Alarms with a false-alarm rate that is met: p-values by rank among data that is known to be ordinary."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from fivo.errors import InputError


@dataclass(frozen=True)
class Calibration:
    """What ordinary data scored, sorted; new scores are ranked among it.

    Args:
        scores: One score for each ordinary row or sequence; smaller is stranger.
    """

    scores: Float[np.ndarray, " ordinary"]

    def __post_init__(self) -> None:
        scores = np.sort(np.asarray(self.scores, np.float64))
        if not len(scores) or not np.isfinite(scores).all():
            raise InputError("calibration needs at least one finite score; give it some ordinary data.")
        object.__setattr__(self, "scores", scores)

    def p_values(
        self, scores: Float[np.ndarray, " new"], ties: Float[np.ndarray, " new"] | float = 1.0
    ) -> Float[np.ndarray, " new"]:
        """The share of ordinary scores, the new one counted among them, that are at most as large as each new one.

        For a new score that is exchangeable with the ordinary ones, P(p <= α) <= α at any α.

        Args:
            scores: New scores.
            ties: What counts of equal scores, the new one's own included; uniform numbers between 0 and 1 make p-values
                exactly uniform, 1 is on the safe side.
        """
        scores = np.asarray(scores, np.float64)
        less = np.searchsorted(self.scores, scores, side="left")
        equal = np.searchsorted(self.scores, scores, side="right") - less
        return (less + ties * (equal + 1)) / (len(self.scores) + 1)

    def check_rate(self, rate: float, what: str) -> None:
        """Refuse a false-alarm rate that no p-value can fall below.

        Args:
            rate: The false-alarm rate.
            what: What is counted, say "sequences".
        """
        if not 0 < rate < 1:
            raise InputError(f"the false-alarm rate must be between 0 and 1, got {rate!r}.")
        if rate < 1 / (len(self.scores) + 1):
            needed = math.ceil(1 / rate) - 1
            raise InputError(
                f"a false-alarm rate of {rate:g} needs at least {needed:,} {what} to calibrate with, but there are "
                f"{len(self.scores):,}; choose a rate of at least {1 / (len(self.scores) + 1):.2g}, or give more data."
            )
