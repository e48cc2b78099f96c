"""Small files that become large: refused before they fill the memory or keep a core busy."""

import io
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import soundfile

from fivo.data import SPLITS
from tests.data.measured import MEMORY, SLACK, measured
from tests.data.sounds import noise, riff, write
from tests.sentences import assert_one_sentence

LARGE = "GiB in memory; split it up."
MiB = 1 << 20


def npz(path: Path, method: int = zipfile.ZIP_DEFLATED, **changes: np.ndarray) -> Path:
    """An .npz of tiny splits but for what is given."""
    arrays = {split: np.zeros((1, 88), np.uint8) for split in SPLITS}
    arrays |= {f"{split}_lengths": np.ones(1, np.int64) for split in SPLITS}
    with zipfile.ZipFile(path, "w", method) as archive:
        for key, array in (arrays | changes).items():
            with archive.open(f"{key}.npy", "w") as file:
                np.lib.format.write_array(file, array)
    return path


def zeros(count: int, width: int, dtype: type) -> dict[str, np.ndarray]:
    """A training split of one sequence."""
    return {"train": np.zeros((count, width), dtype), "train_lengths": np.array([count])}


WAVEFORM = {"kind": np.array("waveform"), "step_seconds": np.array(1.0)}
BOMBS = {
    "packed": zeros(4 * MiB, 11, np.uint8),  # bits that become bytes
    "doubles": zeros(100_000, 88, np.float64),  # beside what they are converted to
    "bytes": zeros(30 * MiB, 1, np.uint8) | WAVEFORM,  # that become floats
    "text": {"kind": np.array("x" * (20 * MiB))},
}
LARGE_ONES = {
    "packed": zeros(600_000, 11, np.uint8),
    "doubles": zeros(80_000, 88, np.float64),
    "waveform": zeros(57_000, 88, np.float64) | WAVEFORM,
}


def test_what_an_npz_becomes_is_counted(tmp_path):
    outcomes = measured(*(npz(tmp_path / f"{name}.npz", **changes) for name, changes in BOMBS.items()))
    for outcome, name in zip(outcomes, BOMBS, strict=True):
        assert_one_sentence(outcome.sentence, f"{name}.npz", LARGE)
        assert outcome.peak < MEMORY + SLACK


def test_what_fits_is_read_within_the_budget(tmp_path):
    outcomes = measured(*(npz(tmp_path / f"{name}.npz", **changes) for name, changes in LARGE_ONES.items()))
    for outcome in outcomes:
        assert outcome.sentence == ""
        assert outcome.peak < MEMORY + SLACK


def test_an_npz_compressed_otherwise_is_refused(tmp_path):
    """`zipfile` decompresses these without a limit."""
    methods = {"bzip2": zipfile.ZIP_BZIP2, "lzma": zipfile.ZIP_LZMA}
    changes = zeros(MiB, 88, np.uint8)
    outcomes = measured(*(npz(tmp_path / f"{name}.npz", method, **changes) for name, method in methods.items()))
    for outcome in outcomes:
        assert_one_sentence(outcome.sentence, "compressed by method")
        assert outcome.peak < SLACK


def test_an_npz_of_ten_million_sequences_is_refused_at_once(tmp_path):
    lengths = np.ones(10_000_000, np.int8)
    path = npz(tmp_path / "bomb.npz", train=np.zeros((len(lengths), 11), np.uint8), train_lengths=lengths)
    [outcome] = measured(path, memory=None)
    assert_one_sentence(outcome.sentence, "holds 10,000,000 sequences")
    assert outcome.seconds < 5


def test_as_many_sequences_as_are_read_take_seconds(tmp_path):
    lengths = np.ones(499_000, np.int64)
    path = npz(tmp_path / "many.npz", train=np.zeros((len(lengths), 11), np.uint8), train_lengths=lengths)
    [outcome] = measured(path, memory=None)
    assert outcome.sentence == ""
    assert outcome.seconds < 15
    assert outcome.peak < 499_000 * (320 + 88 + 8 + 11) + SLACK


def test_an_npz_of_a_million_members_is_refused_at_once(tmp_path):
    content = npz(tmp_path / "bomb.npz").read_bytes()
    start = content.index(b"PK\x01\x02")
    end = content.index(b"PK\x05\x06")
    entry = content[start : content.index(b"PK\x01\x02", start + 4)]
    directory = entry * 500_000
    tail = content[end : end + 12] + struct.pack("<II", len(directory), start) + content[end + 20 :]
    (tmp_path / "bomb.npz").write_bytes(content[:start] + directory + tail)
    [outcome] = measured(tmp_path / "bomb.npz", memory=256 * MiB)
    assert_one_sentence(outcome.sentence, "more than 100 members")
    assert outcome.peak < len(directory) + SLACK


N = 2 * MiB
PICKLES = {
    "lists": b"]" * N,
    "marks": b"(" * N,
    "dicts": b"}" * N,
    "filled dicts": b"}U\x01aNs" * (N // 4),
    "tuples": b")\x85" * (N // 2),
    "nested tuples": b")" + b"\x85" * N,
    "nested lists": b"]" * (N // 2) + b"a" * (N // 2 - 1),
    "memos": b"N" + b"\x94" * N,
    "numbered memos": b"".join(b"Nr" + struct.pack("<I", index << 8) for index in range(N // 4)),
    "integers": b"\x8a\x09" + b"\xff" * 8 + b"\x01" + b"h\x00" * N,
    "large integers": (b"\x8a\xff" + b"\x7f" * 255) * (N // 64),
    "texts": (b"\x8c\xff" + "\U0001f3b5".encode() * 63 + b"abc") * (N // 64),
    "a long text": b"X" + struct.pack("<I", 16 * MiB) + "\U0001f3b5".encode() * (4 * MiB),
    "nothing": b"N" * (8 * N),
}


def test_what_a_pickle_becomes_is_counted(tmp_path):
    paths = [write(tmp_path / f"{name}.pickle", b"\x80\x04" + body + b".") for name, body in PICKLES.items()]
    for outcome, path in zip(measured(*paths), paths, strict=True):
        assert_one_sentence(outcome.sentence, path.name)
        assert outcome.peak < MEMORY + SLACK, path.name


def test_a_step_held_a_million_times_takes_no_minute(tmp_path):
    piece = [tuple(range(21, 109))] * 20_000
    content = pickle.dumps({"train": [piece] * 250, "valid": [[[60]]], "test": [[[60]]]}, 2)
    [outcome] = measured(write(tmp_path / "bomb.pickle", content), memory=None)
    assert_one_sentence(outcome.sentence, "440,000,002 notes, more than the 20,000,000 that are read")
    assert outcome.seconds < 5


BITS = (8, 16, 24)


def test_what_a_recording_becomes_is_counted(tmp_path):
    paths = [write(tmp_path / f"{bits}.wav", riff(bytes(8 * MiB * bits // 8), bits=bits)) for bits in BITS]
    for outcome in measured(*paths, function="read_recording"):
        assert_one_sentence(outcome.sentence, ".wav", LARGE)
        assert outcome.peak < MEMORY + SLACK


def test_a_recording_that_fits_is_read_within_the_budget(tmp_path):
    random = np.random.default_rng(0)
    for bits in BITS:
        for number, count in enumerate((MEMORY // (10 + bits // 8), 30, 30)):
            body = random.integers(0, 256, count * bits // 8, np.uint8).tobytes()
            write(tmp_path / str(bits) / f"{number}.wav", riff(body, bits=bits))
    for outcome in measured(*(tmp_path / str(bits) for bits in BITS)):
        assert outcome.sentence == ""
        assert outcome.peak < MEMORY + 3 * SLACK  # sums in double precision are made of 32 MB at a time


def test_a_recording_of_ten_million_parts_is_refused_at_once(tmp_path):
    path = write(tmp_path / "bomb.wav", b"RIFF....WAVE" + bytes(80 * MiB))
    [outcome] = measured(path, function="read_recording", memory=None)
    assert_one_sentence(outcome.sentence, "more than 1,000 parts")
    assert outcome.seconds < 2


def test_the_samples_that_a_flac_header_announces_are_counted(tmp_path):
    file = io.BytesIO()
    soundfile.write(file, noise(1_000), 16_000, format="FLAC")
    content = bytearray(file.getvalue())
    content[21] |= 0x0F  # the 36 bits before the checksum of the samples
    content[22:26] = b"\xff\xff\xff\xff"
    [outcome] = measured(write(tmp_path / "bomb.flac", bytes(content)), function="read_recording", memory=None)
    assert_one_sentence(outcome.sentence, "bomb.flac", LARGE)


def test_a_flac_that_unfolds_is_counted(tmp_path):
    path = tmp_path / "silence.flac"
    soundfile.write(path, np.zeros(20 * MiB, np.int16), 16_000)
    assert path.stat().st_size < MiB
    [outcome] = measured(path, function="read_recording")
    assert_one_sentence(outcome.sentence, "silence.flac", LARGE)
    assert outcome.peak < MEMORY


def test_what_another_rate_takes_is_counted(tmp_path):
    """Filters of many phases, filters of many weights, and a result that is much longer."""
    for rate, target, count in ((399_989, 16_000, 1_000), (1_000, 400_000, 200_000), (400_000, 1_000, 1_000_000)):
        path = write(tmp_path / "a.wav", riff(noise(count), rate=rate))
        [outcome] = measured(path, function="read_at_rate", rate=target, resample=True)
        assert outcome.peak < MEMORY + SLACK
        assert outcome.seconds < 5
