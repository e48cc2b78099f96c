"""A model and a bound of a user's own from the command line, by import strings."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from fivo.data import save_npz
from fivo.training import RunDirectory
from tests.cli.commands import run
from tests.fitting.killing import finish, kill_while_training
from tests.music import command_line, environment
from tests.sentences import assert_one_sentence
from tests.training.runs import assert_same_run

KILLS = int(os.environ.get("FIVO_TEST_KILLS", "1"))
"""Once by default: tests/training kills a run at more instants."""
OPTIONS = ["--steps", "200", "--batch-size", "2", "--validate-every", "20", "--log-every", "10"]
OWN = ["--model", "my_models:make_pendulum", "--bound", "my_models:two_filters"]
FAST = ["--schedule", "cosine", "--warmup", "5", "--clip", "1.0", "--learning-rate", "0.02", "--average", "0.9"]


@pytest.fixture(scope="module")
def folder(waves, tmp_path_factory) -> Path:
    """A folder with data and with a module that nobody installed."""
    place = tmp_path_factory.mktemp("mine")
    save_npz(waves, place / "waves.npz")
    shutil.copy(Path(__file__).with_name("own.py"), place / "my_models.py")
    return place


@pytest.fixture(scope="module")
def trained(folder, cache) -> Path:
    command = command_line("fit", "waves.npz", *OWN, *OPTIONS, *FAST, "--out", "whole")
    done = finish(command, environment(cache), folder)
    assert "done after 200 steps" in done.stdout
    assert done.stderr.splitlines()[0] == "training: compiling a training step"
    return folder / "whole"


def test_killed_and_resumed_to_the_bit(folder, trained, cache):
    rng = np.random.default_rng(1)
    command = command_line("fit", "waves.npz", *OWN, *OPTIONS, *FAST, "--out", "broken")
    for _ in range(KILLS):
        assert kill_while_training(command, folder / "broken", environment(cache), folder, rng) > 0
    finish(command, environment(cache), folder)
    assert_same_run(RunDirectory(folder / "broken"), RunDirectory(trained))


def test_its_settings_name_the_objects(trained):
    settings = RunDirectory(trained).config()
    assert settings.model.model_name == "my_models:make_pendulum"
    assert settings.bound.bound_name == "my_models:two_filters"
    assert settings.model.model_digest
    assert (settings.optimizer.schedule, settings.optimizer.warmup, settings.optimizer.clip) == ("cosine", 5, 1.0)


def test_it_is_evaluated_diagnosed_and_reported(capsys, monkeypatch, folder, trained):
    monkeypatch.chdir(folder)
    model = ["--model", "my_models:make_pendulum"]
    shown = run(capsys, "evaluate", "whole", *model, "--particles", 4, "--repeats", 2)
    assert shown.code == 0, shown.err
    assert "my_models:make_pendulum" in " ".join(shown.out.split())
    assert "FIVO" in shown.out
    own = run(capsys, "evaluate", "whole", *model, "--bound", "my_models:two_filters", "--repeats", 1, "--json")
    assert own.code == 0, own.err
    assert list(json.loads(own.out)["bounds"]) == ["my_models:two_filters"]
    both = run(capsys, "evaluate", "whole", *model, "--bound", "my_models:two_filters", "--bounds", "elbo")
    assert both.code == 2
    assert_one_sentence(both.err.splitlines()[-1], "--bound must come without --bounds")
    sizes = ["--particles", "2", "--sequences", 2, "--repeats", 2, "--lineage-particles", 2]
    found = run(capsys, "diagnose", "whole", *model, *sizes)
    assert found.code == 0, found.err
    assert (trained / "diagnosis" / "diagnosis.json").exists()
    page = run(capsys, "report", "whole", "--out", "page.html")
    assert page.code == 0, page.err
    assert "whole" in (folder / "page.html").read_text()
    assert run(capsys, "check", "whole").code == 0


def test_without_the_model_it_is_one_sentence(capsys, monkeypatch, folder, trained):
    """A run directory makes nothing be imported by itself."""
    monkeypatch.chdir(folder)
    for command in (["evaluate", "whole"], ["diagnose", "whole"], ["sample", "whole", "--out", "x.wav"]):
        refused = run(capsys, *command)
        assert refused.code == 2
        assert_one_sentence(refused.err.splitlines()[-1], "my_models:make_pendulum", "--model")


def test_another_model_in_the_same_place_is_refused(capsys, monkeypatch, folder, trained):
    monkeypatch.chdir(folder)
    (folder / "others.py").write_text(
        "from my_models import *\ndef make_pendulum(dataset):\n    return Pendulum(3.0)\n"
    )
    for words in (["--model", "others:make_pendulum", *OWN[2:]], [*OWN[:2], "--bound", "fivo"]):
        refused = run(capsys, "fit", "waves.npz", *words, *OPTIONS, *FAST, "--out", "whole")
        assert refused.code == 2
        assert_one_sentence(refused.err.splitlines()[-1], "whole", "--override")
