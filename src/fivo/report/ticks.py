"""Axes with round numbers, linear and logarithmic."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Room for margins and ratios before floats overflow.
LARGEST, SMALLEST = 1e250, 1e-250
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# Below this share of the values themselves a range is rounding noise, and ticks would repeat each other.
NARROWEST_RANGE = 1e-12


class Tick(NamedTuple):
    value: float
    label: str


class Axis(NamedTuple):
    """A range of values, where it is marked, and how a value becomes a place between 0 and 1."""

    low: float
    high: float
    log: bool
    ticks: list[Tick]
    minor: list[float]
    """Values marked without a label."""

    def place(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """0 at the low end and 1 at the high end; what a logarithm cannot show is put far below."""
        if not self.log:
            return (values - self.low) / (self.high - self.low)
        low, high = math.log10(self.low), math.log10(self.high)
        positive = values > 0
        return np.where(positive, (np.log10(np.where(positive, values, 1.0)) - low) / (high - low), -1.0)


def showable(values: NDArray[np.float64], log: bool) -> NDArray[np.bool_]:
    """Which values an axis can show: finite ones, and on a logarithmic axis positive ones."""
    finite = np.abs(values) < LARGEST
    return finite & (values > SMALLEST) if log else finite


def axis_of(values: NDArray[np.float64], *, log: bool, margin: float, most_ticks: int) -> Axis:
    """An axis around the values that it can show, wider by the share `margin` at each end."""
    values = values[showable(values, log)]
    if len(values) == 0:
        values = np.array([1.0, 10.0] if log else [0.0, 1.0])
    return (_log_axis if log else _linear_axis)(values, margin, most_ticks)


def _linear_axis(values: NDArray[np.float64], margin: float, most_ticks: int) -> Axis:
    values = np.where(np.abs(values) < SMALLEST, 0.0, values)
    low, high = float(values.min()), float(values.max())
    flat = high - low <= NARROWEST_RANGE * max(abs(low), abs(high))
    room = (0.1 * abs(high) or 1.0) if flat else margin * (high - low)
    whole = bool((values == np.rint(values)).all())
    low, high = low - room, high + room
    return Axis(low, high, False, _linear_ticks(low, high, most_ticks, whole), [])


def _linear_ticks(low: float, high: float, most_ticks: int, whole: bool) -> list[Tick]:
    rough = (high - low) / most_ticks
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    if whole:
        step = max(step, 1.0)
    numbers = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return [Tick(number * step, _linear_label(number * step, step, max(abs(low), abs(high)))) for number in numbers]


def _linear_label(value: float, step: float, largest: float) -> str:
    digits = math.floor(math.log10(step) + 1e-9)
    if value == 0:
        return "0"
    if step > 1e-5 and largest < 1e7:
        return f"{value:,.{max(0, -digits)}f}".replace("-", "−")
    exponent = math.floor(math.log10(abs(value)) + 1e-9)
    return _scientific(value, exponent, max(0, exponent - digits))


def _scientific(value: float, exponent: int, decimals: int) -> str:
    """`value` as a multiple of a power of ten, such as 2.5×10⁻⁷."""
    power = f"10{str(exponent).translate(SUPERSCRIPTS)}"
    mantissa = f"{value / 10.0**exponent:.{decimals}f}".replace("-", "−")
    return power if mantissa == "1" else f"{mantissa}×{power}"


def _log_axis(values: NDArray[np.float64], margin: float, most_ticks: int) -> Axis:
    low, high = float(values.min()), float(values.max())
    flat = high <= low * (1 + NARROWEST_RANGE)
    room = 0.3 if flat else margin * (math.log10(high) - math.log10(low))
    # Numbers of particles are mostly powers of two; marks at 5 and 50 would lie between them.
    base = 2 if low < high and (np.frexp(values)[0] == 0.5).all() else 10
    low, high = low / 10**room, high * 10**room
    powers = _powers_within(low, high, base)
    if base == 2 or len(powers) >= 3:
        stride = math.ceil(len(powers) / most_ticks)
        ticks = _log_ticks([float(base) ** power for power in powers if power % stride == 0])
        return Axis(low, high, True, ticks, _between_powers(low, high) if base == 10 and stride == 1 else [])
    between = _between_powers(low, high)
    ticks = _log_ticks([value for value in between if f"{value:e}"[0] in "125"])
    if len(ticks) < 3:
        return Axis(low, high, True, _linear_ticks(low, high, most_ticks, whole=False), [])
    return Axis(low, high, True, ticks, between)


def _powers_within(low: float, high: float, base: int) -> list[int]:
    scale = math.log(base)
    return list(range(math.ceil(math.log(low) / scale - 1e-9), math.floor(math.log(high) / scale + 1e-9) + 1))


def _between_powers(low: float, high: float) -> list[float]:
    """1 to 9 times the powers of ten, as far as they lie within the range."""
    exponents = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
    values = [float(f"{factor}e{exponent}") for exponent in exponents for factor in range(1, 10)]
    return [value for value in values if low <= value <= high]


def _log_ticks(values: list[float]) -> list[Tick]:
    """Plain labels if they stay short for all values, otherwise powers of ten for all."""
    if all(1e-3 <= value < 1e6 for value in values):
        return [Tick(value, f"{value:,.10g}") for value in values]
    return [Tick(value, _power_label(value)) for value in values]


def _power_label(value: float) -> str:
    exponent = math.floor(math.log10(value) + 1e-9)
    _, _, decimals = f"{value / 10.0**exponent:.3g}".partition(".")
    return _scientific(value, exponent, len(decimals))
