"""Conversion of the sampling rate, by scipy's polyphase filter."""

import math
from typing import Any

import numpy as np
from jaxtyping import Float32, Shaped

from fivo.data.budget import Budget
from fivo.errors import InputError

ZERO_CROSSINGS = 24
KAISER_BETA = 9.0
"""Stops what would fold back by about 90 dB; scipy's own choice of 5 stops about 50."""
ROLL_OFF = 0.94
LOWEST_RATE, HIGHEST_RATE = 1_000, 400_000

_TAP_BYTES, _INPUT_BYTES, _RESULT_BYTES = 48, 12, 12
"""What a weight of the filter takes while it is computed, a sample with its double precision, and one of the result."""


def convert_rate(
    samples: Shaped[np.ndarray, " _samples"], rate: int, target: int, budget: Budget
) -> Float32[np.ndarray, " _result"]:
    """The same sound at `target` samples a second; it lasts as long, up to one sample."""
    for value in (rate, target):
        if not LOWEST_RATE <= value <= HIGHEST_RATE:
            raise InputError(f"a rate of {value} Hz cannot be converted; {LOWEST_RATE} to {HIGHEST_RATE} Hz can be.")
    shared = math.gcd(rate, target)
    up, down = target // shared, rate // shared
    half = math.ceil(ZERO_CROSSINGS / ROLL_OFF * max(up, down))
    budget.spend(len(samples) * _INPUT_BYTES + -(-len(samples) * up // down) * _RESULT_BYTES)
    budget.afford((2 * half + 1) * _TAP_BYTES)
    from scipy import signal  # takes longer to import than most recordings to convert

    window: Any = ("kaiser", KAISER_BETA)  # scipy declares a name only, and takes a name with its parameter too
    taps = signal.firwin(2 * half + 1, ROLL_OFF / max(up, down), window=window)
    return signal.resample_poly(samples.astype(np.float64), up, down, window=taps).astype(np.float32)
