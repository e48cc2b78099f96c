"""Pianorolls and raw waveforms as 16-bit mono WAV files."""

import os
import wave

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fivo.errors import InputError
from fivo.files import replacing
from fivo.report.roll import as_pianoroll, check_speed, held_notes

CONCERT_A = 440.0
CONCERT_A_NOTE = 69
LONGEST_PIECE_SECONDS = 2 * 3600
PEAK = 0.9
ATTACK_SECONDS = 0.008
RELEASE_SECONDS = 0.08
RING_SECONDS = 8.0
HARMONICS = (1.0, 0.45, 0.22, 0.12, 0.07, 0.04)
LOWEST_RATE = 11025
HIGHEST_RATE = 192_000
BLOCK = 1 << 20


def write_wav(
    path: str | os.PathLike[str],
    pianoroll: ArrayLike,
    *,
    steps_per_quarter: int = 1,
    tempo: int | float = 100,
    rate: int = 22050,
) -> None:
    """Play a pianoroll into a WAV file.

    Each held note is a sum of decaying harmonics in equal temperament (A4 is 440 Hz); the loudest sample is nine
    tenths of full scale. The sound lasts T steps and the release of the last notes.

    Args:
        path: The file.
        pianoroll: Zeros and ones [time, 88]; column j is MIDI note 21 + j.
        steps_per_quarter: Steps per quarter note.
        tempo: Quarter notes per minute.
        rate: Samples per second.
    """
    roll = as_pianoroll(pianoroll)
    check_speed(steps_per_quarter, tempo)
    # The highest note of the piano, 4186 Hz, must stay below half the rate.
    if not LOWEST_RATE <= rate <= HIGHEST_RATE:
        raise InputError(f"rate must be {LOWEST_RATE} to {HIGHEST_RATE} Hz, got {rate}; 22050 is enough for a piano.")
    step_seconds = 60 / (tempo * steps_per_quarter)
    if len(roll) * step_seconds > LONGEST_PIECE_SECONDS:
        raise InputError(
            f"a piece must last at most {LONGEST_PIECE_SECONDS // 60} minutes, got "
            f"{len(roll) * step_seconds / 60:.0f}; raise the tempo or cut the pianoroll."
        )
    mix = _synthesise(roll, step_seconds * rate, rate)
    loudest = max(mix.max(), -mix.min())
    if loudest > 0:
        mix *= PEAK / loudest
    _write_pcm(path, mix, rate)


def write_samples(path: str | os.PathLike[str], samples: ArrayLike, rate: int) -> None:
    """Write a waveform as a WAV file; values outside [-1, 1] are clipped.

    Args:
        path: The file.
        samples: Numbers from -1 to 1 [sample].
        rate: Samples per second.
    """
    array = np.asarray(samples)
    if array.ndim != 1 or array.dtype.kind != "f":
        raise InputError(
            "samples must be floats between -1 and 1 of shape [sample], got "
            f"{array.dtype} of shape {list(array.shape)}; pass one channel, and divide 16-bit integers by 32768."
        )
    if not np.isfinite(array).all():
        raise InputError(
            f"samples must be finite, got {np.count_nonzero(~np.isfinite(array))} that are not; find the step that "
            "made them."
        )
    if not 1 <= rate <= HIGHEST_RATE:
        raise InputError(f"rate must be 1 to {HIGHEST_RATE} Hz, got {rate}; give the rate that the data were read at.")
    _write_pcm(path, array, rate)


def _synthesise(roll: NDArray[np.bool_], step: float, rate: int) -> NDArray[np.float32]:
    """The sum of all held notes; a step lasts `step` samples, rounded at its ends so that errors do not add up."""
    held = held_notes(roll)
    release = _fade(round(RELEASE_SECONDS * rate))[::-1]
    begins = np.rint(held.starts * step).astype(np.int64)
    ends = np.rint(held.stops * step).astype(np.int64)
    mix = np.zeros(round(len(roll) * step) + len(release), np.float32)
    for note in np.unique(held.notes):
        mine = held.notes == note
        longest = int((ends[mine] - begins[mine]).max()) + len(release)
        # All notes of one pitch are beginnings of one tone: its sines are computed once.
        tone = _tone(int(note), longest, rate)
        for begin, end in zip(begins[mine], ends[mine], strict=True):
            held_part = tone[: end - begin]
            mix[begin : begin + len(held_part)] += held_part
            tail = tone[end - begin : end - begin + len(release)]
            mix[end : end + len(tail)] += tail * release[: len(tail)]
    return mix


def _tone(note: int, length: int, rate: int) -> NDArray[np.float32]:
    """At most `length` samples of a struck string; it has died away, and ends, after `RING_SECONDS`."""
    frequency = CONCERT_A * 2 ** ((note - CONCERT_A_NOTE) / 12)
    ring = round(RING_SECONDS * rate)
    seconds = np.arange(min(length, ring)) / rate
    # Short strings die away faster than long ones, and high harmonics faster than low ones.
    decay = 0.8 * 2 ** ((note - CONCERT_A_NOTE) / 24)
    tone = np.zeros(len(seconds), np.float32)
    for number, amplitude in enumerate(HARMONICS, start=1):
        if number * frequency < 0.45 * rate:
            envelope = amplitude * np.exp(-decay * np.sqrt(number) * seconds)
            tone += envelope * np.sin(2 * np.pi * number * frequency * seconds)
    attack = _fade(round(ATTACK_SECONDS * rate))[: len(tone)]
    tone[: len(attack)] *= attack
    last = _fade(ring // 4)[::-1][: max(0, len(tone) - (ring - ring // 4))]
    tone[len(tone) - len(last) :] *= last
    return tone


def _fade(length: int) -> NDArray[np.float32]:
    """A raised cosine from 0 to 1 of shape [length]: without corners, so without clicks."""
    return (0.5 - 0.5 * np.cos(np.pi * np.arange(length) / length)).astype(np.float32)


def _write_pcm(path: str | os.PathLike[str], samples: NDArray[np.floating], rate: int) -> None:
    with replacing(path) as file, wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(int(rate))
        sound.setnframes(len(samples))
        # In blocks: a long piece is then never held a second time.
        for begin in range(0, len(samples), BLOCK):
            block = np.clip(samples[begin : begin + BLOCK], -1, 1)
            sound.writeframesraw(np.rint(block * 32767).astype(np.int16).tobytes())
