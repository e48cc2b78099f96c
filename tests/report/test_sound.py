"""The sound is at the right place in time and in pitch, never too loud, and has no clicks."""

import time
import tracemalloc
import wave

import numpy as np
import pytest

from fivo.errors import InputError
from fivo.report import write_samples, write_wav
from tests.report.pianorolls import random_roll


def read_back(path) -> tuple[np.ndarray, int]:
    with wave.open(str(path)) as sound:
        assert (sound.getnchannels(), sound.getsampwidth()) == (1, 2)
        return np.frombuffer(sound.readframes(sound.getnframes()), "<i2") / 32767, sound.getframerate()


def frequency(note: int) -> float:
    return 440 * 2 ** ((note - 69) / 12)


def strongest_below(samples: np.ndarray, rate: int, limit: float, count: int) -> np.ndarray:
    """The frequencies of the `count` highest local maxima of the spectrum."""
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples)), 1 << 18))
    frequencies = np.fft.rfftfreq(1 << 18, 1 / rate)
    spectrum = spectrum[frequencies < limit]
    peaks = 1 + np.flatnonzero((spectrum[1:-1] > spectrum[:-2]) & (spectrum[1:-1] > spectrum[2:]))
    return np.sort(frequencies[peaks[np.argsort(spectrum[peaks])[-count:]]])


@pytest.mark.parametrize("rate", [22050, 44100])
@pytest.mark.parametrize("notes", [[33], [57], [69], [60, 64, 67], [81, 93], [108]])
def test_spectrum_has_the_notes(tmp_path, notes, rate):
    roll = np.zeros((4, 88), np.uint8)
    roll[:, np.array(notes) - 21] = 1
    write_wav(tmp_path / "sound.wav", roll, rate=rate)
    samples, read_rate = read_back(tmp_path / "sound.wav")
    assert read_rate == rate
    # Below the second harmonic of the lowest note only the notes themselves sound.
    limit = 1.9 * frequency(min(notes)) if max(notes) < min(notes) + 11 else 1.5 * frequency(max(notes))
    peaks = strongest_below(samples, rate, limit, len(notes))
    assert peaks == pytest.approx([frequency(note) for note in notes], rel=5e-3)


def test_harmonics_are_whole_multiples(tmp_path):
    roll = np.zeros((4, 88), np.uint8)
    roll[:, 57 - 21] = 1
    write_wav(tmp_path / "sound.wav", roll)
    samples, rate = read_back(tmp_path / "sound.wav")
    assert strongest_below(samples, rate, 1000, 4) == pytest.approx([220, 440, 660, 880], rel=2e-3)


def test_the_highest_note_does_not_fold_back(tmp_path):
    """Harmonics above half the rate would sound as low, wrong notes."""
    roll = np.zeros((4, 88), np.uint8)
    roll[:, 108 - 21] = 1
    write_wav(tmp_path / "sound.wav", roll, rate=11025)
    samples, rate = read_back(tmp_path / "sound.wav")
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    frequencies = np.fft.rfftfreq(len(samples), 1 / rate)
    assert spectrum[np.abs(frequencies - frequency(108)) > 100].max() < 0.01 * spectrum.max()


@pytest.mark.parametrize(("tempo", "steps_per_quarter"), [(100, 1), (100, 2), (137.5, 4)])
def test_notes_sound_when_they_should(tmp_path, tempo, steps_per_quarter):
    roll = np.zeros((30, 88), np.uint8)
    roll[10:12, 40] = 1
    write_wav(tmp_path / "sound.wav", roll, tempo=tempo, steps_per_quarter=steps_per_quarter)
    samples, rate = read_back(tmp_path / "sound.wav")
    step = 60 / (tempo * steps_per_quarter)
    assert len(samples) / rate == pytest.approx(30 * step + 0.08, abs=2 / rate)
    sounding = np.flatnonzero(samples) / rate
    assert sounding[0] == pytest.approx(10 * step, abs=0.002)
    assert sounding[-1] == pytest.approx(12 * step + 0.08, abs=0.01)


def test_long_pieces_do_not_drift(tmp_path):
    roll = np.zeros((2000, 88), np.uint8)
    roll[-1, 40] = 1
    write_wav(tmp_path / "sound.wav", roll, tempo=997, steps_per_quarter=7, rate=11025)
    samples, rate = read_back(tmp_path / "sound.wav")
    assert np.flatnonzero(samples)[0] / rate == pytest.approx(1999 * 60 / (997 * 7), abs=0.002)


@pytest.mark.parametrize("roll", [random_roll(40), np.ones((2, 88)), np.eye(88)[:2]], ids=["some", "all", "one"])
def test_loud_but_below_full_scale(tmp_path, roll):
    write_wav(tmp_path / "sound.wav", roll)
    samples, _ = read_back(tmp_path / "sound.wav")
    assert np.abs(samples).max() == pytest.approx(0.9, abs=1e-3)


def test_silence(tmp_path):
    write_wav(tmp_path / "sound.wav", np.zeros((10, 88)))
    samples, _ = read_back(tmp_path / "sound.wav")
    assert len(samples) > 0
    assert not samples.any()


@pytest.mark.parametrize(("note", "num_held"), [(57, 1), (57, 20), (33, 1), (33, 20)])
def test_no_clicks(tmp_path, note, num_held):
    """A click is a corner of the waveform: a second difference far above that of the tone around it."""
    roll = np.zeros((24, 88), np.uint8)
    roll[1 : 1 + num_held, note - 21] = 1
    write_wav(tmp_path / "sound.wav", roll)
    samples, rate = read_back(tmp_path / "sound.wav")
    bend = np.abs(np.diff(samples, 2))
    begin, end = round(0.6 * rate), round((1 + num_held) * 0.6 * rate)
    released, died_away = end + round(0.08 * rate), begin + round(8 * rate)
    for edge in (begin, end, released, died_away):
        # Attack and release are short: there is plain tone close to each of them.
        around = max(bend[edge - 4000 : edge - 100].max(), bend[edge + 100 : edge + 4000].max(initial=0))
        assert bend[edge - 50 : edge + 50].max() <= max(around, 4 / 32767)


def test_speed_and_memory(tmp_path):
    roll = random_roll(128)
    write_wav(tmp_path / "first.wav", roll[:4])  # imports what it needs
    started = time.process_time()
    write_wav(tmp_path / "sound.wav", roll)
    # It took 0.2 to 1.2 seconds, by machine and by what else ran; a loop over samples would take minutes.
    assert time.process_time() - started < 2.5
    roll[:, 20:] = 0
    tracemalloc.start()
    write_wav(tmp_path / "sound.wav", np.tile(roll, (32, 1))[:4000], steps_per_quarter=2)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 300e6


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rate": 8000}, "rate must be 11025 to 192000 Hz, got 8000"),
        ({"tempo": 5}, "a minute, got 5"),
        ({"steps_per_quarter": 0}, "steps_per_quarter must be an integer from 1"),
    ],
)
def test_impossible_options(tmp_path, options, sentence):
    with pytest.raises(InputError, match=sentence):
        write_wav(tmp_path / "sound.wav", random_roll(4), **options)


def test_too_long(tmp_path):
    with pytest.raises(InputError, match="at most 120 minutes, got 300"):
        write_wav(tmp_path / "sound.wav", np.zeros((3000, 88)), tempo=10)


def test_samples_are_clipped_and_kept(tmp_path):
    waveform = np.array([0.0, 0.25, -0.5, 1.0, -1.0, 3.0, -7.0])
    write_samples(tmp_path / "speech.wav", waveform, 16000)
    samples, rate = read_back(tmp_path / "speech.wav")
    assert rate == 16000
    np.testing.assert_allclose(samples, np.clip(waveform, -1, 1), atol=1 / 32767)


def test_no_samples_are_an_empty_sound(tmp_path):
    write_samples(tmp_path / "speech.wav", np.zeros(0), 16000)
    assert len(read_back(tmp_path / "speech.wav")[0]) == 0


@pytest.mark.parametrize(
    ("samples", "rate", "sentence"),
    [
        (np.zeros((2, 5)), 16000, r"shape \[2, 5\]"),
        (np.zeros(5, np.int16), 16000, "divide 16-bit integers by 32768"),
        (np.array([0.0, np.nan, np.inf]), 16000, "must be finite, got 2 that are not"),
        (np.zeros(5), 0, "rate must be 1 to 192000 Hz, got 0"),
    ],
)
def test_what_is_no_waveform(tmp_path, samples, rate, sentence):
    with pytest.raises(InputError, match=sentence):
        write_samples(tmp_path / "speech.wav", samples, rate)
    assert list(tmp_path.iterdir()) == []
