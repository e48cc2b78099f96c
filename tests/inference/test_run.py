"""A run read back: the trained model, or a sentence that says what is missing."""

import shutil

import numpy as np
import pytest

import fivo
from fivo import open_run
from fivo.errors import InputError
from fivo.training import RunDirectory
from tests.music import SETTINGS, tiny_music, tiny_plan
from tests.sentences import assert_one_sentence


@pytest.fixture
def copy(fivo_run, tmp_path):
    return RunDirectory(shutil.copytree(fivo_run.directory.path, tmp_path / "run"))


def test_the_model_is_the_best_one(fivo_run, music):
    run = open_run(fivo_run.directory.path, dataset=music)
    assert run.settings == tiny_plan(music).settings
    np.testing.assert_allclose(run.model.output.mean.value, music.train_mean, rtol=1e-6)
    assert run.step == fivo_run.directory.result().best_step


def test_a_run_is_shown_in_a_few_lines(fivo_run, music):
    shown = repr(open_run(fivo_run.directory.path, dataset=music))
    assert len(shown.splitlines()) <= 6
    assert max(map(len, shown.splitlines()[1:])) <= 104
    result = fivo_run.directory.result()
    for part in (repr(str(fivo_run.directory.path)), "dataset='tiny'", "hidden=8", "particles=2", "step 120 of 120"):
        assert part in shown
    assert f"best step {result.best_step}: {result.best_validation:.4f}" in shown
    assert "resampling" not in shown  # as by default


def test_a_run_is_shown_whatever_state_it_is_in(copy, music):
    run = open_run(copy.path, dataset=music)
    copy.config_path.write_text("damaged")
    assert "config.toml" in repr(run)
    shutil.rmtree(copy.path)
    assert "not trained yet" in repr(run)


def test_a_path_is_found_again_from_anywhere(music_file, tmp_path, monkeypatch):
    monkeypatch.chdir(music_file.parent)
    fivo.fit("vrnn", "tiny.npz", out=tmp_path / "run", progress=False, **{**SETTINGS, "steps": 1})
    monkeypatch.chdir(tmp_path)
    assert open_run("run").dataset.fingerprint == tiny_music().fingerprint


def test_no_run(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError) as refused:
            open_run(path)
        assert_one_sentence(refused.value, str(path), "not a run directory")


def test_no_checkpoint_yet(copy, music):
    copy.best.unlink()
    (copy.path / "result.json").unlink()
    run = open_run(copy.path, dataset=music)
    with pytest.raises(InputError) as refused:
        _ = run.model
    assert_one_sentence(refused.value, "no validated checkpoint", "40 steps")


@pytest.mark.parametrize("keep", [0, 4, 100, -1])
def test_a_damaged_checkpoint(copy, music, keep):
    copy.best.write_bytes(copy.best.read_bytes()[:keep])
    run = open_run(copy.path, dataset=music)
    for read in (lambda: run.model, lambda: run.step):
        with pytest.raises(InputError) as refused:
            read()
        assert_one_sentence(refused.value, "best.safetensors")


def test_a_checkpoint_of_another_model(copy, music):
    settings = copy.settings()
    copy.write_settings(settings | {"model": settings["model"] | {"hidden": 9}})
    with pytest.raises(InputError) as refused:
        _ = open_run(copy.path, dataset=music).model
    assert_one_sentence(refused.value, "best.safetensors")


def test_other_data(copy):
    with pytest.raises(InputError) as refused:
        open_run(copy.path, dataset=tiny_music((6, 6)))
    assert_one_sentence(refused.value, "other data", "'tiny'")
