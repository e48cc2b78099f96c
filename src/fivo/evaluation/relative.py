"""Scores relative to a named baseline run: the paper's convention for speech."""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from fivo.errors import InputError
from fivo.runs import Score

SHARED = ("split", "particles", "dataset_fingerprint")
"""What two evaluations must have in common to be compared."""


def relative_to(result: dict[str, Any], baseline: dict[str, Any]) -> dict[str, Any]:
    """How many nats per sequence more a result reports than a baseline's, both as `evaluate` returns them.

    A constant offset of all log-densities, such as that of standardising the data, does not change the difference.
    """
    for name in SHARED:
        if result[name] != baseline[name]:
            what = "other data" if name == "dataset_fingerprint" else f"{name} {baseline[name]!r}"
            raise InputError(
                f"the baseline was evaluated on {what} where {result[name]!r:.20} was expected; evaluate both alike."
            )
    (value, error), (base, base_error) = _reported(result), _reported(baseline)
    return {
        "bound": baseline["reported"]["bound"],
        "trained_with": baseline["config"]["bound"],
        "nats_per_sequence": value - base,
        "standard_error": None if error is None or base_error is None else math.hypot(error, base_error),
    }


def read_baseline(path: str | os.PathLike, evaluate: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    """A baseline's result: of a run's directory, which is evaluated, or of what `fivo evaluate --json` printed."""
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
    return msgspec.to_builtins(score)


def _reported(result: dict[str, Any]) -> tuple[float, float | None]:
    """(nats per sequence, its standard error) of the reported bound."""
    bound = result["bounds"][result["reported"]["bound"]]
    error = bound["standard_error"]  # of nats per step
    return bound["nats_per_sequence"], None if error is None else error * result["mean_length"]
