"""Headers and numbers that make parsers of text fail: each is one sentence, or a cached entry that is made again."""

import contextlib
import io
import socketserver
import threading
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fivo.data import SPLITS, fetch, load
from fivo.data.speech.recording import decode
from fivo.errors import InputError
from tests.data.sounds import nist, noise, riff, write
from tests.sentences import assert_one_sentence

DEEP = 100_000
DIGITS = "9" * 100_000


def npy(header: str, body: bytes = b"", version: int = 2) -> bytes:
    return b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(4, "little") + header.encode() + body


HEADERS = {
    "nested": "(" * 5_000 + ")" * 5_000,
    "signs": "{'descr': '<f4', 'fortran_order': False, 'shape': (" + "-" * 9_000 + "1,), }",
    "digits": f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({DIGITS[:9_000]},), }}",
    "long": "{" + " " * 200_000 + "}",
    "unknown type": "{'descr': '<q9', 'fortran_order': False, 'shape': (1,), }",
    "date": "{'descr': '<M8[s]', 'fortran_order': False, 'shape': (1,), }",
    "record": "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }",
    "object": "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
    "negative": "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
    "many dimensions": "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1), }",
    "large": "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }",
    "unclosed": "{'descr': '''",
    "null": "\0" * 50,
    "call": "{'descr': __import__('os').system('touch executed'), 'fortran_order': False, 'shape': (1,), }",
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_of_an_array(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        for split in SPLITS:
            archive.writestr(f"{split}.npy", npy(HEADERS[name], bytes(4)))
            archive.writestr(f"{split}_lengths.npy", npy(HEADERS[name], bytes(4)))
    with pytest.raises(InputError) as refused:
        load(tmp_path / "a.npz")
    assert_one_sentence(refused.value, "a.npz is not a readable .npz")
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


def arrays(**changes: np.ndarray) -> dict[str, np.ndarray]:
    frames = {split: np.zeros((2, 88), np.uint8) for split in SPLITS}
    return frames | {f"{split}_lengths": np.array([2]) for split in SPLITS} | changes


@pytest.mark.parametrize(
    "changes",
    [
        {"train_lengths": np.array([2**63 - 1, 2**63 - 1, 4])},  # whose sum overflows to 2
        {"train_lengths": np.array([2**64 - 1, 3], np.uint64)},
        {"kind": np.array([0x110000], "<u4").view("<U1").reshape(())},  # no such character
        {"train": np.zeros((2, 0), np.uint8)},
        {"train": np.zeros((0, 88), np.uint8), "train_lengths": np.zeros(0, np.int64)},
        {"kind": np.array("waveform"), "step_seconds": np.array(1.0), "train": np.full((2, 88), 1e300)},
        {
            "kind": np.array("waveform"),
            "step_seconds": np.array(1.0),
            "mean": np.array(np.nan),
            "deviation": np.array(1.0),
        },
    ],
)
def test_numbers_that_overflow(changes, tmp_path):
    np.savez(tmp_path / "a.npz", **arrays(**changes))
    with pytest.raises(InputError) as refused:
        load(tmp_path / "a.npz")
    assert_one_sentence(refused.value)


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, -np.inf, np.nan, 5e-324])
@pytest.mark.parametrize("key", ["steps_per_quarter", "step_seconds"])
@pytest.mark.parametrize("kind", ["pianoroll", "waveform"])
def test_a_step_must_be_positive(key, value, kind, tmp_path):
    steps = {"step_seconds": np.array(1.0), "steps_per_quarter": np.array(1.0), key: np.array(value)}
    np.savez(tmp_path / "a.npz", **arrays(kind=np.array(kind), **steps))
    with pytest.raises(InputError) as refused:
        load(tmp_path / "a.npz")
    assert_one_sentence(refused.value, key, "must be positive and finite")


def test_digits_in_a_nist_header():
    for change in ({"database_id": f"-s{DIGITS[:50_000]} TIMIT"}, {"sample_count": f"-i {DIGITS[:50_000]}"}):
        header = nist(noise(5), **change)
        content = header.replace(b"   1024", b"  60000").ljust(60_010, b" ")
        with pytest.raises(InputError) as refused:
            decode(content, "a.wav")
        assert_one_sentence(refused.value, "a.wav")


@pytest.mark.parametrize("value", [1e39, -1e39, np.inf, np.nan, 1e300])
def test_samples_far_beyond_full_scale(value):
    for dtype in ("<f4", "<f8"):
        with np.errstate(over="ignore"):
            body = np.array([0.0, value]).astype(dtype).tobytes()
        with pytest.raises(InputError) as refused:
            decode(riff(body, bits=32 if dtype == "<f4" else 64, coding=3), "a.wav")
        assert_one_sentence(refused.value, "not finite")


FACTS = {
    "nested": "[" * DEEP,
    "nested in a field": '{"lengths": ' + "[" * DEEP,
    "nested in another": '{"other": ' + '{"a":' * DEEP,
    "digits": '{"lengths": {"train": [' + DIGITS + "]}}",
    "digits of a float": '{"mean": ' + DIGITS + "}",
    "not text": b"\xff\xfe{".decode("latin1"),
}


@pytest.mark.parametrize("name", FACTS)
def test_facts_of_cached_frames(name, tmp_path):
    for index in range(3):
        write(tmp_path / "speech" / f"{index}.wav", riff(noise(50, index)))
    good = load(tmp_path / "speech").fingerprint
    [facts] = (tmp_path / "cache").rglob("*.json")
    facts.write_bytes(FACTS[name].encode("latin1"))
    assert load(tmp_path / "speech").fingerprint == good


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"mean":', b'"mean":"x","was":'),
        (b'"deviation":', b'"deviation":-'),
        (b'"deviation":', b'"deviation":0.0,"was":'),
        (b'"train":[1]', b'"train":[-1]'),
        (b'"train":[1]', b'"train":[1.5]'),
        (b'"train_mean":[', b'"train_mean":[0.0,'),
        (b'"valid":[1]', b'"valid":[2]'),
    ],
)
def test_facts_that_cannot_be_those_of_the_frames(old, new, tmp_path):
    for index in range(3):
        write(tmp_path / "speech" / f"{index}.wav", riff(noise(50, index)))
    good = load(tmp_path / "speech")
    [facts] = (tmp_path / "cache").rglob("*.json")
    assert old in facts.read_bytes()
    facts.write_bytes(facts.read_bytes().replace(old, new))
    again = load(tmp_path / "speech")
    assert (again.fingerprint, again.sound) == (good.fingerprint, good.sound)


class Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.recv(1 << 16)
        with contextlib.suppress(ConnectionError):
            self.request.sendall(self.server.answer)


@pytest.fixture
def server(monkeypatch) -> Iterator[socketserver.TCPServer]:
    """Sends its `answer` to whoever asks."""
    monkeypatch.setenv("no_proxy", "*")
    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


ANSWERS = {
    "digits": b"HTTP/1.1 200 OK\r\nContent-Length: " + DIGITS[:60_000].encode() + b"\r\n\r\nabc",
    "other digits": "HTTP/1.1 200 OK\r\nContent-Length: ²\r\n\r\nabc".encode("latin1"),
    "a port too high": b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:99999/\r\n\r\n",
    "no port": b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:x/\r\n\r\n",
    "no address": b"HTTP/1.1 302 Found\r\nLocation: http://[x/\r\n\r\n",
    "a long name": b"HTTP/1.1 302 Found\r\nLocation: http://" + b"a" * 300 + b"/\r\n\r\n",
    "an odd name": b"HTTP/1.1 302 Found\r\nLocation: http://\xc3\xa4\xff..b/\r\n\r\n",
    "a long reason": b"HTTP/1.1 404 " + b"no " * 10_000 + b"\r\n\r\n",
    "another protocol": b"SSH-2.0\r\n",
    "nothing": b"",
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_a_server_answers(name, server, known_tiny, tmp_path: Path):
    server.answer = ANSWERS[name]
    url = f"http://127.0.0.1:{server.server_address[1]}/music"
    with pytest.raises(InputError) as refused:
        fetch("tiny", source=url, data_dir=tmp_path / "data")
    assert_one_sentence(refused.value)
    assert len(str(refused.value)) < 600


def test_a_piece_of_minus_one_bytes_is_not_followed_to_its_end(server, known_tiny, tmp_path: Path):
    server.answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n" + b"x" * (32 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"could not be fetched|sends more than"):
            fetch("tiny", source=f"http://127.0.0.1:{server.server_address[1]}/music", data_dir=tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize("port", ["x", "99999", "-1"])
def test_an_address_with_an_impossible_port(port, known_tiny, tmp_path: Path):
    with pytest.raises(InputError) as refused:
        fetch("tiny", source=f"http://127.0.0.1:{port}/", data_dir=tmp_path)
    assert_one_sentence(refused.value)


def test_a_member_of_a_zip_that_is_named_oddly(tmp_path):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("train.npy", b"x")
    content = file.getvalue()
    for old, new in ((b"train.npy", b"tra\xff\n.npy"), (b"PK\x01\x02\x14\x03", b"PK\x01\x02\x14\x03")):
        flagged = content.replace(old, new)
        at = flagged.index(b"PK\x01\x02") + 8
        (tmp_path / "a.npz").write_bytes(flagged[:at] + b"\x00\x08" + flagged[at + 2 :])  # names are UTF-8
        with pytest.raises(InputError) as refused:
            load(tmp_path / "a.npz")
        assert_one_sentence(refused.value, "a.npz")
