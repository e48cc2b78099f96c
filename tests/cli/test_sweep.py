"""`fivo sweep` and `fivo report`: mistakes, and what they print; sweeps that run are in tests/experiments."""

import json

import pytest
import tomli_w

from fivo.cli import main
from fivo.cli.sweep_progress import SweepProgress, lines_of
from fivo.experiments import check_data, read_experiment
from fivo.experiments.status import Running, Status, status_of
from fivo.experiments.tables import write_summary
from fivo.runs import last_row
from tests.cli.commands import run
from tests.experiments.made import CONTENT, made_experiment, write_metrics, write_sweep, write_training
from tests.sentences import assert_one_sentence


@pytest.fixture
def sweep(tmp_path):
    experiment = made_experiment()
    write_sweep(tmp_path, experiment)
    write_summary(experiment, tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sweep", "nothing.toml"], "does not exist"),
        (["report"], "no runs"),
        (["report", "nowhere", "--out", "x.html"], "does not exist"),
        (["report", "."], "--out"),
        (["sweep", "x.toml", "--workers", "2", "--scheduler", "tcp://127.0.0.1:1"], "--scheduler"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_mistakes(capsys, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    outcome = run(capsys, *arguments)
    assert outcome.code == 2
    assert_one_sentence(outcome.err.strip(), said)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "made.toml"
    path.write_text(tomli_w.dumps(CONTENT | {"grid": {"dataset": ["bach", "jsb"], "bound": ["elbo", "fivo"]}}))
    return path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--only", "dataset=bach", "--workers", 0], "--workers must be at least 1, got 0"), (["--only"], "KEY=VALUE")],
    ids=["no workers", "only nothing"],
)
def test_mistakes_beside_an_experiment(capsys, tmp_path, file, arguments, said):
    outcome = run(capsys, "sweep", file, "--out", tmp_path / "out", *arguments)
    assert outcome.code == 2
    assert_one_sentence(outcome.err.strip(), said)


def test_nothing_starts_without_the_data_of_what_is_not_trained_yet(capsys, tmp_path, monkeypatch, file):
    monkeypatch.delenv("FIVO_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    outcome = run(capsys, "sweep", file, "--out", tmp_path / "out")
    assert outcome.code == 2
    assert_one_sentence(outcome.err.strip(), "fivo data fetch jsb")
    assert not (tmp_path / "out").exists()
    experiment = read_experiment(file)
    for each in experiment.runs:
        write_training(tmp_path / "out", each, -7.0)
    check_data(experiment.runs, tmp_path / "out")


def test_a_page_and_tables(capsys, sweep, tmp_path):
    assert "1 experiments, 8 runs" in run(capsys, "report", sweep, "--out", tmp_path / "x.html").out
    assert (tmp_path / "x.html").read_text().startswith("<!doctype html>")
    assert run(capsys, "report", sweep, "--format", "md").out.startswith("**Table 9")
    assert run(capsys, "report", sweep / "made.json", "--format", "csv").out.startswith("experiment,place,")
    assert r"\begin{tabular}" in run(capsys, "report", sweep, "--format", "latex").out


def test_names_that_are_no_text_are_replaced(capsysbinary, sweep):
    """In a summary of before there were checksums: one with a checksum is text."""
    summary = json.loads((sweep / "made.json").read_text())
    old = {name: value for name, value in summary.items() if name not in ("kind", "sha256")}
    (sweep / "made.json").write_text(json.dumps({**old, "title": "odd \ud800"}))
    main(["report", str(sweep / "made.json"), "--format", "md"])
    assert b"odd ?" in capsysbinary.readouterr().out


def test_progress_has_a_line_for_every_job_and_the_time_left(tmp_path, capsys):
    experiment = made_experiment()
    first, second, *others = experiment.runs
    for index, each in enumerate((first, second)):
        directory = write_training(tmp_path, each, -7.0)
        (directory / "job.json").write_text('{"token": "mine", "kind": "train"}')
        write_metrics(directory, [{"step": 50, "seconds": 100.0, "bound": -7.5, "steps_per_second": 0.5}])
        with (directory / "metrics.jsonl").open("a") as file:
            file.write("" if index else '{"step": 60, "bou')
    flying = [("train", each) for each in (first, second, others[0])]
    status = status_of(tmp_path, experiment.runs, flying, "mine", {others[1].slug}, {})
    assert (status.trained, status.total, len(status.running)) == (1, 8, 2)  # the third has not begun
    # Two half-done runs of 100 steps at two seconds a step, and five others at the same pace, on two processes.
    assert status.seconds_left == pytest.approx((2 * 100 + 5 * 200) / 2)
    lines = lines_of("made", status)
    assert lines[0] == "made: 1 of 8 runs trained, at most 0:10:00 left"
    assert lines[1] == f"  {first.slug}: 50/100, 0:01:40 left, 0.5 steps/s, bound -7.500"
    assert len(lines) == 3
    write_metrics(tmp_path / second.slug, [{"step": 99, "seconds": 198.0}])
    (tmp_path / second.slug / "job.json").write_text('{"token": "mine", "kind": "evaluate"}')
    flying = [("train", first), ("evaluate", second)]
    assert status_of(tmp_path, (first, second), flying, "mine", {second.slug}, {}).seconds_left == 100.0
    both = [("train", first), ("train", second)]
    (tmp_path / second.slug / "job.json").write_text('{"token": "mine", "kind": "train"}')
    assert status_of(tmp_path, (first, second), both, "mine", {}, {}).seconds_left == 100.0  # as the longer one
    assert status_of(tmp_path, (second,), flying[1:], "mine", {second.slug}, {}).seconds_left is None
    with SweepProgress("made") as progress:
        progress.show(status)
        progress.show(status)
    assert capsys.readouterr().err.count("made: 1 of 8") == 1


def test_jobs_that_only_begin_or_evaluate():
    jobs = {"train": {}, "validate": {"step": 100}, "evaluate": {"step": 100}}
    running = [Running(kind, name, 100, row) for name, (kind, row) in zip("abc", jobs.items(), strict=True)]
    lines = lines_of("x", Status(0, 1, 2, running, None))
    assert lines == ["x: 0 of 2 runs trained, 1 failed", "  a: starting", "  b: validating", "  c: evaluating"]


def test_no_metrics_yet(tmp_path):
    assert last_row(tmp_path / "metrics.jsonl") is None
