"""NIST SPHERE: what TIMIT's files are, read strictly."""

import numpy as np
import pytest

from fivo.data.speech.recording import decode
from fivo.errors import InputError
from tests.data.sounds import nist, noise
from tests.sentences import assert_one_sentence

SAMPLES = noise(321)


@pytest.mark.parametrize("order", ["01", "10"])
def test_both_byte_orders(order):
    recording = decode(nist(SAMPLES, 8_000, order), "a.wav")
    assert recording.rate == 8_000
    assert recording.samples.dtype == np.int16
    np.testing.assert_array_equal(recording.samples, SAMPLES)


def test_what_real_headers_hold_besides():
    header = {"speaker_id": "-s4 aks0", "sample_max": "-r 1.5e3", "sample_coding": "-s3 pcm", "channel_count": None}
    np.testing.assert_array_equal(decode(nist(SAMPLES, **header), "a.wav").samples, SAMPLES)


GOOD = nist(SAMPLES)
BAD = {
    "cut short": (GOOD[:-7], "635 bytes of samples where its header announces 642"),
    "cut within the header": (GOOD[:700], "ends within its header"),
    "more than announced": (GOOD + b"..", "644 bytes"),
    "compressed with Shorten": (nist(SAMPLES, sample_coding="-s26 pcm,embedded-shorten-v2.00"), "sph2pipe"),
    "bare Shorten": (b"ajkg" + GOOD, "Shorten"),
    "mu-law": (nist(SAMPLES, sample_coding="-s4 ulaw"), "'ulaw'"),
    "stereo": (nist(SAMPLES, channel_count="-i 2"), "2 channels"),
    "bytes": (nist(SAMPLES, sample_n_bytes="-i 1"), "1 bytes"),
    "no byte order": (nist(SAMPLES, sample_byte_format=None), "None"),
    "no rate": (nist(SAMPLES, sample_rate=None), "got None"),
    "a rate of zero": (nist(SAMPLES, sample_rate="-i 0"), "0 Hz"),
    "a word for a number": (nist(SAMPLES, sample_count="-i many"), "'many'"),
    "a negative number": (nist(SAMPLES, sample_count="-i -5"), "'-5'"),
    "no end": (GOOD.replace(b"end_head", b"        "), "end_head"),
    "no size": (GOOD.replace(b"   1024", b"   abcd"), "size of its header"),
    "a line of something else": (GOOD.replace(b"sample_sig_bits -i 16", b"sample sig bits: 1234"), "name -type value"),
    "no sample": (nist(SAMPLES[:0]), "no sample"),
    "text": (b"NIST_1A\nis how such a file begins", "size of its header"),
}


@pytest.mark.parametrize("name", BAD)
def test_anything_else_is_one_sentence(name):
    content, part = BAD[name]
    with pytest.raises(InputError) as refused:
        decode(content, "SX1.WAV")
    assert_one_sentence(refused.value, "SX1.WAV", part)
