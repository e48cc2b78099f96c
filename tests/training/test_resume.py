"""A run that was killed, or that ran out of disk, ends in the bits of one that was not."""

import errno
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from fivo import files
from fivo.errors import InputError
from fivo.runs import Progress, check_run
from fivo.training import RunDirectory
from fivo.training.session import Session
from tests.music import SETTINGS, command_line, environment, fivo_command, options, tiny_plan, train_tiny
from tests.sentences import assert_one_sentence
from tests.training.runs import assert_same_run

KILLS = int(os.environ.get("FIVO_TEST_KILLS", "3"))
CUTS = int(os.environ.get("FIVO_TEST_CUTS", "4"))


def test_killed_at_random_instants(tmp_path, music_file, cache):
    """Three times; FIVO_TEST_KILLS in the environment says how often instead."""
    settings = {"dataset": music_file, **SETTINGS, "steps": 1500, "validate_every": 30, "log_every": 10}
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    fivo_command("fit", *options(settings), "--out", whole, cache=cache)
    rng = np.random.default_rng(0)
    reached = [0]
    for _ in range(KILLS):
        with subprocess.Popen(
            command_line("fit", *options(settings), "--out", broken),
            env=environment(cache),
            stderr=subprocess.DEVNULL,
        ) as process:
            wait_for_progress(broken, reached[-1], process)
            time.sleep(rng.uniform(0, 0.3))
            process.send_signal(signal.SIGKILL)
        reached.append(last_step(broken))
    assert reached[-1] > reached[0]
    fivo_command("fit", *options(settings), "--out", broken, cache=cache)
    assert_same_run(RunDirectory(broken), RunDirectory(whole))


def wait_for_progress(directory: Path, step: int, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 120
    while last_step(directory) <= step and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def last_step(directory: Path) -> int:
    return max((row["step"] for row in RunDirectory(directory).metrics()), default=0)


class PowerCut(BaseException):
    """Nothing may handle it."""


@pytest.mark.parametrize(
    "name", ["latest.safetensors", "latest-previous.safetensors", "best.safetensors", "metrics.jsonl"]
)
def test_cut_before_a_file_is_replaced_or_appended(tmp_path, music, fivo_run, monkeypatch, name):
    """At the second validation: after the line of metrics, after `latest`, and before both."""
    real_replace, real_append = os.replace, RunDirectory.append_metrics
    seen = []

    def replace(source, target):
        seen.append(Path(target).name)
        if Path(target).name == name and seen.count(name) == 2 and name != "metrics.jsonl":
            raise PowerCut
        real_replace(source, target)

    def append(run, row):
        if name == "metrics.jsonl" and row["step"] == 80:
            with run.metrics_path.open("a") as file:
                file.write('{"step": 80, "bou')
            raise PowerCut
        real_append(run, row)

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "replace", replace)
        patch.setattr(RunDirectory, "append_metrics", append)
        with pytest.raises(PowerCut):
            train_tiny(tmp_path, music)
    train_tiny(tmp_path, music)
    assert_same_run(RunDirectory(tmp_path), fivo_run.directory)


def test_a_full_disk_loses_nothing(tmp_path, music, fivo_run, monkeypatch):
    """The second checkpoint does not fit; after there is room again the run goes on."""
    real = os.fsync
    written = []

    def full(descriptor):
        written.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        if sum(".latest." in path for path in written) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", full)
        with pytest.raises(InputError) as stop:
            train_tiny(tmp_path, music)
    assert_one_sentence(stop.value, "latest.safetensors", "No space left on device", "free some space")
    session = Session(tiny_plan(music), RunDirectory(tmp_path))
    session.restore()
    assert session.progress.step == 40
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".part")]
    train_tiny(tmp_path, music)
    assert_same_run(RunDirectory(tmp_path), fivo_run.directory)


def test_metrics_that_do_not_fit_on_the_disk(tmp_path):
    run = RunDirectory(tmp_path)
    run.metrics_path.symlink_to("/dev/full")
    with pytest.raises(InputError) as stop:
        run.append_metrics({"step": 1})
    assert_one_sentence(stop.value, "metrics.jsonl", "No space left on device")


def test_progress_survives_its_checkpoint_exactly(tmp_path, music):
    session = Session(tiny_plan(music), RunDirectory(tmp_path))
    for progress in (Progress(3, 0, None, 0.1 + 0.2, 4), Progress(7, 7, -np.pi * 1e-300, 1e300, 0)):
        session.progress = progress
        session.save()
        session.progress = Progress()
        session.restore()
        assert session.progress == progress
        header = json.loads(session.run.latest.read_bytes()[8:].split(b"\x00")[0].rpartition(b"}")[0] + b"}")
        json.loads(header["__metadata__"]["fivo"], parse_constant=pytest.fail)


def test_a_finished_run_is_left_as_it_is(fivo_run, music):
    before = {path: path.read_bytes() for path in fivo_run.directory.path.rglob("*") if path.is_file()}
    result = train_tiny(fivo_run.directory.path, music)
    assert result == fivo_run.directory.result()
    assert {path: path.read_bytes() for path in fivo_run.directory.path.rglob("*") if path.is_file()} == before


def test_cut_at_any_operation_on_a_file(tmp_path, music, fivo_run, monkeypatch):
    """Four of them; FIVO_TEST_CUTS in the environment says how many instead, all if it is large."""
    names = ("replace", "fsync", "unlink")
    real = {name: getattr(os, name) for name in names}
    done, last = 0, 10**9

    def counted(name):
        def operation(*arguments, **options):
            nonlocal done
            done += 1
            if done > last:
                raise PowerCut  # also of what would clean up
            return real[name](*arguments, **options)

        return operation

    for name in names:
        monkeypatch.setattr(os, name, counted(name))
    train_tiny(tmp_path / "counted", music)
    total = done
    for cut in np.unique(np.linspace(0, total - 1, min(CUTS, total)).astype(int)).tolist():
        done, last, directory = 0, cut, RunDirectory(tmp_path / f"cut{cut}")
        with pytest.raises(PowerCut):
            train_tiny(directory.path, music)
        last = 10**9
        train_tiny(directory.path, music)
        assert_same_run(directory, fivo_run.directory)
        assert all(status.status == "good" for status in check_run(directory.path))
