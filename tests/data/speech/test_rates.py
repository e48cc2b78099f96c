"""Resampling: what both rates can represent stays as it is, what the target cannot is removed."""

import numpy as np
import pytest

from fivo.data.budget import Budget
from fivo.data.speech.rates import convert_rate
from fivo.errors import InputError
from tests.sentences import assert_one_sentence


def tone(frequency: float, rate: int, seconds: float = 0.25) -> np.ndarray:
    return 1000 * np.sin(2 * np.pi * frequency * np.arange(round(seconds * rate)) / rate + 0.3)


@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 44_100, 48_000])
def test_a_tone_stays_that_tone(rate):
    """Away from the ends, where the filter sees silence beside the sound; -80 dB is a tenth of a 16-bit step here."""
    result = convert_rate(tone(1_000, rate), rate, 16_000, Budget("a.wav"))
    assert result.dtype == np.float32
    expected = tone(1_000, 16_000)
    assert abs(len(result) - len(expected)) <= 1
    inside = slice(400, len(expected) - 400)
    np.testing.assert_allclose(result[inside], expected[inside], atol=0.1)


def test_what_would_fold_back_is_removed():
    inside = convert_rate(tone(10_000, 48_000), 48_000, 16_000, Budget("a.wav"))[400:-400]
    assert np.abs(inside).max() < 0.2


def test_a_constant_stays_constant():
    inside = convert_rate(np.full(4_000, 7, np.int16), 44_100, 16_000, Budget("a.wav"))[200:-200]
    np.testing.assert_allclose(inside, 7, rtol=1e-4)


def test_an_impossible_rate():
    with pytest.raises(InputError) as refused:
        convert_rate(np.zeros(10), 1, 16_000, Budget("a.wav"))
    assert_one_sentence(refused.value, "1 Hz")
