"""Charts have the numbers that they were given, gaps where there are none, and a legend that tells the lines apart."""

import numpy as np
import pytest

from fivo.errors import InputError
from fivo.report import Line, Panel, plot_diagnosis, plot_panels, plot_training
from tests.sentences import assert_one_sentence

X = [0, 1, 2, 3, 4]
Y = [1.0, 3.0, 2.0, 5.0, 4.0]


def drawn(lines, **options):
    """The axes of one chart, laid out."""
    figure = plot_panels([Panel(lines, "A title", "x label", "y label", **options)])
    figure.draw_without_rendering()
    return figure.axes[0]


def parts(line) -> list[int]:
    """Lengths of the unbroken parts of a drawn line."""
    known = np.isfinite(np.asarray(line.get_ydata()))
    edges = np.flatnonzero(np.diff(known.astype(int), prepend=0, append=0)).reshape(-1, 2)
    return [stop - start for start, stop in edges.tolist()]


def labels(legend) -> list[str]:
    return [text.get_text() for text in legend.get_texts()]


def test_a_chart_says_what_it_shows():
    axes = drawn([Line("line", X, Y)], reference={"exact": 9.0, "nowhere": np.nan})
    assert (axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel()) == ("A title", "x label", "y label")
    assert labels(axes.get_legend()) == ["line", "exact"]
    line, reference = axes.get_lines()
    np.testing.assert_array_equal(line.get_xydata(), np.stack([X, Y], 1))
    assert set(reference.get_ydata()) == {9.0}
    assert axes.get_ylim()[1] >= 9.0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_what_is_not_finite_leaves_a_gap(bad):
    axes = drawn([Line("line", [0, 1, 2, 3, 4, 5, bad, 7], [1, 2, bad, 3, 4, 5, 6, bad])])
    assert parts(axes.get_lines()[0]) == [2, 3]


def test_logarithmic_axes_skip_what_is_not_positive():
    axes = drawn([Line("line", [1, 2, 3, 0], [1, -2, 3, 4])], log_x=True, log_y=True)
    assert parts(axes.get_lines()[0]) == [1, 1]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


def test_numbers_of_particles_are_named():
    axes = drawn([Line("line", [4, 16, 64, 256], [1, 2, 3, 4])], log_x=True)
    assert [text.get_text() for text in axes.get_xticklabels()] == ["4", "16", "64", "256"]


def test_none_counts_as_missing():
    assert parts(drawn([Line("line", [1, 2, 3], [1.0, None, 3.0])]).get_lines()[0]) == [1, 1]


@pytest.mark.parametrize("lines", [[], [Line("line", [], [])], [Line("line", [1, 2], [np.nan, np.inf])]])
@pytest.mark.parametrize("log", [False, True])
def test_nothing_to_show_is_said(lines, log):
    axes = drawn(lines, log_x=log, log_y=log)
    assert [text.get_text() for text in axes.texts] == ["no finite values to show"]


def test_a_band_is_one_error_wide_and_ends_where_the_error_is_unknown():
    axes = drawn([Line("line", X, Y, error=[0.5, 0.5, np.nan, 0.5, 0.5])])
    outlines = [path.vertices for path in axes.collections[0].get_paths()]
    assert len(outlines) == 2
    assert (outlines[0][:, 1].min(), outlines[0][:, 1].max()) == (0.5, 3.5)
    assert parts(axes.get_lines()[0]) == [5]
    assert not drawn([Line("line", X, Y)]).collections


def test_a_band_that_reaches_zero_on_a_logarithmic_axis():
    axes = drawn([Line("line", [1, 2], [1.0, 10.0], error=[2.0, 1.0])], log_y=True)
    assert axes.get_ylim()[0] > 1e-3


def test_long_lines_have_no_marks_but_on_lone_points():
    y = np.arange(200.0)
    assert drawn([Line("line", np.arange(200), y)]).get_lines()[0].get_marker() == "None"
    y[[50, 52]] = np.nan
    line = drawn([Line("line", np.arange(200), y)]).get_lines()[0]
    assert line.get_markevery() == [51]


def test_lines_differ_in_more_than_colour_and_all_are_named():
    lines = [Line(f"line number {index}", X, np.array(Y) + index) for index in range(24)]
    axes = drawn(lines)
    looks = {(line.get_color(), line.get_linestyle()) for line in axes.get_lines()}
    assert len(looks) == 24
    assert labels(axes.get_legend()) == [line.label for line in lines]
    assert axes.get_window_extent().width > 250, "a long legend does not squeeze the chart"


@pytest.mark.parametrize(("count", "shape"), [(1, (1, 1)), (2, (1, 2)), (3, (1, 3)), (4, (2, 2)), (6, (2, 3))])
def test_panels_lie_side_by_side(count, shape):
    charts = [Panel([Line(f"line {index}", X, Y)], f"title {index}", "x", "y") for index in range(count)]
    figure = plot_panels(charts)
    assert figure.axes[0].get_subplotspec().get_gridspec().get_geometry() == shape
    assert all(labels(axes.get_legend()) == [f"line {i}"] for i, axes in enumerate(figure.axes))


def test_panels_with_the_same_lines_share_a_legend():
    figure = plot_panels([Panel([Line("a", X, Y), Line("b", X, X)], name, "x", "y") for name in ("one", "two")])
    assert [labels(legend) for legend in figure.legends] == [["a", "b"]]
    assert not any(axes.get_legend() for axes in figure.axes)


def test_no_panels():
    with pytest.raises(InputError, match="at least one Panel, got none"):
        plot_panels([])


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            Line("mine", [1, 2, 3], [1, 2]),
            r"'mine' must be lists of the same length, got shapes \[3\], \[2\] and \[2\]",
        ),
        (Line("mine", [1, 2], [1, 2], [1]), r"shapes \[2\], \[2\] and \[1\]"),
        (Line("mine", [[1, 2]], [[1, 2]]), r"shapes \[1, 2\]"),
        (Line("mine", [1, 2], [1, 2], [0.1, -0.2]), "'mine' must not be negative, got -0.2"),
        (Line("mine", [1, 2], ["1", "two"]), "'mine' must be lists of numbers, got other entries"),
        (Line("mine", [1, 2], [[1], [1, 2]]), "'mine' must be lists of numbers, got other entries"),
    ],
)
def test_what_is_no_line(line, sentence):
    with pytest.raises(InputError, match=sentence):
        plot_panels([Panel([line], "title", "x", "y")])


ROWS = [{"step": 10, "bound": -3.0, "speed": 2.0}, {"step": 20, "bound": None, "validation": -4.0}]


def test_training_of_one_run_and_of_several():
    figure = plot_training(ROWS)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Training bound", "Validation bound"]
    assert {axes.get_ylabel() for axes in figure.axes} == {"nats per timestep"}
    np.testing.assert_array_equal(figure.axes[0].get_lines()[0].get_ydata(), [-3.0, np.nan])
    np.testing.assert_array_equal(figure.axes[1].get_lines()[0].get_xydata(), [[20, -4.0]])
    several = plot_training({"a": ROWS, "b": ROWS}, fields=["speed"], title="Two runs")
    assert labels(several.axes[0].get_legend()) == ["a", "b"]
    assert several.get_suptitle() == "Two runs"


@pytest.mark.parametrize("fields", [["loss"], []])
def test_a_field_that_the_metrics_do_not_have(fields):
    with pytest.raises(InputError) as refused:
        plot_training(ROWS, fields=fields)
    assert_one_sentence(refused.value, "bound, speed, validation")


def test_a_diagnosis():
    over_time = {field: [0.5, 0.25, 1.0] for field in ("ess", "resampled", "kl", "ancestors")}
    rows = [
        {"particles": n, "bound": -1 / n, "standard_error": 0.1, "half_variance": 1 / n, "half_log_variance": 2 / n}
        | {"sandwich": {"gap": 3 / n}, "over_time": over_time}
        for n in (4, 16)
    ]
    figure = plot_diagnosis({"rows": rows})
    assert len(figure.axes) == 6
    np.testing.assert_array_equal(figure.axes[0].get_lines()[0].get_xydata(), [[4, -1 / 4], [16, -1 / 16]])
    np.testing.assert_array_equal(figure.axes[1].get_lines()[2].get_ydata(), [3 / 4, 3 / 16])
    np.testing.assert_array_equal(figure.axes[2].get_lines()[1].get_xydata(), [[1, 0.5], [2, 0.25], [3, 1.0]])
    assert all(axes.get_xlabel() and axes.get_ylabel() for axes in figure.axes)
