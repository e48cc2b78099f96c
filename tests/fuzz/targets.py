"""What is fuzzed: for each reader a few small valid files, and a way to read a damaged one."""

import dataclasses
import gzip
import hashlib
import io
import json
import lzma
import os
import socketserver
import threading
import unicodedata
import zipfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random

import mido
import numpy as np
import scipy.io
import scipy.signal  # imported late by a reader, which is not to be noted
import soundfile

from fivo.data import SPLITS, Dataset, Scaling, fetch, load, read_at_rate, read_midi, save_npz
from fivo.data.download import is_url
from fivo.data.places import expanded
from fivo.data.registry import KNOWN
from tests.data.files import original_pickle, pickled
from tests.data.sounds import nist, noise, riff, write
from tests.fuzz.mutations import mutate


@dataclasses.dataclass(frozen=True)
class Target:
    """A reader; `seeds` are valid, `read` reads what `damage` makes of them, in a folder of its own."""

    seeds: Callable[[], Sequence[bytes]]
    read: Callable[[bytes, Path], object]
    damage: Callable[[Sequence[bytes], Random], bytes] = mutate


@cache
def music() -> Dataset:
    rng = np.random.default_rng(0)
    lengths = {"train": (5, 3), "valid": (4,), "test": (2,)}
    rolls = {split: [(rng.random((n, 88)) < 0.05).astype(np.uint8) for n in sizes] for split, sizes in lengths.items()}
    return Dataset.pianoroll("music", rolls, 2)


@cache
def waveform() -> Dataset:
    rng = np.random.default_rng(0)
    frames = {split: (rng.normal(size=(3, 4)).astype(np.float32),) for split in SPLITS}
    return Dataset.waveform("speech", frames, 0.01, Scaling(0.5, 500.0))


@cache
def columns() -> Dataset:
    rng = np.random.default_rng(0)
    frames = {split: np.where(rng.random((2, 4, 3)) < 0.2, np.nan, rng.integers(0, 3, (2, 4, 3))) for split in SPLITS}
    inputs = {split: rng.normal(size=(2, 4, 1)) for split in SPLITS}
    return Dataset.from_arrays(**frames, inputs=inputs, kinds=["real", "count", "category"], standardize=True)


def loaded(name: str) -> Callable[[bytes, Path], object]:
    return lambda content, folder: load(write(folder / name, content)).fingerprint


def pickles() -> list[bytes]:
    return [*(pickled(music(), protocol) for protocol in (2, 3, 4, 5)), original_pickle(music())]


def compressed(seeds: Sequence[bytes], random: Random) -> bytes:
    """Damage within or to the compressed file."""
    squeeze = random.choice((gzip.compress, lambda raw: lzma.compress(raw, preset=0)))
    if random.random() < 0.3:
        return squeeze(mutate(seeds, random))
    return mutate([squeeze(seeds[0])], random)


def npzs() -> list[bytes]:
    contents = []
    for dataset in (music(), waveform(), columns()):
        path = Path("seed.npz")
        save_npz(dataset, path)
        contents.append(path.read_bytes())
    stored = io.BytesIO()
    frames = {split: np.concatenate(music().splits[split]) for split in SPLITS}
    np.savez(stored, **frames, **{f"{split}_lengths": music().lengths(split) for split in SPLITS})
    return [*contents, stored.getvalue()]


def tables(form: str) -> list[bytes]:
    import polars

    rng = np.random.default_rng(0)
    columns = {"id": ["a"] * 12 + ["b"] * 12, "t": [*range(12)] * 2, "x": rng.normal(size=24), "z": ["u", "v\n"] * 12}
    frame, contents = polars.DataFrame(columns), []
    ways = [{}] if form == "csv" else [{"compression": "zstd"}, {"compression": "uncompressed"}]
    for way in ways:
        file = io.BytesIO()
        {"csv": frame.write_csv, "parquet": frame.write_parquet, "arrow": frame.write_ipc}[form](file, **way)
        contents.append(file.getvalue())
    return contents


def from_table(name: str) -> Callable[[bytes, Path], object]:
    return lambda content, folder: Dataset.from_table(write(folder / name, content), id="id", time="t").fingerprint


def damaged_members(seeds: Sequence[bytes], random: Random) -> bytes:
    """An archive that is whole, with an array in it that is not."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(random.choice(seeds))) as archive, zipfile.ZipFile(result, "w") as damaged:
        names = archive.namelist()
        victim = random.choice(names)
        for name in names:
            content = archive.read(name)
            damaged.writestr(name, mutate([content], random) if name == victim else content, zipfile.ZIP_DEFLATED)
    return result.getvalue()


def matlab_files() -> list[bytes]:
    """Registered as known, since others are refused whatever they hold."""
    contents = []
    for compress in (False, True):
        file = io.BytesIO()
        cells = {f"{split}data": np.empty((1, len(rolls)), object) for split, rolls in music().splits.items()}
        for split, rolls in music().splits.items():
            cells[f"{split}data"][0] = [*rolls]
        scipy.io.savemat(file, cells, do_compression=compress)
        contents.append(file.getvalue())
        digest = hashlib.sha256(contents[-1]).hexdigest()
        name = f"known {compress}"
        KNOWN[name] = dataclasses.replace(KNOWN["jsb"], name=name, counts=music().counts, matlab_sha256=digest)
    return contents


def midi_files() -> list[bytes]:
    contents = []
    for tracks in (1, 3):
        file = mido.MidiFile(ticks_per_beat=96)
        for index in range(tracks):
            track = mido.MidiTrack([mido.MetaMessage("track_name", name="piano"), mido.MetaMessage("set_tempo")])
            for note in (60, 64, 67):
                track.append(mido.Message("note_on", note=note + index, time=10))
                track.append(mido.Message("note_off", note=note + index, time=200))
            track.append(mido.Message("sysex", data=(1, 2, 3)))
            track.append(mido.MetaMessage("key_signature", key="C"))
            file.tracks.append(track)
        content = io.BytesIO()
        file.save(file=content)
        contents.append(content.getvalue())
    return contents


def sampled(content: bytes, folder: Path) -> object:
    return read_midi(write(folder / "a.mid", content), 2)


def waves() -> list[bytes]:
    samples = noise(40)
    wide = (samples.astype("<i4") << 16).tobytes()
    floats = (samples / 32768).astype("<f4").tobytes()
    return [riff(samples), riff(samples.tobytes(), bits=8), riff(wide, bits=32), riff(floats, bits=32, coding=3)]


def flacs() -> list[bytes]:
    contents = []
    for subtype in ("PCM_16", "PCM_24"):
        file = io.BytesIO()
        soundfile.write(file, noise(400), 16_000, format="FLAC", subtype=subtype)
        contents.append(file.getvalue())
    return contents


def heard(content: bytes, folder: Path) -> object:
    return read_at_rate(write(folder / "a.wav", content), 16_000, resample=True)


@cache
def recordings() -> tuple[Path, dict[str, bytes]]:
    """A folder of recordings, and the files of its entry in the cache by their names."""
    place = Path("speech").absolute()
    for index in range(3):
        write(place / f"{index}.wav", riff(noise(50, index)))
    load(place, frame=20)
    return place, {path.name: path.read_bytes() for path in (Path(os.environ["XDG_CACHE_HOME"])).rglob("*.*")}


def cached(suffix: str) -> Target:
    def seeds() -> list[bytes]:
        return [content for name, content in recordings()[1].items() if name.endswith(suffix)]

    def read(content: bytes, folder: Path) -> object:
        place, entry = recordings()
        for name, good in entry.items():
            write(
                Path(os.environ["XDG_CACHE_HOME"], "fivo", "frames", name), content if name.endswith(suffix) else good
            )
        return [frames.tobytes() for split in SPLITS for frames in load(place, frame=20).splits[split]]

    return Target(seeds, read)


class Handler(socketserver.BaseRequestHandler):
    answer = b""

    def handle(self) -> None:
        try:
            self.request.recv(1 << 16)
            self.request.sendall(Handler.answer)
        except OSError:
            pass


@cache
def server() -> int:
    """The port of a server that sends what is to be sent."""
    serving = socketserver.TCPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    content = original_pickle(music())
    digest = hashlib.sha256(content).hexdigest()
    KNOWN["tiny"] = dataclasses.replace(
        KNOWN["jsb"], name="tiny", pickle_sha256=digest, pickle_bytes=len(content), pickle_names=("tiny.pickle",)
    )
    return serving.server_address[1]


def answers() -> list[bytes]:
    body = original_pickle(music())
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n" % len(body)
    pieces = b"".join(
        b"%x\r\n%s\r\n" % (len(body[at : at + 900]), body[at : at + 900]) for at in range(0, len(body), 900)
    )
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + pieces + b"0\r\n\r\n"
    return [head + body, chunked]


def damaged_answer(seeds: Sequence[bytes], random: Random) -> bytes:
    """Mostly before the body, or an answer of another kind."""
    content = random.choice(seeds)
    if random.random() < 0.3:
        port = str(server()).encode()
        content = random.choice(
            (
                b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:" + port + b"/b\r\nContent-Length: 0\r\n\r\n",
                b"HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nabc",
                b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 10-20/30\r\nContent-Length: 11\r\n\r\nabc",
                b"HTTP/1.1 416 Range Not Satisfiable\r\n\r\n",
            )
        )
    end = content.index(b"\r\n\r\n") + 12
    return mutate([content[:end]], random) + content[end:]


def fetched(content: bytes, folder: Path) -> object:
    Handler.answer = content
    return fetch("tiny", f"http://127.0.0.1:{server()}/a", folder)


def names() -> list[bytes]:
    load("bach"), expanded("~nobody"), unicodedata.name("a")  # what these import is not to be noted
    return [b"bach", b"http://127.0.0.1:80/a?b=1", b"https://[::1]:443/", b"~nobody/a", b"a.pickle"]


def named(content: bytes, _: Path) -> object:
    name = content.decode("utf-8", "surrogateescape")
    is_url(name)
    return None if os.path.exists(expanded(name)) else load(name)


TARGETS = {
    "pickle": Target(pickles, loaded("a.pickle")),
    "compressed": Target(pickles, loaded("a.pickle"), compressed),
    "npz": Target(npzs, loaded("a.npz")),
    "npz-members": Target(npzs, loaded("a.npz"), damaged_members),
    "mat": Target(matlab_files, loaded("a.mat")),
    "midi": Target(midi_files, sampled),
    "riff": Target(waves, heard),
    "nist": Target(lambda: [nist(noise(40)), nist(noise(40), 8_000, "10", sample_coding="-s3 pcm")], heard),
    "flac": Target(flacs, heard),
    "cache-facts": cached(".json"),
    "cache-frames": cached(".npy"),
    "http": Target(answers, fetched, damaged_answer),
    "names": Target(names, named),
    "csv": Target(lambda: tables("csv"), from_table("a.csv")),
    "parquet": Target(lambda: tables("parquet"), from_table("a.parquet")),
    "arrow": Target(lambda: tables("arrow"), from_table("a.arrow")),
}


def describe(content: bytes) -> str:
    """A damaged file, short enough for a message."""
    return json.dumps({"bytes": len(content), "begins": content[:200].hex()})
