"""RIFF and FLAC: what is read, and what is refused although libsndfile reads it."""

import io
import struct

import numpy as np
import pytest
import soundfile

from fivo.data.speech.recording import decode, read_recording
from fivo.errors import InputError
from tests.data.sounds import noise, riff, write
from tests.sentences import assert_one_sentence

SAMPLES = noise(100)


def wide(bits: int) -> bytes:
    """The samples with more bits, the added ones zero."""
    return (SAMPLES.astype("<i4") << 16).reshape(-1, 1).view(np.uint8)[:, 4 - bits // 8 :].tobytes()


def written(subtype: str = "PCM_16", samples: np.ndarray = SAMPLES, form: str = "WAV") -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, 16_000, format=form, subtype=subtype)
    return file.getvalue()


FORMS = {
    "16 bits": riff(SAMPLES),
    "24 bits": riff(wide(24), bits=24),
    "32 bits": riff(wide(32), bits=32),
    "floats": riff((SAMPLES / 32768).astype("<f4").tobytes(), bits=32, coding=3),
    "doubles": riff((SAMPLES / 32768).astype("<f8").tobytes(), bits=64, coding=3),
    "a chunk before the samples": riff(SAMPLES, more=b"LIST" + struct.pack("<I", 3) + b"abc\0"),
    "something behind them": riff(SAMPLES) + b"LIST" + struct.pack("<I", 2) + b"ab",
}


@pytest.mark.parametrize("name", FORMS)
def test_all_forms_give_the_same_samples(name):
    recording = decode(FORMS[name], "a.wav")
    assert recording.rate == 16_000
    np.testing.assert_array_equal(recording.samples, SAMPLES)


def test_bytes():
    body = np.array([0, 128, 255], np.uint8).tobytes()
    np.testing.assert_array_equal(decode(riff(body, bits=8), "a.wav").samples, [-32768, 0, 127 * 256])


def test_the_extensible_form():
    extra = struct.pack("<HHIH14s", 22, 16, 4, 1, bytes.fromhex("000000001000800000aa00389b71"))
    form = struct.pack("<HHIIHH", 0xFFFE, 1, 22_050, 44_100, 2, 16) + extra
    raw = SAMPLES.astype("<i2").tobytes()
    chunks = b"fmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(raw)) + raw
    recording = decode(b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks, "a.wav")
    assert recording.rate == 22_050
    np.testing.assert_array_equal(recording.samples, SAMPLES)


def test_the_content_counts_and_not_the_name(tmp_path):
    """TIMIT's names end in .WAV and hold NIST; other distributions hold RIFF under them."""
    np.testing.assert_array_equal(read_recording(write(tmp_path / "SX1.WAV", riff(SAMPLES))).samples, SAMPLES)


BAD = {
    "cut short": (riff(SAMPLES)[:-5], "195 bytes of samples where its header announces 200"),
    "no samples": (riff(SAMPLES)[:36], "without its samples"),
    "cut within the format": (riff(SAMPLES)[:30], "without its samples"),
    "stereo": (riff(SAMPLES, channels=2), "2 channels"),
    "half a sample": (riff(b"abc"), "ends within a sample"),
    "an odd format": (riff(b"abcd", coding=2, bits=4), "not a readable WAV file"),
    "an unknown coding": (riff(b"abcd", coding=77, bits=16), "a.wav"),
    "compressed": (written("ULAW"), "coded as ULAW, but PCM or floats are needed"),
    "no rate": (riff(SAMPLES, rate=0), "not a readable WAV file"),
    "a size that is not there": (
        riff(SAMPLES).replace(b"data" + struct.pack("<I", 200), b"data" + struct.pack("<I", 2**32 - 1)),
        "200 bytes of samples where its header announces 4294967295",
    ),
    "empty": (riff(b""), "no sample"),
    "another RIFF": (riff(SAMPLES).replace(b"WAVE", b"AVI "), "not a WAVE"),
    "not finite": (riff(np.array([0, np.nan], "<f4").tobytes(), bits=32, coding=3), "not finite"),
    "something else": (b"MThd" + bytes(40), "neither a WAV"),
    "nothing": (b"", "neither a WAV"),
}


@pytest.mark.parametrize("name", BAD)
def test_anything_else_is_one_sentence(name):
    content, part = BAD[name]
    with pytest.raises(InputError) as refused:
        decode(content, "a.wav")
    assert_one_sentence(refused.value, "a.wav", part)


@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24"])
def test_flac(subtype):
    content = written(subtype, form="FLAC")
    recording = decode(content, "a.flac")
    assert recording.rate == 16_000
    np.testing.assert_array_equal(recording.samples, SAMPLES)
    for damaged, part in (
        (content[:50], "a.flac"),
        (written(samples=np.stack([SAMPLES, SAMPLES], 1), form="FLAC"), "2 channels"),
    ):
        with pytest.raises(InputError) as refused:
            decode(damaged, "a.flac")
        assert_one_sentence(refused.value, part)


def test_every_beginning_of_a_file_is_refused():
    for content, name in ((riff(SAMPLES), "a.wav"), (written(form="FLAC"), "a.flac")):
        for end in range(4, len(content)):
            with pytest.raises(InputError) as refused:
                decode(content[:end], name)
            assert_one_sentence(refused.value, name)
