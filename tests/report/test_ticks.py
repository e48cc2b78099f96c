"""Axes have a readable number of round, distinct, correctly labelled marks, whatever the values."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivo.report.ticks import axis_of, showable

SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")


def axis(values, log=False, most_ticks=7):
    return axis_of(np.array(values, np.float64), log=log, margin=0.05, most_ticks=most_ticks)


def labels(values, log=False, most_ticks=7):
    return [tick.label for tick in axis(values, log, most_ticks).ticks]


def number_of(label: str) -> float:
    """What a reader takes a label for."""
    mantissa, times, power = label.replace(",", "").rpartition("×")
    if power.startswith("10") and (times or not power.isascii()):
        return float((mantissa or "1").translate(SUPERSCRIPTS)) * 10.0 ** int(power[2:].translate(SUPERSCRIPTS))
    return float(power.translate(SUPERSCRIPTS))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0, 1], ["0", "1"]),
        ([0, 1.5], ["0", "0.5", "1.0", "1.5"]),
        ([-6.92, -6.78], ["−6.90", "−6.85", "−6.80"]),
        ([0, 20000], ["0", "5,000", "10,000", "15,000", "20,000"]),
        ([-7123, -6020], ["−7,000", "−6,800", "−6,600", "−6,400", "−6,200", "−6,000"]),
        ([0, 3e7], ["0", "5×10⁶", "1.0×10⁷", "1.5×10⁷", "2.0×10⁷", "2.5×10⁷", "3.0×10⁷"]),
        ([1e-7, 2.8e-7], ["1.0×10⁻⁷", "1.5×10⁻⁷", "2.0×10⁻⁷", "2.5×10⁻⁷"]),
        ([5, 5], ["5"]),
    ],
)
def test_linear_labels(values, expected):
    assert labels(values) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 1000], ["1", "10", "100", "1,000"]),
        ([0.001, 10, 3], ["0.001", "0.01", "0.1", "1", "10"]),
        ([4, 8, 16, 32, 64, 128], ["4", "8", "16", "32", "64", "128"]),
        ([3, 40], ["5", "10", "20"]),
        ([1e-4, 1e7], ["10⁻⁴", "10⁻²", "10⁰", "10²", "10⁴", "10⁶"]),
        ([3e8, 4e9], ["5×10⁸", "10⁹", "2×10⁹"]),
        ([1.1, 1.9], ["1.2", "1.4", "1.6", "1.8"]),
    ],
)
def test_logarithmic_labels(values, expected):
    assert labels(values, log=True) == expected


repeatable = settings(deadline=None, derandomize=True)
ordinary = st.floats(-1e12, 1e12, allow_subnormal=False)
extreme = st.floats(allow_nan=True, allow_infinity=True)


@repeatable
@given(st.lists(st.one_of(ordinary, extreme), max_size=6), st.booleans(), st.integers(3, 10))
def test_any_values(values, log, most_ticks):
    made = axis(values, log, most_ticks)
    shown = np.array(values, np.float64)
    shown = shown[showable(shown, log)]
    assert math.isfinite(made.low)
    assert math.isfinite(made.high)
    assert made.low < made.high
    places = made.place(shown)
    assert ((places >= 0) & (places <= 1)).all()
    assert len(made.ticks) <= 2 * most_ticks + 1
    assert len({tick.label for tick in made.ticks}) == len(made.ticks)
    marks = made.place(np.array([tick.value for tick in made.ticks]))
    assert (np.diff(marks) > 0).all()
    assert ((marks > -1e-6) & (marks < 1 + 1e-6)).all()


@repeatable
@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9), st.integers(3, 10))
def test_labels_tell_the_value(low, width, most_ticks):
    made = axis([low, low + width], False, most_ticks)
    assert len(made.ticks) >= 1
    for tick in made.ticks:
        assert number_of(tick.label) == pytest.approx(tick.value, rel=1e-9, abs=1e-9 * width)


@repeatable
@given(st.floats(-20, 20), st.floats(0.05, 30), st.integers(3, 10))
def test_logarithmic_labels_tell_the_value(low, decades, most_ticks):
    made = axis([10**low, 10 ** (low + decades)], True, most_ticks)
    assert len(made.ticks) >= 1
    for tick in made.ticks:
        assert number_of(tick.label) == pytest.approx(tick.value, rel=1e-9)


@pytest.mark.parametrize("values", [[0, 5e-324], [1e-310, 3e-310], [-1e-300, 1e-300]])
def test_numbers_that_are_almost_zero(values):
    assert labels(values) == ["−1", "0", "1"]


def test_logarithmic_places():
    made = axis([1, 100], log=True)
    low, middle, high = made.place(np.array([1.0, 10.0, 100.0]))
    assert middle == pytest.approx(0.5)
    assert high - middle == pytest.approx(middle - low)
    assert (made.place(np.array([0.0, -3.0])) < 0).all()
