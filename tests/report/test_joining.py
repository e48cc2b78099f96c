"""Summaries of one experiment from several places."""

import json

import pytest

from fivo.errors import InputError
from fivo.experiments import summarise
from fivo.experiments.tables import write_summary
from fivo.report import as_json, as_markdown, read_sources
from fivo.report.joining import joined
from tests.cli.commands import run
from tests.experiments.made import made_experiment, write_evaluation, write_training
from tests.sentences import assert_one_sentence


def scored(out, experiment, bound, value):
    """Where a sweep of one bound left its summary."""
    (run,) = [run for run in experiment.runs if dict(run.cell)["bound"] == bound]
    write_evaluation(write_training(out, run, -7.0), run, {"fivo": value})
    write_summary(experiment, out)
    return out / "made.json"


def scores_of(summary):
    return {cell["keys"]["bound"]: cell["ours"] for cell in summary["cells"]}


@pytest.fixture
def experiment():
    return made_experiment(grid=[{"dataset": "jsb", "bound": ["elbo", "iwae", "fivo"]}])


@pytest.fixture
def parts(tmp_path, experiment):
    return [scored(tmp_path / "a", experiment, "elbo", -8.0), scored(tmp_path / "b", experiment, "fivo", -7.0)]


def test_parts_of_a_table_make_the_whole(parts):
    (summary,) = read_sources(parts).summaries
    assert scores_of(summary) == {"elbo": -8.0, "iwae": None, "fivo": -7.0}
    assert len(summary["runs"]) == 2
    assert as_markdown(summary).count("-8.000") == 1


def test_of_two_results_the_last_counts(tmp_path, experiment, parts):
    again = scored(tmp_path / "c", experiment, "elbo", -7.5)
    assert scores_of(read_sources([*parts, again]).summaries[0])["elbo"] == -7.5
    assert scores_of(read_sources([again, *parts]).summaries[0])["elbo"] == -8.0


def test_seeds_of_a_cell_from_several_places_are_averaged(tmp_path):
    experiment = made_experiment(grid=[{"dataset": "jsb", "bound": ["elbo", "fivo"], "seed": [0, 1, 2]}])
    halves = []
    for place, seeds in (("a", [2]), ("b", [0, 1]), ("c", [2])):
        for planned in experiment.runs:
            if planned.settings.training.seed in seeds and dict(planned.cell)["bound"] == "fivo":
                value = -7.0 - planned.settings.training.seed - (0.5 if place == "c" else 0.0)
                write_evaluation(write_training(tmp_path / place, planned, -7.0), planned, {"fivo": value})
        halves.append(summarise(experiment, tmp_path / place))
    (whole,) = joined(halves)
    cell = next(cell for cell in whole["cells"] if cell["keys"]["bound"] == "fivo")
    assert [run["config"]["seed"] for run in cell["selected"]] == [0, 1, 2]
    assert [run["value"] for run in cell["selected"]] == [-7.0, -8.0, -9.5]  # the last result of seed 2
    assert cell["ours"] == pytest.approx(-24.5 / 3)
    assert cell["difference"] == pytest.approx(-24.5 / 3 - cell["published"])
    assert (cell["runs_trained"], cell["runs_planned"]) == (3, 3)
    assert "(s.d. 1.258, 3 seeds)" in as_markdown(whole)


def test_a_joined_summary_is_a_summary(capsys, tmp_path, parts):
    out = tmp_path / "whole.json"
    assert run(capsys, "report", *parts, "--format", "json", "--out", out).code == 0
    (summary,) = read_sources([out]).summaries
    assert summary == read_sources(parts).summaries[0]
    assert as_json(summary) == out.read_text()


def test_several_experiments_are_no_summary(tmp_path, parts):
    other = made_experiment(name="other")
    write_summary(other, tmp_path)
    with pytest.raises(InputError) as stop:
        as_json(*read_sources([*parts, tmp_path / "other.json"]).summaries)
    assert_one_sentence(stop.value, "made, other")


def test_lines_of_a_figure_are_joined(tmp_path):
    figure = made_experiment(
        grid=[{"bound": ["elbo", "fivo"]}],
        evaluation={"splits": []},
        published=[],
        table=None,
        figure={"fields": ["test_kl"], "lines": "bound", "y_label": "nats"},
    )
    for place, planned in zip("ab", figure.runs, strict=True):
        write_training(tmp_path / place, planned, -7.0, ("test_kl",))
    halves = [summarise(figure, tmp_path / place) for place in "ab"]
    assert [len(half["figure"][0]["lines"]) for half in halves] == [1, 1]
    (whole,) = joined([*halves, halves[0]])
    assert [line["label"] for line in whole["figure"][0]["lines"]] == ["elbo", "fivo"]


def test_scores_relative_to_different_runs_are_not_joined(tmp_path):
    baseline = {"bound": "elbo", "dataset": "jsb"}
    experiment = made_experiment(evaluation={"relative_to": baseline, "particles": 8, "repeats": 2})
    first, second = summarise(experiment, tmp_path), summarise(experiment, tmp_path)
    assert joined([first, second]) == [first]  # the same file twice
    second["runs"] = ["another"]
    with pytest.raises(InputError) as stop:
        joined([first, second])
    assert_one_sentence(stop.value, "relative", "apart")


@pytest.mark.parametrize("change", [{"unit": "nats_per_sequence"}, {"particles": 4}, {"repeats": 5}], ids=str)
def test_scores_of_another_kind_are_not_joined(tmp_path, change):
    plan = {"splits": ["test"], "particles": 8, "repeats": 2}
    summaries = [summarise(made_experiment(evaluation={**plan, **more}), tmp_path) for more in ({}, change)]
    with pytest.raises(InputError) as stop:
        joined(summaries)
    assert_one_sentence(stop.value, *change, "apart")


def test_a_path_may_be_given_twice(tmp_path, experiment, parts):
    again = scored(tmp_path / "c", experiment, "elbo", -7.5)
    assert scores_of(read_sources([parts[0], again, parts[0].parent]).summaries[0])["elbo"] == -8.0
    assert len(read_sources([parts[0].parent, parts[0].parent]).runs) == 1


@pytest.mark.parametrize("format", ["html", "md", "csv", "latex"])
def test_a_damaged_summary_is_one_sentence_in_every_format(capsys, tmp_path, parts, format):
    summary = json.loads(parts[0].read_text())
    del summary["cells"][0]["ours"]
    parts[0].write_text(json.dumps(summary))
    outcome = run(capsys, "report", parts[0], "--format", format, "--out", tmp_path / "x")
    assert outcome.code == 2
    assert_one_sentence(outcome.err.strip(), "damaged")
    assert not (tmp_path / "x").exists()
