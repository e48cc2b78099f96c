"""Ctrl-C and SIGTERM at any instant: the process ends, with one true sentence, and the same command resumes exactly."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fivo.training import RunDirectory
from tests.cli.signals import SECONDS, after, assert_true_of_the_run, children, is_ours, running, send, until
from tests.experiments.sweeps import logged_steps, start_sweep, write_experiment
from tests.music import SETTINGS, command_line, environment, fivo_command, options
from tests.sentences import assert_one_sentence
from tests.training.runs import assert_same_run

INTERRUPTS = int(os.environ.get("FIVO_TEST_INTERRUPTS", "4"))

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are watched through /proc")


def settings(music_file: Path, **changes: object) -> dict[str, object]:
    frequent = {"steps": 600, "validate_every": 50, "log_every": 25, "patience": 0}
    return {"dataset": music_file, **SETTINGS, **frequent, **changes}


def test_interrupted_at_random_instants(tmp_path, music_file, cache):
    """Four times; FIVO_TEST_INTERRUPTS in the environment says how often instead.

    Every third time nothing has been compiled before, and every fourth time it is an evaluation that is interrupted.
    """
    train = ["fit", *options(settings(music_file)), "--out", tmp_path / "run"]
    started = time.monotonic()
    fivo_command(*train, cache=cache)
    longest = time.monotonic() - started
    whole = (tmp_path / "run").rename(tmp_path / "whole")
    evaluate = ["evaluate", whole, "--particles", 64, "--repeats", 20]
    rng = np.random.default_rng(0)
    tally = dict.fromkeys(("checkpoint", "no checkpoint", "evaluation", "too early", "too late"), 0)
    slowest = 0.0
    for index in range(4 * INTERRUPTS):
        if sum(tally.values()) - tally["too early"] - tally["too late"] == INTERRUPTS:
            break
        command = evaluate if index % 4 == 3 else train
        if (tmp_path / "run" / "result.json").exists():
            finished = (tmp_path / "run").rename(tmp_path / f"finished-{index}")
            assert_same_run(RunDirectory(finished), RunDirectory(whole))
        instant = rng.uniform(0, longest)
        compiled = tmp_path / f"cache-{index}" if index % 3 == 0 else cache
        ended = send(command, compiled, after(instant), signal.SIGINT)
        if ended.code == 0:
            tally["too late"] += 1
            continue
        slowest = max(slowest, ended.seconds)
        assert ended.seconds < SECONDS
        if not ended.ours:
            assert instant < 0.5, "Python itself starts within half a second"
            tally["too early"] += 1
            continue
        assert ended.code == 130, ended
        *before, said = ended.err.removesuffix("\n").split("\n")
        progress = r"[a-z ]+(: compiling| \d+/\d+)"
        assert not [line for line in before if not re.match(progress, line)], ended.err
        assert_one_sentence(said, "fivo: Interrupted")
        if command is evaluate:
            assert said == "fivo: Interrupted."
            tally["evaluation"] += 1
        else:
            assert_true_of_the_run(said, tmp_path / "run")
            tally["checkpoint" if "resume from the" in said else "no checkpoint"] += 1
    fivo_command(*train, cache=cache)
    assert_same_run(RunDirectory(tmp_path / "run"), RunDirectory(whole))
    print(f"instants in {longest:.1f} s: {tally}, slowest {slowest:.2f} s")


def test_interrupted_inside_a_long_compilation(tmp_path, music_file):
    """No Python runs in the main thread then."""
    out = tmp_path / "run"
    command = command_line("fit", *options(settings(music_file, hidden=64, particles=16)), "--out", out)
    # Compiled as it is for users, which takes longest.
    environment_ = {**os.environ, "XLA_FLAGS": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    process = subprocess.Popen(command, env=environment_, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until((out / "config.toml").exists, then=2.0)(process)
    assert not RunDirectory(out).metrics()
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, time.monotonic() - sent < SECONDS) == (130, True)
    *before, said = err.removesuffix("\n").split("\n")
    assert before == ["training: compiling a training step"]
    assert_one_sentence(said, "fivo: Interrupted", "no checkpoint")


@pytest.mark.parametrize(
    "arguments", [["data", "list"], ["--help"], ["evaluate", "nowhere"], ["fit", "--out", "x"], ["train", "--out", "x"]]
)
def test_interrupted_as_soon_as_the_package_runs(tmp_path, monkeypatch, cache, arguments):
    """Also while a heavy command is about to start itself again with other memory settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    process = subprocess.Popen(
        command_line(*arguments), env=environment(cache), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not is_ours(process):
        assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert_one_sentence(err.removesuffix("\n"), "fivo: Interrupted")
    assert ("no checkpoint" in err) == (arguments[0] in ("fit", "train"))


def test_ctrl_c_is_ignored_where_the_shell_says_so(tmp_path, music_file, cache):
    """As in the background of a script."""
    program = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command_line("data", "list")]
    process = subprocess.Popen(program, env=environment(cache), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until(lambda: is_ours(process))(process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_a_terminated_run_saves_a_checkpoint(tmp_path, music_file, cache):
    """Where it has come to, which is between two lines of metrics; tests/training goes on from there."""
    out = tmp_path / "run"
    long = settings(music_file, steps=1_000_000, validate_every=1_000_000, log_every=200)
    seen = until(lambda: RunDirectory(out).metrics(), then=0.1)
    ended = send(["fit", *options(long), "--out", out], cache, seen, signal.SIGTERM)
    assert (ended.code, ended.seconds < 5) == (143, True), ended
    said = ended.err.splitlines()[-1]
    assert_one_sentence(said, "fivo: Terminated")
    assert_true_of_the_run(said, out)
    assert RunDirectory(out).latest.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_sweep_takes_its_runs_with_it(tmp_path, music_file, cache, number):
    write_experiment(tmp_path / "tiny.toml", music_file)
    out = tmp_path / "out"
    process = start_sweep(tmp_path / "tiny.toml", out, cache, "--workers", 2)
    until(lambda: logged_steps(out) > 2)(process)
    jobs = children(process)
    assert jobs
    sent = time.monotonic()
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert time.monotonic() - sent < SECONDS
    assert process.returncode == 128 + number
    assert_one_sentence(err.splitlines()[-1], "fivo: ", "run the same command again to resume")
    assert not [job for job in jobs if running(job)]
    assert not (out / ".sweep").exists()  # by which jobs on a cluster know that the sweep has ended
