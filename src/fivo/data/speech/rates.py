"""Conversion of the sampling rate by a band-limited polyphase filter."""

import math

import numpy as np
from jaxtyping import Float32, Shaped

from fivo.data.budget import SAMPLE_BYTES, Budget
from fivo.errors import InputError

ZERO_CROSSINGS = 24
KAISER_BETA = 9.0
"""Stops what would fold back by about 90 dB."""
ROLL_OFF = 0.94
LOWEST_RATE, HIGHEST_RATE = 1_000, 400_000

_BLOCK = 1 << 22
"""Products that are computed together."""
_FILTER_BYTES, _PRODUCT_BYTES, _INPUT_BYTES = 160, 24, 12
"""What a weight takes while it is computed, a product while it is summed, and a sample with its double precision."""


def convert_rate(
    samples: Shaped[np.ndarray, " _samples"], rate: int, target: int, budget: Budget
) -> Float32[np.ndarray, " _result"]:
    """The same sound at `target` samples a second; it lasts as long, up to one sample."""
    for value in (rate, target):
        if not LOWEST_RATE <= value <= HIGHEST_RATE:
            raise InputError(f"a rate of {value} Hz cannot be converted; {LOWEST_RATE} to {HIGHEST_RATE} Hz can be.")
    shared = math.gcd(rate, target)
    up, down = target // shared, rate // shared
    cutoff = ROLL_OFF * min(1.0, up / down)
    half = math.ceil(ZERO_CROSSINGS / cutoff)
    count, block = -(-len(samples) * up // down), max(1, _BLOCK // (2 * half))
    budget.spend(len(samples) * _INPUT_BYTES + count * SAMPLE_BYTES)
    budget.afford(max(up * 2 * half * _FILTER_BYTES, min(count, block) * 2 * half * _PRODUCT_BYTES))
    filters = _filters(up, half, cutoff)
    padded = np.concatenate([np.zeros(half - 1), samples, np.zeros(half)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, filters.shape[1])
    result = np.empty(count, np.float32)
    for begin in range(0, count, block):
        positions = np.arange(begin, min(begin + block, count), dtype=np.int64) * down
        result[begin : begin + block] = np.einsum("nk,nk->n", windows[positions // up], filters[positions % up])
    return result


def _filters(up: int, half: int, cutoff: float) -> np.ndarray:
    """[phase, tap]: the weights of the input samples around an output that lies `phase / up` after one of them."""
    # Tap k is the input sample at distance k - (half - 1) from the one before the output.
    distance = np.arange(1 - half, half + 1)[None, :] - np.arange(up)[:, None] / up
    window = np.i0(KAISER_BETA * np.sqrt(np.clip(1 - (distance / half) ** 2, 0, None))) / np.i0(KAISER_BETA)
    filters = cutoff * np.sinc(cutoff * distance) * window
    return filters / filters.sum(axis=1, keepdims=True)
