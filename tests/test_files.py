"""Every writer replaces its file as a whole, or says in one sentence that it cannot, and leaves nothing behind."""

import contextlib
import errno
import os
import stat

import numpy as np
import pytest

from fivo.errors import InputError
from fivo.files import replacing, write_atomically
from fivo.report import (
    Line,
    Panel,
    plot_panels,
    write_figure,
    write_midi,
    write_pianoroll,
    write_samples,
    write_wav,
)

ROLL = np.eye(88, dtype=np.uint8)[:4]
LINE = Line("line", [1, 2], [3, 4])
WRITERS = {
    "midi": lambda path: write_midi(path, ROLL),
    "wav": lambda path: write_wav(path, ROLL),
    "samples": lambda path: write_samples(path, np.zeros(10), 16000),
    "pianoroll": lambda path: write_pianoroll(path, ROLL),
    "figure": lambda path: write_figure(path, plot_panels([Panel([LINE], "title", "x", "y")])),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_replaces_what_was_there(tmp_path, write):
    target = tmp_path / "file.png"
    target.write_text("old")
    write(str(target))
    assert os.listdir(tmp_path) == ["file.png"]
    assert target.read_bytes() != b"old"


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("name", ["folder.png", "plain.png/file.png"])
def test_unwritable_path(tmp_path, write, name):
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "plain.png").write_text("not a folder")
    with pytest.raises(InputError, match=rf"{name}' cannot be written \(.+\); free some space or choose a folder"):
        write(tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["folder.png", "plain.png"]
    assert os.listdir(tmp_path / "folder.png") == []


def test_failing_half_way_keeps_the_old_file(tmp_path):
    target = tmp_path / "file"
    target.write_text("old")

    def interrupted():
        with replacing(target) as file:
            file.write(b"half of the n")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_others_may_read_what_the_umask_lets_them(tmp_path):
    before = os.umask(0o022)
    try:
        WRITERS["midi"](tmp_path / "song.mid")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "song.mid").stat().st_mode) == 0o644


def synced(monkeypatch):
    """The files and folders that were brought to disk, in order."""
    seen, real = [], os.fsync

    def record(descriptor):
        seen.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    return seen


def test_names_are_on_disk_as_well_as_contents(tmp_path, monkeypatch):
    """A power cut after the rename must not bring the old file back, nor lose a new folder."""
    seen = synced(monkeypatch)
    write_atomically(tmp_path / "new" / "deep" / "file", b"content")
    folders = [str(tmp_path), str(tmp_path / "new"), str(tmp_path / "new" / "deep")]
    assert seen[:2] == folders[:2]
    assert "/.file." in seen[2]
    assert seen[3:] == folders[2:]


def test_a_folder_that_cannot_be_synced_is_no_failure(tmp_path, monkeypatch):
    real = os.fsync

    def network(descriptor):
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", network)
    write_atomically(tmp_path / "file", b"content")
    assert (tmp_path / "file").read_bytes() == b"content"


@pytest.mark.parametrize("renames", [0, 1, 2])
def test_the_old_file_is_kept_whenever_the_kill_comes(tmp_path, monkeypatch, renames):
    target, kept = tmp_path / "latest", tmp_path / "previous"
    for number in (b"1", b"2"):
        with replacing(target, keep=kept) as file:
            file.write(number)
    real, done = os.replace, []

    def killed(source, goal):
        if len(done) == renames:
            raise KeyboardInterrupt
        done.append(goal)
        real(source, goal)

    monkeypatch.setattr(os, "replace", killed)
    with contextlib.suppress(KeyboardInterrupt), replacing(target, keep=kept) as file:
        file.write(b"3")
    found = [path.read_bytes() if path.exists() else None for path in (target, kept)]
    assert found == [[b"2", b"1"], [None, b"2"], [b"3", b"2"]][renames]
