"""A sweep that submits its own workers to Slurm; the stand-in `sbatch` starts them on this machine's loopback."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fivo.errors import InputError
from fivo.experiments.slurm import job_script, parse_slurm, slurm_executor
from tests.cli.commands import run
from tests.experiments.sweeps import finish, logged_steps, trained, write_experiment
from tests.music import command_line, environment
from tests.sentences import assert_one_sentence

pytest.importorskip("dask_jobqueue", reason="the extra `cluster` is not installed")

SBATCH = """#!{python}
import os, pathlib, subprocess, sys
here = pathlib.Path(__file__).parent
if sys.argv[1] == "--test-only":
    if "wrong" in pathlib.Path(sys.argv[2]).read_text():
        sys.exit("sbatch: error: invalid partition specified: wrong")
    sys.exit(0)
job = subprocess.Popen(
    ["bash", "-c", pathlib.Path(sys.argv[1]).read_text()], start_new_session=True, stdin=subprocess.DEVNULL,
    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
)
with open(here / "submitted", "a") as file:
    print(job.pid, file=file)
print(f"Submitted batch job {{job.pid}}")
"""
SCANCEL = """#!{python}
import os, pathlib, signal, sys
with open(pathlib.Path(__file__).parent / "cancelled", "a") as file:
    print(sys.argv[1], file=file)
os.killpg(int(sys.argv[1]), signal.SIGKILL)
"""


@pytest.fixture
def slurm(tmp_path):
    """A folder with the two commands, to be put on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, content in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (folder / name).write_text(content.format(python=sys.executable))
        (folder / name).chmod(0o755)
    return folder


def pids(folder, name) -> list[int]:
    file = folder / name
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_job_that_ends_is_submitted_again_and_all_are_cancelled(tmp_path, music_file, cache, slurm):
    experiment = write_experiment(tmp_path / "tiny.toml", music_file, grid={"bound": ["fivo"], "learning_rate": [0.02]})
    out = tmp_path / "out"
    options = ["--slurm", "partition=cpu,time=00:10:00,interface=lo", "--workers", 1]
    env = environment(cache) | {
        "PATH": f"{slurm}{os.pathsep}{os.environ['PATH']}",
        "DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT": "1s",
    }
    process = subprocess.Popen(
        command_line("sweep", tmp_path / "tiny.toml", "--out", out, *options),
        env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 240
    while logged_steps(out) < 3 and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(pids(slurm, "submitted")[0], signal.SIGKILL)  # as at a job's time limit
    finish(process)
    assert trained(out) == {run.slug for run in experiment.runs}
    submitted = pids(slurm, "submitted")
    assert len(submitted) >= 2
    assert submitted[-1] in pids(slurm, "cancelled")
    assert not any(alive(pid) for pid in submitted)


def test_the_job_script_can_be_looked_at(capsys, tmp_path, music_file):
    write_experiment(tmp_path / "tiny.toml", music_file)
    options = ["--slurm", "partition=cpu,time=02:00:00,cpus=4,memory=8GB,gres=gpu:1", "--dry-run"]
    done = run(capsys, "sweep", tmp_path / "tiny.toml", "--out", tmp_path / "out", *options)
    assert done.code == 0
    for line in ("#SBATCH -p cpu", "#SBATCH -t 02:00:00", "#SBATCH --cpus-per-task=4", "#SBATCH --gres=gpu:1"):
        assert line in done.out.splitlines()
    assert "--nthreads 4" in done.out
    assert "6 of 6 runs are not trained yet" in done.out
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", ["cpu", "partition=", "=cpu", "cpus=none", "cpus=0", "a b=c", "x;y=1"])
def test_options_that_are_none(text):
    with pytest.raises(InputError) as stop:
        parse_slurm(text)
    assert_one_sentence(stop.value, repr(text.removeprefix("cpus=")))


def test_without_slurm_or_with_its_refusal(tmp_path, monkeypatch, slurm):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError) as stop, slurm_executor(parse_slurm("partition=cpu"), 1, tmp_path):
        pass
    assert_one_sentence(stop.value, "sbatch", "--scheduler")
    monkeypatch.setenv("PATH", str(slurm))
    with pytest.raises(InputError) as stop, slurm_executor(parse_slurm("partition=wrong"), 1, tmp_path):
        pass
    assert_one_sentence(stop.value, "invalid partition")
    assert "ADDRESS:PORT" in job_script(parse_slurm(""), tmp_path)


@pytest.mark.parametrize(
    "options",
    [["--dry-run"], ["--slurm", "time=1", "--scheduler", "tcp://127.0.0.1:9"], ["--slurm", "time=1", "--workers", "0"]],
    ids=" ".join,
)
def test_options_that_do_not_go_together(capsys, tmp_path, music_file, options):
    write_experiment(tmp_path / "tiny.toml", music_file)
    assert run(capsys, "sweep", tmp_path / "tiny.toml", "--out", tmp_path / "out", *options).code == 2
    assert not (tmp_path / "out").exists()
