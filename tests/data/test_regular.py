"""Only regular files are read: a pipe would be waited for, and a device would never end."""

import os
import socket
from pathlib import Path

import pytest

from fivo.data import fetch, load, read_midi, read_recording
from fivo.data.budget import Budget
from fivo.data.compression import open_regular, read_raw
from fivo.errors import InputError
from tests.data.measured import measured
from tests.data.sounds import noise, riff, write
from tests.data.test_midi_budget import long_note, midi
from tests.sentences import assert_one_sentence


def pipe(path: Path) -> str:
    os.mkfifo(path)
    return "a named pipe"


def device(path: Path) -> str:
    path.symlink_to("/dev/zero")
    return "a device"


def unix_socket(path: Path) -> str:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
    return "a socket"


def directory(path: Path) -> str:
    path.mkdir()
    return "a folder"


KINDS = [pipe, device, unix_socket]


@pytest.fixture
def short(tmp_path_factory) -> Path:
    """A folder with a short path: that of a socket has at most a hundred characters."""
    return tmp_path_factory.mktemp("x")


def test_a_dataset(short):
    """In a process of its own, as a reader that waits would wait for ever."""
    names = ("a.pickle", "a.npz", "a.mat", "a")
    kinds: dict[Path, str] = {}
    for make in KINDS:
        folder = short / make.__name__
        folder.mkdir()
        kinds |= {folder / name: make(folder / name) for name in names}
    for outcome, (path, kind) in zip(measured(*kinds), kinds.items(), strict=True):
        assert_one_sentence(outcome.sentence, f"{path.name} is {kind}, but a regular file is needed")


@pytest.mark.parametrize("make", [*KINDS, directory])
def test_a_single_file(make, short):
    kind = make(short / "a")
    for read in (lambda path: read_midi(path, 2), read_recording, open_regular, lambda path: fetch("jsb", path, short)):
        with pytest.raises(InputError) as refused:
            read(short / "a")
        assert_one_sentence(refused.value, f"is {kind}, but a regular file is needed")


@pytest.mark.parametrize("make", KINDS)
def test_a_file_in_a_folder(make, short):
    for index in range(3):
        write(short / "music" / f"{index}.mid", midi(long_note(480)))
        write(short / "speech" / f"{index}.wav", riff(noise(50, index)))
    for path in (short / "music" / "3.mid", short / "speech" / "3.wav"):
        kind = make(path)
        with pytest.raises(InputError) as refused:
            load(path.parent)
        assert_one_sentence(refused.value, f"{path.name} is {kind}")


def test_links_to_regular_files_are_followed_and_links_to_folders_are_not(tmp_path):
    for index in range(3):
        write(tmp_path / "elsewhere" / f"{index}.mid", midi(long_note(480, 60 + index)))
    place = tmp_path / "music"
    place.mkdir()
    for path in (tmp_path / "elsewhere").iterdir():
        (place / path.name).symlink_to(path)
    expected = load(tmp_path / "elsewhere").fingerprint
    (place / "more").symlink_to(tmp_path / "elsewhere")
    (place / "loop").symlink_to(place)
    assert load(place).fingerprint == expected


def test_a_split_may_be_a_link_to_a_folder(tmp_path):
    write(tmp_path / "elsewhere" / "a.mid", midi(long_note(480)))
    write(tmp_path / "recorded" / "a.wav", riff(noise(50)))
    for split in ("train", "valid", "test"):
        for folder, target in (("music", "elsewhere"), ("speech", "recorded")):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / split).symlink_to(tmp_path / target)
    assert load(tmp_path / "music").counts == dict.fromkeys(("train", "valid", "test"), (1, 2))
    assert load(tmp_path / "speech", frame=50).counts == dict.fromkeys(("train", "valid", "test"), (1, 1))


def test_a_cached_entry_that_is_no_file_is_made_again(tmp_path):
    for index in range(3):
        write(tmp_path / "speech" / f"{index}.wav", riff(noise(50, index)))
    good = load(tmp_path / "speech").fingerprint
    for suffix in (".json", ".npy"):
        [entry] = (tmp_path / "cache" / "fivo" / "frames").glob(f"*{suffix}")
        entry.unlink()
        os.mkfifo(entry)
        assert load(tmp_path / "speech").fingerprint == good
        assert entry.is_file()


def test_folders_nested_a_thousand_deep(tmp_path):
    folders = [Path(tmp_path, *["d"] * depth) for depth in range(1, 1_200)]
    for folder in folders:
        folder.mkdir()
    try:
        with pytest.raises(InputError) as refused:
            load(tmp_path)
        assert_one_sentence(refused.value, "holds 0 MIDI files")
    finally:
        for folder in reversed(folders):  # pytest would fail to remove them
            folder.rmdir()


@pytest.mark.parametrize("name", ["a\0b.pickle", "\ud800.pickle", "missing.pickle", "x" * 300])
def test_a_path_that_no_file_has(name, tmp_path):
    with pytest.raises(InputError) as refused:
        load(tmp_path / name)
    assert "cannot be read" in str(refused.value)


def test_a_file_that_holds_more_than_it_says():
    path = Path("/proc/self/status")
    if not path.exists():
        pytest.skip("there is no /proc here")
    with pytest.raises(InputError) as refused:
        read_raw(path, Budget(path))
    assert_one_sentence(refused.value, "other than the 0 bytes")
