"""Sweeps in processes: disturbed and undisturbed ones end in the same results."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from fivo.errors import InputError
from fivo.experiments import worker
from fivo.experiments.executors import shares
from fivo.experiments.launching import MISTAKE, launch
from fivo.experiments.lease import Lease, stands
from fivo.training import RunDirectory
from tests.experiments.sweeps import (
    finish,
    logged_steps,
    scores,
    start_sweep,
    train_alone,
    trained,
    write_experiment,
)
from tests.music import environment
from tests.sentences import assert_one_sentence
from tests.training.runs import assert_same_run

SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGKILL, signal.SIGTERM, signal.SIGKILL)
KILLS = int(os.environ.get("FIVO_TEST_KILLS", "2"))
"""How often the whole sweep is stopped: one of four runs twice, or one of eight all five times."""
SEEDS = 2 if len(SIGNALS) > KILLS else 4
RATES = [0.02, 0.005]


def test_killed_at_random_instants(tmp_path, music_file, cache):
    """Every run ends exactly once, as if trained alone; the best of each seed is scored on test, no other."""
    grid = {"bound": ["fivo"], "learning_rate": RATES, "seed": list(range(SEEDS))}
    experiment = write_experiment(tmp_path / "tiny.toml", music_file, grid=grid)
    out = tmp_path / "out"
    rng = np.random.default_rng(0)
    for number, last in zip(SIGNALS[-KILLS:], [False] * (KILLS - 1) + [True], strict=True):
        process = start_sweep(tmp_path / "tiny.toml", out, cache, "--workers", 2)
        wait_for_progress(out, process)
        if last:
            wait_until(lambda: trained(out), process)
        time.sleep(rng.uniform(0, 1.5))
        process.send_signal(number)
        _, errors = process.communicate()
        assert process.returncode == (-number if number == signal.SIGKILL else 128 + number), errors
        ended = {path: path.stat().st_mtime_ns for path in out.glob("*/result.json")}
    shown = finish(start_sweep(tmp_path / "tiny.toml", out, cache, "--workers", 2))
    assert trained(out) == {run.slug for run in experiment.runs}
    assert len(trained(out)) == len(RATES) * SEEDS
    assert ended
    assert {path: path.stat().st_mtime_ns for path in ended} == ended  # what was done was left as it was
    assert "| FIVO |" in shown

    evaluated = {run.slug for run in experiment.runs if "test" in scores(out / run.slug)}
    assert len(evaluated) == SEEDS
    alone = train_alone(tmp_path / "tiny.toml", tmp_path / "alone", cache)
    for run in experiment.runs:
        assert_same_run(RunDirectory(out / run.slug), RunDirectory(tmp_path / "alone" / run.slug))
    for run in experiment.runs:
        for split, score in scores(out / run.slug).items():
            assert score["bounds"] == alone[run.slug][split]
    for seed in range(SEEDS):
        mine = [run.slug for run in experiment.runs if run.settings.training.seed == seed]
        assert max(mine, key=lambda slug: alone[slug]["valid"]["fivo"]["nats_per_step"]) in evaluated


def wait_for_progress(out, process: subprocess.Popen) -> None:
    before = logged_steps(out)
    wait_until(lambda: logged_steps(out) > before, process)


def wait_until(happened, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 240
    while not happened() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def job(tmp_path, music_file, monkeypatch, cache):
    """What a sweep gives to a worker; the sweep is this process."""
    for name, value in environment(cache).items():
        monkeypatch.setenv(name, value)
    (run, *_) = write_experiment(tmp_path / "tiny.toml", music_file).runs
    with Lease(tmp_path / "out") as lease:
        yield {
            "kind": "train",
            "directory": str(tmp_path / "out" / run.slug),
            "data_dir": None,
            "lease": str(lease.file),
            "token": lease.token,
            "settings": {**run.flat, "steps": 20},
            "curves": None,
        }


def test_a_mistake_comes_back_as_its_sentence(job):
    outcome = launch({**job, "settings": {"dataset": "nowhere"}})
    assert outcome.code == 2
    assert_one_sentence(outcome.sentence, "'nowhere'")


def test_runs_whose_resampling_loses_the_bound_are_scored_with_one_that_keeps_it(job):
    settings = {**job["settings"], "resampling": "relaxed", "steps": 1}
    assert launch({**job, "settings": settings}).code == 0
    scoring = {"kind": "evaluate", "splits": ["test"], "particles": 2, "repeats": 1, "measures": {}}
    assert launch({**job, "settings": settings, **scoring}) == (0, "the process ended with code 0")
    directory = RunDirectory(job["directory"])
    assert (directory.config().bound.resampling, scores(directory.path)["test"]["resampling"]) == (
        "relaxed",
        "multinomial",
    )


def test_a_log_keeps_what_was_tried_before(job):
    launch({**job, "settings": {"dataset": "nowhere"}})
    outcome = launch({**job, "settings": {"dataset": "elsewhere"}})
    log = (RunDirectory(job["directory"]).path / "worker.log").read_text()
    assert "'nowhere'" in log
    assert "'elsewhere'" in outcome.sentence


def test_a_run_that_stays_locked_is_no_mistake(tmp_path, capsys, monkeypatch):
    """So the sweep tries once more."""
    monkeypatch.setattr(worker, "PATIENCE_SECONDS", 0.0)
    with RunDirectory(tmp_path), pytest.raises(SystemExit) as stop:
        worker._wait_for_lock(str(tmp_path))
    assert stop.value.code not in (0, MISTAKE)
    assert_one_sentence(capsys.readouterr().err.strip(), "another process")


def test_jobs_of_a_sweep_that_has_ended_do_not_start(job):
    assert launch({**job, "token": "another"}).code == 3
    assert not RunDirectory(job["directory"]).exists()


def test_a_worker_keeps_compiled_programs_for_the_next(job, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    assert launch({**job, "settings": {**job["settings"], "steps": 1}}).code == 0
    assert list((tmp_path / "cache" / "fivo" / "compiled").glob("*-cache"))


def test_a_worker_leaves_when_its_parent_is_gone(job, tmp_path):
    """A parent that is killed, as by the system when memory runs out, leaves no process behind that holds the run."""
    program = "import json, sys; from fivo.experiments.launching import launch; launch(json.load(open(sys.argv[1])))"
    endless = {**job, "settings": {**job["settings"], "steps": 10**8, "log_every": 10, "patience": 0}}
    (tmp_path / "job.json").write_text(json.dumps(endless))
    parent = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "job.json")])
    run = RunDirectory(job["directory"])
    wait_until(run.metrics, parent)
    with pytest.raises(InputError, match="another process"), run:
        pass
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with run:
                break
        except InputError:
            time.sleep(0.1)
    with run:  # free for the next
        pass


def test_one_sweep_at_a_time(tmp_path):
    with Lease(tmp_path) as first:
        assert stands(str(first.file), first.token)
        with pytest.raises(InputError) as stop, Lease(tmp_path):
            pass
        assert_one_sentence(stop.value, "another sweep")
        assert stands(str(first.file), first.token)
    assert not stands(str(first.file), first.token)


def test_cores_are_shared_out():
    assert shares([0, 1], 2) == [[0], [1]]
    assert shares([0, 1], 1) == [[0, 1]]
    assert shares([4, 5, 6], 2) == [[4, 6], [5]]
    assert shares([3], 2) == [[3], [3]]
