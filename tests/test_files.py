"""Every writer replaces its file as a whole, or says in one sentence that it cannot, and leaves nothing behind."""

import os
import stat

import numpy as np
import pytest

from fivo.errors import InputError
from fivo.files import replacing
from fivo.report import (
    Line,
    Panel,
    line_chart,
    panels,
    write_midi,
    write_pianoroll,
    write_png,
    write_samples,
    write_wav,
)

ROLL = np.eye(88, dtype=np.uint8)[:4]
LINE = Line("line", [1, 2], [3, 4])
WRITERS = {
    "midi": lambda path: write_midi(path, ROLL),
    "wav": lambda path: write_wav(path, ROLL),
    "samples": lambda path: write_samples(path, np.zeros(10), 16000),
    "png": lambda path: write_png(path, np.zeros((2, 2, 3), np.uint8)),
    "pianoroll": lambda path: write_pianoroll(path, ROLL),
    "line_chart": lambda path: line_chart(path, [LINE], title="title", x_label="x", y_label="y"),
    "panels": lambda path: panels(path, [Panel([LINE], "title", "x", "y")]),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_replaces_what_was_there(tmp_path, write):
    target = tmp_path / "file"
    target.write_text("old")
    write(str(target))
    assert os.listdir(tmp_path) == ["file"]
    assert target.read_bytes() != b"old"


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("name", ["folder", "plain/file"])
def test_unwritable_path(tmp_path, write, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "plain").write_text("not a folder")
    with pytest.raises(InputError, match=rf"{name}' cannot be written \(.+\); free some space or choose a folder"):
        write(tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["folder", "plain"]
    assert os.listdir(tmp_path / "folder") == []


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
