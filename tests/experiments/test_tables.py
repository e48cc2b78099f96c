"""Selection by validation, cells of tables, and tables as text."""

import csv
import io
import math

import pytest

from fivo.experiments import summarise
from fivo.experiments.experiment import Evaluation
from fivo.experiments.selection import is_evaluated, is_trained, selected, unscored
from fivo.report import as_csv, as_latex, as_markdown
from tests.experiments.made import ODD, made_experiment, write_evaluation, write_sweep, write_training

SCORES = {"elbo": -8.5, "iwae": -8.2, "fivo": -8.3}


def cell_of(summary, **keys):
    (found,) = [cell for cell in summary["cells"] if keys.items() <= cell["keys"].items()]
    return found


def test_the_best_validation_is_selected_whatever_the_test_says(tmp_path):
    experiment = made_experiment()
    plan = experiment.document.evaluation
    worse, better = (run for run in experiment.runs if run.cell == experiment.runs[0].cell)
    write_evaluation(write_training(tmp_path, worse, -6.0), worse, {"elbo": -1.0, "iwae": -1.0, "fivo": -1.0})
    assert selected(tmp_path, (worse, better), plan) == worse  # the only one
    assert unscored(tmp_path, (worse, better), plan) == []
    write_training(tmp_path, better, -6.5)
    assert unscored(tmp_path, (worse, better), plan) == [worse, better]
    write_evaluation(tmp_path / worse.slug, worse, {"elbo": -9.0, "iwae": -8.0, "fivo": -8.0}, "valid")
    write_evaluation(tmp_path / better.slug, better, {"elbo": -9.5, "iwae": -7.5, "fivo": -9.5}, "valid")
    assert unscored(tmp_path, (worse, better), plan) == []
    assert selected(tmp_path, (worse, better), plan) == better  # by the bound that is reported, not the run's own
    assert cell_of(summarise(experiment, tmp_path), dataset="jsb", bound="elbo")["ours"] is None
    write_evaluation(tmp_path / better.slug, better, SCORES)
    cell = cell_of(summarise(experiment, tmp_path), dataset="jsb", bound="elbo")
    assert (cell["ours"], cell["standard_error"]) == (-8.2, 0.003)
    assert cell["difference"] == pytest.approx(0.4)
    assert (cell["runs_trained"], cell["runs_planned"]) == (2, 2)
    assert cell["selected"][0]["run"] == better.slug
    assert f"--learning-rate {better.settings.optimizer.learning_rate:g}" in cell["selected"][0]["commands"][0]


def test_fivo_reports_fivo_and_the_others_their_maximum_as_optimistic(tmp_path):
    experiment = made_experiment()
    for run in experiment.runs:
        for split in ("valid", "test"):
            write_evaluation(write_training(tmp_path, run, -7.0), run, SCORES, split)
    summary = summarise(experiment, tmp_path)
    fivo, elbo = (cell_of(summary, dataset="jsb", bound=bound) for bound in ("fivo", "elbo"))
    assert (fivo["ours"], fivo["note"]) == (-8.3, None)
    assert elbo["ours"] == -8.2
    assert "optimistic" in elbo["note"]


def test_commands_make_the_same_number_again(tmp_path):
    experiment = made_experiment(
        grid=[{"dataset": "jsb", "bound": "fivo", "learning_rate": 0.000123456789, "resampling": "relaxed"}],
        published=[],
    )
    (run,) = experiment.runs
    write_evaluation(write_training(tmp_path, run, -7.0), run, {"fivo": -7.0}, resampling="multinomial")
    (cell,) = summarise(experiment, tmp_path)["cells"]
    train, evaluate = cell["selected"][0]["commands"]
    assert "--learning-rate 0.000123456789 " in train
    assert evaluate.endswith("--resampling multinomial")


@pytest.mark.parametrize("change", [{"particles": 4}, {"repeats": 1}, {"steps": 60}], ids=str)
def test_scores_that_are_not_those_asked_for_do_not_count(tmp_path, change):
    run = made_experiment().runs[0]
    plan = Evaluation(particles=8, repeats=2)
    directory = write_training(tmp_path, run, -7.0)
    assert not is_evaluated(directory, plan)
    write_evaluation(directory, run, SCORES)
    assert is_evaluated(directory, plan)
    write_evaluation(directory, run, SCORES, **change)
    assert not is_evaluated(directory, plan)


def test_a_run_is_trained_only_with_the_settings_asked_for(tmp_path):
    short, long = (made_experiment(settings={"steps": steps}).runs[0] for steps in (100, 200))
    directory = tmp_path / short.slug
    assert not is_trained(directory, short)
    write_training(tmp_path, short, -7.0)
    assert is_trained(directory, short)
    assert not is_trained(directory, long)
    (directory / "result.json").write_text('{"steps": 1')
    assert not is_trained(directory, short)


def test_seeds_are_averaged_and_give_the_spread(tmp_path):
    experiment = made_experiment(grid=[{"dataset": "jsb", "bound": ["elbo", "fivo"], "seed": [0, 1, 2]}])
    for run in experiment.runs:
        write_evaluation(write_training(tmp_path, run, -7.0), run, {"fivo": -7.0 - run.settings.training.seed})
    cell = cell_of(summarise(experiment, tmp_path), bound="fivo")
    assert cell["ours"] == -8.0
    assert cell["deviation"] == 1.0
    assert cell["standard_error"] == pytest.approx(0.003 / math.sqrt(3))  # of the evaluations, 0.003 each
    single = cell_of(summarise(experiment, tmp_path / "none"), bound="fivo")
    assert (single["deviation"], single["standard_error"]) == (None, None)


def test_scores_relative_to_a_cell(tmp_path):
    experiment = made_experiment(
        evaluation={
            "splits": ["train", "test"],
            "particles": 8,
            "repeats": 2,
            "unit": "nats_per_sequence",
            "relative_to": {"bound": "elbo", "dataset": "jsb"},
        },
        table={"rows": ["bound"], "columns": ["dataset", "split"]},
        published=[{"bound": "fivo", "dataset": "jsb", "split": "test", "value": 50}],
    )
    for run in experiment.runs:
        directory = write_training(tmp_path, run, -7.0)
        for split, shift in (("valid", 0.0), ("train", 1.0), ("test", 0.0)):
            write_evaluation(
                directory, run, {"fivo": shift - (8.0 if run.settings.bound.kind == "elbo" else 7.0)}, split
            )
    summary = summarise(experiment, tmp_path)
    base, ours = (cell_of(summary, bound=bound, dataset="jsb", split="test") for bound in ("elbo", "fivo"))
    assert (base["ours"], base["standard_error"]) == (0.0, None)
    assert ours["ours"] == pytest.approx(60)
    assert ours["difference"] == pytest.approx(10)
    assert ours["standard_error"] == pytest.approx(math.hypot(0.18, 0.18))
    assert cell_of(summary, bound="fivo", dataset="jsb", split="train")["published"] is None


def test_figures_are_lines_of_the_metrics(tmp_path):
    experiment = made_experiment(
        grid=[{"bound": ["elbo", "fivo"]}],
        evaluation={"splits": []},
        published=[],
        table={"rows": ["bound"], "columns": []},
        figure={"fields": ["test_elbo", "test_fivo"], "panels": "bound", "y_label": "nats"},
    )
    write_training(tmp_path, experiment.runs[0], -7.0, ("test_elbo", "test_fivo"))
    panels = summarise(experiment, tmp_path)["figure"]
    assert [panel["title"] for panel in panels] == ["bound: elbo", "bound: fivo"]
    assert [line["label"] for line in panels[0]["lines"]] == ["test elbo", "test fivo"]
    assert panels[0]["lines"][0]["x"] == list(range(10, 101, 10))
    assert panels[1]["lines"] == []
    assert panels[0]["lines"][0]["command"].startswith("fivo fit ")
    assert panels[0]["lines"][0]["trained_with"] == "c0ffee"


def test_lines_of_runs_that_differ_in_what_is_selected_have_names_of_their_own(tmp_path):
    figure = {"fields": ["test_kl"], "lines": "bound", "y_label": "nats"}
    experiment = made_experiment(
        grid=[{"bound": "fivo", "learning_rate": [1e-3, 1e-4], "seed": [0, 1]}],
        evaluation={"splits": []},
        published=[],
        table=None,
        figure=figure,
    )
    for run in experiment.runs:
        write_training(tmp_path, run, -7.0, ("test_kl",))
    (panel,) = summarise(experiment, tmp_path)["figure"]
    assert [line["label"] for line in panel["lines"]][1:3] == ["fivo, rate 0.001, seed 1", "fivo, rate 0.0001, seed 0"]
    assert len({line["label"] for line in panel["lines"]}) == 4


@pytest.fixture
def summary(tmp_path):
    experiment = made_experiment()
    write_sweep(tmp_path, experiment)
    return summarise(experiment, tmp_path)


def test_markdown(summary):
    lines = as_markdown(summary).splitlines()
    assert lines[2].startswith("| bound | jsb | ")
    assert lines[4].startswith(r"| ELBO | -7.000 ± 0.0030\* / -8.60 / +1.60 |")
    assert lines[5].startswith("| FIVO | -7.000 ± 0.0030 / -6.90 / -0.10 |")
    assert {line.replace(r"\|", "").count("|") for line in lines[2:6]} == {4}  # the odd name adds no column
    assert "<script" not in "\n".join(lines).replace(r"\<", "")


def test_columns_without_results_are_left_out_of_a_table_that_has_others(tmp_path):
    experiment = made_experiment()
    assert "| jsb |" in as_markdown(summarise(experiment, tmp_path)).splitlines()[2]
    run = next(run for run in experiment.runs if dict(run.cell) == {"dataset": "jsb", "bound": "fivo"})
    write_evaluation(write_training(tmp_path, run, -7.0), run, SCORES)
    assert as_markdown(summarise(experiment, tmp_path)).splitlines()[2:6] == [
        "| bound | jsb |",
        "| --- | --- |",
        "| ELBO | – / -8.60 / – |",
        "| FIVO | -8.300 ± 0.0030 / -6.90 / -1.40 |",
    ]


def test_csv(summary):
    rows = list(csv.DictReader(io.StringIO(as_csv(summary))))
    assert len(rows) == 4
    assert {row["dataset"] for row in rows} == {"jsb", ODD}
    mine = next(row for row in rows if (row["dataset"], row["bound"]) == ("jsb", "fivo"))
    assert (float(mine["ours"]), float(mine["published"]), mine["optimistic"]) == (-7.0, -6.9, "False")


def test_a_formula_in_a_name_is_text_in_a_spreadsheet(tmp_path):
    experiment = made_experiment(grid=[{"dataset": "=1+1", "bound": ["fivo"]}], published=[])
    assert "'=1+1" in as_csv(summarise(experiment, tmp_path))


def test_latex(summary):
    text = as_latex(summary)
    assert r"ELBO & $-7.000 \pm 0.0030^{*}$ & $-8.60$ & $+1.60$" in text
    assert r"FIVO & $-7.000 \pm 0.0030$ & $-6.90$ & $-0.10$" in text
    assert r"\textless{}script\textgreater{}alert" in text
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 1
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {line.replace(r"\&", "").count("&") for line in body[1:]} == {6}


def test_measures_are_numbers_of_their_own_in_every_cell(tmp_path):
    """What an experiment measures in place of bounds: each has a cell, and published numbers say which they are of."""
    experiment = made_experiment(
        settings={"model": "fivo.benchmarks.drift:model", "dataset": "fivo.benchmarks.drift:data"},
        grid=[{"bound": "fivo"}, {"bound": "sixo", "twist_training": ["dre", "td"]}],
        evaluation={"particles": 8, "repeats": 2, "measures": {"gap": "a:b", "error": "a:c"}},
        table={"rows": ["bound", "twist_training"], "columns": ["measure"]},
        published=[{"bound": "fivo", "measure": "error", "value": 0.5}],
    )
    assert [dict(run.cell)["twist_training"] for run in experiment.runs] == ["-", "dre", "td"]
    first = experiment.runs[0]
    directory = write_training(tmp_path, first, -7.0)
    assert is_trained(directory, first)
    write_evaluation(directory, first, {"gap": -0.1, "error": 0.01})
    summary = summarise(experiment, tmp_path)
    cells = {measure: cell_of(summary, bound="fivo", measure=measure) for measure in ("gap", "error")}
    assert {name: cell["ours"] for name, cell in cells.items()} == {"gap": -6.0, "error": pytest.approx(0.6)}
    assert (cells["gap"]["published"], cells["error"]["published"]) == (None, 0.5)
    assert cells["error"]["standard_error"] == pytest.approx(0.003 * 60)
    assert cells["error"]["difference"] == pytest.approx(0.1)
    assert cells["error"]["note"] is None
    assert cells["error"]["selected"][0]["commands"][0].startswith("fivo fit fivo.benchmarks.drift:data --model fivo")
    assert "| fivo | - | -6.0" in as_markdown(summary).replace("FIVO", "fivo")
