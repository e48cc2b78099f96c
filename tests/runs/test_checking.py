"""`check_run` and `fivo check`: what is good, what is damaged or missing, and how it is said."""

import json
import shutil

import msgspec
import pytest

from fivo.errors import InputError
from fivo.runs import Best, Progress, Result, RunDirectory, check_run
from tests.cli.commands import run as command
from tests.runs.finished import RECORDS, complete, copied
from tests.sentences import assert_one_sentence


@pytest.fixture(scope="module")
def whole(fivo_run, music, tmp_path_factory):
    run = copied(fivo_run.directory.path, tmp_path_factory.mktemp("whole") / "run")
    complete(run.path, music)
    return run


@pytest.fixture
def run(whole, tmp_path):
    return copied(whole.path, tmp_path / "run")


def statuses(run):
    return {status.file: status.status for status in check_run(run.path)}


def problem(run, name):
    (found,) = [status for status in check_run(run.path) if status.problem is not None]
    assert found.file == name
    return found.problem


def test_a_whole_run_is_good(run):
    (run.path / "diagnosis" / "lineage.svg").write_text("<svg/>")
    assert statuses(run) == dict.fromkeys(RECORDS, "good") | {"diagnosis/lineage.svg": "unchecked"}


@pytest.mark.parametrize("name", RECORDS)
def test_a_flipped_bit_is_found(run, name):
    path = run.path / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert_one_sentence(problem(run, name), path.name)


@pytest.mark.parametrize("name", RECORDS)
def test_a_lost_file_is_missed(run, name):
    (run.path / name).unlink()
    optional = {"checkpoints/latest-previous.safetensors", "evaluation.json", "diagnosis/diagnosis.json", "sample.npz"}
    if name in optional | {"result.json"}:
        assert set(statuses(run).values()) == {"good"}  # as if it had never been made
    else:
        assert statuses(run)[name] == "missing"
        assert_one_sentence(problem(run, name), name.rpartition("/")[2], "lost")


def test_files_that_do_not_fit_together(run):
    result = run.result()
    run.write(msgspec.structs.replace(result, steps=160))
    said = [status.problem for status in check_run(run.path) if status.problem]
    assert_one_sentence(said[0], "metrics.jsonl", "step 120 of 160")
    assert_one_sentence(said[1], "result.json", "160 steps", "120")
    run.write(result)
    arrays, best = run.read_best()
    run.write_best(arrays, Best(40, best.validation))
    assert_one_sentence(problem(run, "checkpoints/best.safetensors"), "of step 40", "fivo fit")


@pytest.mark.parametrize("name", RECORDS[1:2] + RECORDS[3:8])
def test_files_of_another_run_are_found(run, whole, tmp_path, name):
    """With the same content."""
    other = RunDirectory(tmp_path / "other")
    latest, (arrays, best) = whole.read_latest(), whole.read_best()
    for record in (whole.provenance(), whole.result(), whole.evaluations()):
        other.write(record)
    for _ in range(2):
        other.write_latest(latest.arrays, latest.progress)
    other.write_best(arrays, best)
    shutil.copy(other.path / name, run.path / name)
    assert_one_sentence(problem(run, name), "another run")


def test_a_run_that_has_only_begun(run):
    for name in RECORDS[2:]:
        (run.path / name).unlink()
    assert set(statuses(run).values()) == {"good"}


def test_a_run_that_was_killed_before_its_best_step_was_written(run):
    """After its first validation, and after a later one."""
    latest, (arrays, _) = run.read_latest(), run.read_best()
    (run.path / Result.FILE).unlink()
    run.write_latest(latest.arrays, Progress(120, 120, -1.0))
    run.write_best(arrays, Best(80, -2.0))
    assert statuses(run)["checkpoints/best.safetensors"] == "good"
    run.best.unlink()
    assert "missing" not in statuses(run).values()


def test_no_run(tmp_path):
    with pytest.raises(InputError) as refused:
        check_run(tmp_path)
    assert_one_sentence(refused.value, "not a run directory")


def test_the_command(run, capsys):
    good = command(capsys, "check", run.path)
    assert (good.code, good.err) == (0, "")
    assert good.out.count("good") == len(RECORDS)
    (run.path / Result.FILE).write_text("{")
    run.best.unlink()
    bad = command(capsys, "check", run.path)
    assert bad.code == 2
    assert bad.out.count("good") == len(RECORDS) - 2
    assert "damaged" in bad.out
    assert "missing" in bad.out
    assert_one_sentence(bad.err.strip(), "2 of the 10 files", "best.safetensors", "result.json", "fivo fit")
    told = command(capsys, "check", run.path, "--json")
    assert told.code == 2
    content = json.loads(told.out)
    assert not content["good"]
    assert {status["file"] for status in content["files"] if status["status"] != "good"} == {
        "checkpoints/best.safetensors", "result.json"
    }  # fmt: skip
    assert json.loads(command(capsys, "check", run.path, "--json").out)["files"][0] == {
        "file": "config.toml", "status": "good", "problem": None
    }  # fmt: skip
    nowhere = command(capsys, "check", run.path / "nowhere")
    assert nowhere.code == 2
    assert_one_sentence(nowhere.err.strip(), "nowhere", "fivo fit")
