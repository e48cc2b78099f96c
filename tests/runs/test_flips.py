"""One flipped bit anywhere in a finished run: every command says so, or says what it said before."""

import hashlib
import os

import numpy as np
import pytest

from fivo import open_run
from fivo._run import prepare
from fivo.errors import InputError
from fivo.experiments.selection import commit_of, result_of, scores_of
from fivo.report import read_sources
from fivo.runs import Progress, check_run
from fivo.training import RunDirectory, train
from fivo.training.session import Session
from tests.cli.commands import run as command
from tests.music import SETTINGS, options
from tests.runs.finished import RECORDS, complete, copied
from tests.sentences import assert_one_sentence
from tests.training.runs import arrays

FLIPS = int(os.environ.get("FIVO_TEST_FLIPS", "60"))
UNREAD = {"checkpoints/latest-previous.safetensors", "evaluation.json", "diagnosis/diagnosis.json", "sample.npz"}
"""What training does not read, and leaves as it is."""


@pytest.fixture(scope="module")
def settings(music_file):
    return {"dataset": str(music_file), **SETTINGS}


@pytest.fixture(scope="module")
def original(settings, music, tmp_path_factory):
    path = tmp_path_factory.mktemp("original") / "run"
    train(prepare(settings=settings), path)
    complete(path, music)
    return RunDirectory(path)


def files_of(run):
    """What is not empty; the plots of a diagnosis, which nothing reads, are not among them."""
    return sorted(path for path in run.path.rglob("*") if path.is_file() and path.stat().st_size)


def digest(arrays):
    return {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in arrays.items()}


class Readers:
    """What each command learns from a run's directory; everything that it prints is a function of that."""

    def __init__(self, run, plan, music):
        self.run, self.music = run, music
        self.session = Session(plan, run)

    def evaluate(self):
        """Also `diagnose` and `sample`."""
        opened = open_run(self.run.path, dataset=self.music)
        return opened.settings, opened.step, digest(opened.directory.read_best()[0])

    def report(self):
        (files,) = read_sources([self.run.path]).runs
        excerpt = {name: roll.tolist() for name, roll in (files.excerpt or {}).items()}
        return files.config, files.metrics, files.result, files.provenance, excerpt, files.steps_per_quarter

    def check(self):
        found = check_run(self.run.path)
        problems = [status.problem for status in found if status.problem is not None]
        if problems:
            raise InputError(problems[0])
        return found

    def train(self):
        self.run.check(self.session.plan.settings, self.music.fingerprint, override=False)
        self.session.progress = Progress()
        self.session.restore()
        if not self.session.best_is_kept():
            raise InputError("it is made again.")
        latest = self.run.read_latest()
        return self.session.progress, digest(latest.arrays), self.run.metrics(), self.session.progress.best_step

    def sweep(self):
        """What is damaged counts as not done, and is done again."""
        known = result_of(self.run.path), commit_of(self.run.path), scores_of(self.run.path).get("test")
        if None in known:
            raise InputError("it is made again.")
        return known


COMMANDS = ("evaluate", "report", "check", "train", "sweep")


def test_no_flip_is_silent(original, settings, music, tmp_path, caplog):
    """Sixty; FIVO_TEST_FLIPS in the environment says how many instead."""
    run = copied(original.path, tmp_path / "run")
    readers = Readers(run, prepare(settings=settings), music)
    before = {name: getattr(readers, name)() for name in COMMANDS}
    assert not caplog.records
    rng = np.random.default_rng(0)
    files = files_of(run)
    assert len(files) == 10
    noticed = dict.fromkeys(COMMANDS, 0)
    for _ in range(FLIPS):
        path = files[rng.integers(len(files))]
        content = path.read_bytes()
        place, bit = int(rng.integers(len(content))), int(rng.integers(8))
        flipped = bytearray(content)
        flipped[place] ^= 1 << bit
        path.write_bytes(flipped)
        for name in COMMANDS:
            where = f"{name} after bit {bit} of byte {place} of {path.name}"
            caplog.clear()
            try:
                found = getattr(readers, name)()
            except InputError as refusal:
                assert_one_sentence(refusal)
                noticed[name] += 1
                continue
            if caplog.records:
                assert_one_sentence(caplog.records[0].getMessage(), path.name)
                noticed[name] += 1
                continue
            assert found == before[name], where
        path.write_bytes(content)
    # Bits that change nothing, such as the case of an exponent's letter, are few.
    assert noticed["check"] > 0.9 * FLIPS
    print(f"{FLIPS} flips, noticed by {noticed}, silent 0")


@pytest.mark.parametrize("name", RECORDS if FLIPS >= 1000 else ["checkpoints/best.safetensors", "metrics.jsonl"])
def test_whole_commands(original, settings, tmp_path, capsys, caplog, name):
    """With a bit of each file flipped, where FIVO_TEST_FLIPS is at least 1000."""
    run = copied(original.path, tmp_path / "run")
    commands = {
        "evaluate": ("evaluate", run.path, "--particles", 2, "--repeats", 1, "--json"),
        "report": ("report", run.path, "--out", tmp_path / "page.html"),
        "check": ("check", run.path),
        "train": ("fit", *options(settings), "--out", run.path),
    }
    before = {word: command(capsys, *arguments) for word, arguments in commands.items()}
    assert {outcome.code for outcome in before.values()} == {0}
    path = run.path / name
    flipped = bytearray(path.read_bytes())
    flipped[len(flipped) // 3] ^= 16
    path.write_bytes(flipped)
    for word, arguments in commands.items():
        caplog.clear()
        after = command(capsys, *arguments)
        said = after.err + "".join(record.getMessage() for record in caplog.records)
        if after.code == 0:
            assert after.out == before[word].out or path.name in said
        else:
            assert (after.code, after.out.count("Traceback")) == (2, 0)
            assert_one_sentence(after.err.strip().splitlines()[-1], path.name)
    if after.code == 0:  # training was the last, and has repaired what it could
        lost = len(original.metrics()) - len(run.metrics())
        assert lost == (name == "metrics.jsonl")
        assert arrays(run) == arrays(original)
        assert command(capsys, "check", run.path).code == (2 if name in UNREAD else 0)
