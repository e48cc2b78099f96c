"""Figures as files: three formats, equal for equal figures, whole, from any thread, and any text as text."""

import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zlib
from concurrent.futures import ThreadPoolExecutor

import matplotlib
import numpy as np
import pytest

from fivo.errors import InputError
from fivo.report import Line, Panel, plot_panels, write_figure
from tests.sentences import assert_one_sentence

SVG = "{http://www.w3.org/2000/svg}"
SIGNATURES = {".svg": b"<?xml", ".pdf": b"%PDF-", ".png": b"\x89PNG\r\n\x1a\n"}


def figure(label: str = "line", title: str = "A title"):
    return plot_panels([Panel([Line(label, [0, 1, 2], [1.0, 3.0, 2.0], [0.1] * 3)], title, "x label", "y label")])


def words(path) -> set[str]:
    return {"".join(text.itertext()) for text in ElementTree.parse(path).iter(f"{SVG}text")}


@pytest.mark.parametrize("suffix", SIGNATURES)
def test_equal_figures_make_equal_files(tmp_path, suffix, monkeypatch):
    """Also on another day, which the formats would write down."""
    contents = []
    for day in ("0", "86400000"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", day)
        write_figure(tmp_path / f"a{suffix}", figure())
        contents.append((tmp_path / f"a{suffix}").read_bytes())
    assert contents[0].startswith(SIGNATURES[suffix])
    assert contents[0] == contents[1]


def test_another_process_makes_the_same_file(tmp_path):
    code = (
        "import sys; from fivo.report import *; write_figure(sys.argv[1], plot_panels([Panel([Line('line', [0, 1, 2], "
        "[1.0, 3.0, 2.0], [0.1] * 3)], 'A title', 'x label', 'y label')]))\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "theirs.svg"], check=True)
    write_figure(tmp_path / "ours.svg", figure())
    assert (tmp_path / "ours.svg").read_bytes() == (tmp_path / "theirs.svg").read_bytes()


def test_threads_draw_side_by_side(tmp_path):
    def draw(number: int) -> bytes:
        path = tmp_path / f"{number}.svg"
        write_figure(path, figure(f"line {number % 4}"))
        return path.read_bytes()

    with ThreadPoolExecutor(4) as pool:
        contents = list(pool.map(draw, range(12)))
    assert len(set(contents)) == 4
    assert contents[:4] * 3 == contents


def test_settings_of_the_user_stay(tmp_path):
    before = dict(matplotlib.rcParams)
    write_figure(tmp_path / "a.svg", figure())
    assert dict(matplotlib.rcParams) == before


def test_an_image_has_its_size_and_its_checksums(tmp_path):
    write_figure(tmp_path / "a.png", figure())
    data, position, width = (tmp_path / "a.png").read_bytes(), 8, 0
    while position < len(data):
        length, kind = struct.unpack(">I4s", data[position : position + 8])
        content = data[position + 8 : position + 8 + length]
        assert struct.unpack(">I", data[position + 8 + length : position + 12 + length])[0] == zlib.crc32(
            kind + content
        )
        if kind == b"IHDR":
            width = struct.unpack(">I", content[:4])[0]
        position += 12 + length
    assert width == 750


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", "a & b", "\"quoted\" 'twice'", "]]>", "<!--", "$x^2", r"$\frac{", "_hidden"]
)
def test_text_is_shown_as_text(tmp_path, text):
    write_figure(tmp_path / "a.svg", figure(text, text))
    assert words(tmp_path / "a.svg") >= {text, "x label", "y label"}
    assert not list(ElementTree.parse(tmp_path / "a.svg").iter(f"{SVG}script"))


def test_text_that_no_file_can_hold(tmp_path):
    write_figure(tmp_path / "a.svg", figure("a\x00b\x1bc\ud800d", "long " * 50))
    assert "a\ufffdb\ufffdc\ufffdd" in words(tmp_path / "a.svg")
    assert any(text.endswith("…") and len(text) == 60 for text in words(tmp_path / "a.svg"))


@pytest.mark.parametrize("name", ["a.jpg", "a", "a.svg.gz"])
def test_another_format_is_refused(tmp_path, name):
    with pytest.raises(InputError) as refused:
        write_figure(tmp_path / name, figure())
    assert_one_sentence(refused.value, ".svg, .pdf, .png", name)
    assert list(tmp_path.iterdir()) == []


def test_numbers_of_any_size_are_drawn(tmp_path):
    for values in ([1e-300, 1e200], [-1e200, 1e200], [0, 1e-310], [5, 5], [np.nan, 1e308]):
        for log in (False, True):
            panel = Panel([Line("line", values, values)], "t", "x", "y", log_x=log, log_y=log, reference={"r": 1e300})
            write_figure(tmp_path / "a.svg", plot_panels([panel]))
            assert "nan" not in (tmp_path / "a.svg").read_text()
