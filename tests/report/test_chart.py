"""Charts are valid SVG with the points where the axes say, and show any text as text."""

import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fivo.errors import InputError
from fivo.report import Line, Panel, line_chart, panels

SVG = "{http://www.w3.org/2000/svg}"
X = [0, 1, 2, 3, 4]
Y = [1.0, 3.0, 2.0, 5.0, 4.0]


@pytest.fixture
def drawn(tmp_path):
    """Draw a chart with defaults and parse the file."""

    def draw(lines, **options):
        options = {"title": "A title", "x_label": "x label", "y_label": "y label", **options}
        line_chart(tmp_path / "chart.svg", lines, **options)
        return ElementTree.parse(tmp_path / "chart.svg").getroot()

    return draw


def of_class(root, name: str) -> list:
    return [element for element in root.iter() if name in element.get("class", "").split()]


def words(root) -> list[str]:
    return [element.text for element in root.iter(f"{SVG}text")]


def data(root):
    (inner,) = (
        root.iter(f"{SVG}svg") if root.tag != f"{SVG}svg" else [e for e in root.iter(f"{SVG}svg") if e is not root]
    )
    return inner


def coordinates(path) -> list[np.ndarray]:
    """Corners of every sub-path, shape [corners, 2]."""
    return [
        np.array([corner.split() for corner in part.strip("z").split("L")], float)
        for part in path.get("d").split("M")[1:]
    ]


def test_head(drawn):
    root = drawn([Line("line", X, Y)])
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    assert root.get("viewBox").split()[:3] == ["0", "0", "720"]
    assert root[0].tag == f"{SVG}title"
    assert root[0].text == "A title"
    assert {"A title", "x label", "y label", "line"} <= set(words(root))


def test_points_lie_where_the_axes_say(drawn):
    root = drawn([Line("line", X, Y)])
    plot = data(root)
    (corners,) = coordinates(of_class(plot, "line")[0])
    left, top = float(plot.get("x")), float(plot.get("y"))
    for place, value in (("middle", X), ("end", Y)):
        texts = [e for e in of_class(root, "quiet") if place in e.get("class")]
        marks = {float(e.text): float(e.get("x" if place == "middle" else "y")) for e in texts}
        (first, last) = sorted(marks)[0], sorted(marks)[-1]
        slope = (marks[last] - marks[first]) / (last - first)
        expected = marks[first] + slope * (np.array(value) - first)
        # The baseline of a number lies four pixels below the line that it names.
        got = corners[:, 0] + left if place == "middle" else corners[:, 1] + top + 4
        np.testing.assert_allclose(got, expected, atol=0.2)


def test_logarithmic_axes_make_powers_straight(drawn):
    x = np.array([1.0, 10.0, 100.0, 1000.0])
    root = drawn([Line("line", x, x**2)], log_x=True, log_y=True)
    (corners,) = coordinates(of_class(data(root), "line")[0])
    steps = np.diff(corners, axis=0)
    np.testing.assert_allclose(steps, np.broadcast_to(steps[0], steps.shape), atol=0.2)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_leaves_a_gap(drawn, bad):
    root = drawn([Line("line", [0, 1, 2, 3, 4, 5, bad, 7], [1, 2, bad, 3, 4, 5, 6, bad])])
    first, second = coordinates(of_class(data(root), "line")[0])
    assert (len(first), len(second)) == (2, 3)
    assert len(of_class(data(root), "mark")) == 5


def test_logarithmic_axes_skip_what_is_not_positive(drawn):
    root = drawn([Line("line", [1, 2, 3, 0], [1, -2, 3, 4])], log_x=True, log_y=True)
    assert [len(part) for part in coordinates(of_class(data(root), "line")[0])] == [1, 1]


def test_none_counts_as_missing(drawn):
    root = drawn([Line("line", [1, 2, 3], [1.0, None, 3.0])])
    assert len(of_class(data(root), "mark")) == 2


@pytest.mark.parametrize("lines", [[], [Line("line", [], [])], [Line("line", [1, 2], [np.nan, np.inf])]])
def test_nothing_to_show_is_said(drawn, lines):
    assert "no finite values to show" in words(drawn(lines))


def test_band_is_one_error_wide(drawn):
    root = drawn([Line("line", X, Y, error=[0.5] * 5)])
    plot = data(root)
    (corners,) = coordinates(of_class(plot, "line")[0])
    (outline,) = coordinates(of_class(plot, "band")[0])
    above, below = outline[:5, 1], outline[:4:-1, 1]
    pixels_per_unit = (corners[0, 1] - corners[1, 1]) / 2
    np.testing.assert_allclose(corners[:, 1] - above, 0.5 * pixels_per_unit, atol=0.2)
    np.testing.assert_allclose(below - corners[:, 1], 0.5 * pixels_per_unit, atol=0.2)
    assert of_class(data(drawn([Line("line", X, Y)])), "band") == []


def test_unknown_error_interrupts_the_band_and_not_the_line(drawn):
    plot = data(drawn([Line("line", X, Y, error=[0.1, 0.1, np.nan, 0.1, np.inf])]))
    assert [len(part) for part in coordinates(of_class(plot, "line")[0])] == [5]
    assert [len(part) for part in coordinates(of_class(plot, "band")[0])] == [4, 2]


def test_long_lines_have_no_marks_but_on_lone_points(drawn):
    y = np.arange(200.0)
    y[[50, 52]] = np.nan
    plot = data(drawn([Line("line", np.arange(200), y)]))
    assert len(of_class(plot, "mark")) == 1


def test_reference_lines_are_labelled_apart(drawn):
    root = drawn([Line("line", X, Y)], reference={"upper": 9.0, "close": 8.99, "nowhere": np.nan})
    assert len(of_class(root, "reference")) == 2
    heights = {e.text: float(e.get("y")) for e in of_class(root, "quiet")}
    assert heights["close"] - heights["upper"] >= 12
    assert "nowhere" not in heights


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "a & b", "\"quoted\" 'twice'", "]]>", "<!--", "日本語"])
def test_text_is_shown_as_text(drawn, text):
    root = drawn([Line(text, X, Y)], title=text, x_label=text, y_label=text, reference={text: 2.0})
    assert words(root).count(text) == 5
    assert root[0].text == text
    assert not list(root.iter(f"{SVG}script"))


def test_characters_that_xml_forbids(drawn):
    root = drawn([Line("a\x00b\x1bc\ud800d", X, Y)])
    assert "a\ufffdb\ufffdc\ufffdd" in words(root)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None, derandomize=True)
@given(st.text(), st.lists(st.tuples(st.floats(), st.floats(), st.floats(min_value=0)), max_size=5), st.booleans())
def test_any_text_and_any_numbers(drawn, text, points, log):
    x, y, error = np.array(points).reshape(-1, 3).T
    root = drawn([Line(text, x, y, error)], title=text, log_x=log, log_y=log, reference={text: 1e300})
    places = [e.get("d") for e in of_class(root, "line") + of_class(root, "band")]
    assert not re.search("nan|inf", " ".join(filter(None, places)))


def test_long_labels_are_cut(drawn):
    label = "a long label " * 50
    root = drawn([Line(label, X, Y)], title=label, x_label=label, y_label=label, reference={label: 2})
    assert sum(text.endswith("…") for text in words(root)) == 5


def test_many_lines_wrap_the_legend_and_keep_the_plot(drawn):
    lines = [Line(f"line number {index}", X, np.array(Y) + index) for index in range(40)]
    one, many = drawn(lines[:1]), drawn(lines)
    assert data(one).get("height") == data(many).get("height")
    looks = {(e.get("class"), e.get("stroke-dasharray")) for e in of_class(data(many), "line")}
    assert len(looks) == 24


@pytest.mark.parametrize(
    ("x", "log"),
    [
        ([0, 123456789], False),
        ([0, 1e-6], False),
        ([-8, 8], False),
        (2.0 ** np.arange(20), True),
        ([1e-30, 1e30], True),
    ],
)
def test_numbers_below_the_plot_have_room(drawn, x, log):
    root = drawn([Line("line", x, np.arange(len(x)))], log_x=log)
    ticks = [e for e in of_class(root, "quiet") if "middle" in e.get("class")]
    assert len(ticks) >= 3
    for one, other in pairwise(ticks):
        room = float(other.get("x")) - float(one.get("x"))
        assert room > 7 * max(len(one.text), len(other.text))


def test_dark_pages(drawn):
    (style,) = drawn([Line("line", X, Y)]).iter(f"{SVG}style")
    assert "@media(prefers-color-scheme:dark)" in style.text


def test_panels_lie_side_by_side(tmp_path):
    charts = [Panel([Line(f"line {index}", X, Y)], f"title {index}", "x", "y") for index in range(4)]
    for count, size in ((1, ["480", "380"]), (2, ["960", "380"]), (3, ["1440", "380"]), (4, ["960", "760"])):
        panels(tmp_path / "chart.svg", charts[:count])
        root = ElementTree.parse(tmp_path / "chart.svg").getroot()
        assert root.get("viewBox").split()[2:] == size
        assert root[0].text == " · ".join(f"title {index}" for index in range(count))
        assert len({group.get("transform") for group in root.findall(f"{SVG}g")}) == count


def test_no_panels(tmp_path):
    with pytest.raises(InputError, match="No panels were given; expected at least one"):
        panels(tmp_path / "chart.svg", [])


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (Line("mine", [1, 2, 3], [1, 2]), r"The line 'mine' has x, y and error of shapes \[3\], \[2\] and \[2\]"),
        (Line("mine", [1, 2], [1, 2], [1]), r"shapes \[2\], \[2\] and \[1\]"),
        (Line("mine", [[1, 2]], [[1, 2]]), r"shapes \[1, 2\]"),
        (Line("mine", [1, 2], [1, 2], [0.1, -0.2]), r"The line 'mine' has the error -0.2; expected"),
        (Line("mine", [1, 2], ["1", "two"]), "The line 'mine' has entries that are not numbers"),
        (Line("mine", [1, 2], [[1], [1, 2]]), "The line 'mine' has entries that are not numbers"),
    ],
)
def test_what_is_no_line(tmp_path, line, sentence):
    with pytest.raises(InputError, match=sentence):
        line_chart(tmp_path / "chart.svg", [line], title="title", x_label="x", y_label="y")
    assert list(tmp_path.iterdir()) == []
