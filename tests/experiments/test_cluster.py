"""A sweep on a real Dask scheduler with two worker processes, one of which is killed in mid-run."""

import json
import signal
import subprocess
import sys
import time

import pytest

from fivo.errors import InputError
from fivo.experiments import cluster_executor
from fivo.training import RunDirectory
from tests.experiments.sweeps import finish, logged_steps, scores, start_sweep, train_alone, trained, write_experiment
from tests.music import environment
from tests.sentences import assert_one_sentence
from tests.training.runs import assert_same_run

pytest.importorskip("distributed", reason="the extra `cluster` is not installed")


def dask(cache, *arguments: object) -> subprocess.Popen:
    command = [sys.executable, "-m", "dask", *map(str, arguments)]
    return subprocess.Popen(command, env=environment(cache), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.fixture
def cluster(tmp_path, cache):
    """The scheduler's file, its process, and the two worker processes."""
    file = tmp_path / "scheduler.json"
    processes = [
        dask(
            cache,
            "scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            0,
            "--dashboard-address",
            ":0",
            "--scheduler-file",
            file,
        )
    ]
    for _ in range(2):
        place = ["--nthreads", 1, "--no-nanny", "--memory-limit", 0, "--dashboard-address", ":0"]
        processes.append(dask(cache, "worker", "--scheduler-file", file, *place, "--local-directory", tmp_path))
    yield file, processes[0], processes[1:]
    for process in processes:
        process.kill()
        process.wait()


def test_a_worker_is_killed_in_mid_run(tmp_path, music_file, cache, cluster):
    file, _, workers = cluster
    experiment = write_experiment(
        tmp_path / "tiny.toml", music_file, grid={"bound": ["fivo"], "learning_rate": [0.02, 0.01]}
    )
    out = tmp_path / "out"
    process = start_in_mid_run(tmp_path, out, cache, file)
    workers[0].send_signal(signal.SIGKILL)
    finish(process)
    assert trained(out) == {run.slug for run in experiment.runs}
    assert sum("test" in scores(out / run.slug) for run in experiment.runs) == 1
    train_alone(tmp_path / "tiny.toml", tmp_path / "alone", cache)
    for run in experiment.runs:
        assert_same_run(RunDirectory(out / run.slug), RunDirectory(tmp_path / "alone" / run.slug))


def test_a_killed_scheduler_is_one_sentence(tmp_path, music_file, cache, cluster):
    file, scheduler, _ = cluster
    write_experiment(tmp_path / "tiny.toml", music_file, grid={"bound": ["fivo"], "learning_rate": [0.02, 0.01]})
    process = start_in_mid_run(tmp_path, tmp_path / "out", cache, file)
    scheduler.send_signal(signal.SIGKILL)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 2
    assert_one_sentence(errors.strip(), "the scheduler is lost", "the same command goes on")


def start_in_mid_run(tmp_path, out, cache, file) -> subprocess.Popen:
    """A sweep whose runs have begun to train."""
    deadline = time.monotonic() + 120
    while not file.exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    address = json.loads(file.read_text())["address"]
    process = start_sweep(tmp_path / "tiny.toml", out, cache, "--scheduler", address)
    while logged_steps(out) < 3 and process.poll() is None:
        assert time.monotonic() < deadline + 240
        time.sleep(0.02)
    return process


def test_no_scheduler_is_one_sentence(monkeypatch):
    monkeypatch.setattr("fivo.experiments.executors.CONNECT_SECONDS", 1)
    with pytest.raises(InputError) as stop, cluster_executor("tcp://127.0.0.1:9"):
        pass
    assert_one_sentence(stop.value, "tcp://127.0.0.1:9", "dask scheduler")
