"""Scores relative to a named baseline run: the paper's convention for speech."""

import math
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from fivo.errors import InputError
from fivo.runs import Relative, Score

SHARED = ("split", "particles", "dataset_fingerprint")
"""What two evaluations must have in common to be compared."""


def relative_to(result: Score, baseline: Score, name: str) -> Relative:
    """How many nats per sequence more a result reports than a baseline's.

    A constant offset of all log-densities, such as that of standardising the data, does not change the difference.

    Args:
        result: What `evaluate` returned.
        baseline: The same of the baseline.
        name: What to call the baseline.

    Returns:
        The difference and its standard error.
    """
    for shared in SHARED:
        mine, others = getattr(result, shared), getattr(baseline, shared)
        if mine != others:
            what = "other data" if shared == "dataset_fingerprint" else f"{shared} {others!r}"
            raise InputError(
                f"the baseline must be evaluated with the same {shared}, {mine!r:.20}, got {what}; evaluate both alike."
            )
    (value, error), (base, base_error) = _reported(result), _reported(baseline)
    return Relative(
        to=name,
        bound=baseline.reported.bound,
        trained_with=str(baseline.config.get("bound", "")),
        nats_per_sequence=value - base,
        standard_error=None if error is None or base_error is None else math.hypot(error, base_error),
    )


def read_baseline(path: str | os.PathLike, evaluate: Callable[[Path], Score]) -> Score:
    """Read the score of a baseline.

    Args:
        path: A run's directory, which is evaluated, or a file with what `fivo evaluate --json` printed.
        evaluate: Evaluates a run's directory.

    Returns:
        The score.
    """
    place = Path(path)
    if place.is_dir():
        return evaluate(place)
    try:
        score = msgspec.json.decode(place.read_bytes(), type=Score)
    except OSError as error:
        raise InputError(
            f"the baseline {str(path)!r} cannot be read ({error.strerror}); give a run's directory or a saved result."
        ) from None
    except (ValueError, RecursionError):
        score = None
    if score is None or score.reported.bound not in score.bounds:
        raise InputError(
            f"the baseline {str(path)!r} is no result of `fivo evaluate --json`; give that, or a run's directory."
        )
    return score


def _reported(result: Score) -> tuple[float, float | None]:
    """(nats per sequence, its standard error) of the reported bound."""
    bound = result.bounds[result.reported.bound]
    error = bound.standard_error  # of nats per step
    return bound.nats_per_sequence, None if error is None else error * result.mean_length
