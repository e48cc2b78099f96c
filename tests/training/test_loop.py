"""A run from its start to its end: it learns, logs, validates, keeps the best, stops early, and stops at NaN."""

import dataclasses
import json
import math
import shutil

import jax.numpy as jnp
import numpy as np
import pytest

from fivo.data import Batches
from fivo.errors import InputError
from fivo.runs import Best
from fivo.settings import make_settings
from fivo.training import RunDirectory, Trainer, Watchers
from fivo.training.session import Session, micro_batches
from tests.music import SETTINGS, tiny_music, tiny_plan, train_tiny
from tests.sentences import assert_one_sentence
from tests.training.runs import arrays


def test_training_improves_the_bound(fivo_run):
    rows = fivo_run.directory.metrics()
    assert [row["step"] for row in rows] == [20, 40, 60, 80, 100, 120]
    assert rows[-1]["bound"] > rows[0]["bound"] + 2
    first, *later = [row["validation"] for row in rows if "validation" in row]
    assert max(later) > first + 0.5  # a little more or less of a nat, as the processor rounds


def test_a_line_of_metrics_says_how_things_are(fivo_run):
    for row in fivo_run.directory.metrics():
        expected = {"step", "bound", "kl", "ess", "resampling_rate", "gradient_norm", "steps_per_second", "seconds"}
        assert set(row) == expected | ({"validation"} if row["step"] % 40 == 0 else set())
        assert all(math.isfinite(value) for value in row.values())
        assert 1 <= row["ess"] <= SETTINGS["particles"]
        assert 0 <= row["resampling_rate"] <= 1
        assert row["gradient_norm"] > 0
    # Compiling took seconds; the first line's speed leaves it out.
    first, *later = [row["steps_per_second"] for row in fivo_run.directory.metrics()]
    assert first > np.median(later) / 20


def test_the_best_checkpoint_is_the_one_with_the_best_validation(fivo_run):
    rows = [row for row in fivo_run.directory.metrics() if "validation" in row]
    best = max(rows, key=lambda row: row["validation"])
    assert fivo_run.directory.read_best()[1] == Best(best["step"], best["validation"])
    result = fivo_run.directory.result()
    assert (result.best_step, result.best_validation) == (best["step"], best["validation"])
    assert fivo_run.step == best["step"]


def test_the_directory_says_everything(fivo_run, music):
    directory = fivo_run.directory
    assert directory.config() == tiny_plan(music).settings
    assert directory.provenance().dataset_fingerprint == music.fingerprint
    assert {"fivo", "jax"} <= set(directory.provenance().versions)
    assert directory.result().steps == 120
    assert not directory.result().stopped_early
    names = {path.name for path in directory.path.rglob("*") if path.is_file()}
    assert names == {
        ".lock", "config.toml", "run.json", "metrics.jsonl", "latest.safetensors", "latest-previous.safetensors",
        "best.safetensors", "result.json",
    }  # fmt: skip
    for name in ("run.json", "result.json"):
        json.loads((directory.path / name).read_text(), parse_constant=pytest.fail)


def test_one_compilation_for_each_padded_length(music, tmp_path, monkeypatch):
    monkeypatch.setattr("fivo.training.session.Trainer", Trainer)  # which counts them, and shares none
    few = {"steps": 6, "validate_every": 6, "log_every": 6}
    assert train_tiny(tmp_path / "one", music, **few).compilations == 1
    data = tiny_music((3, 3, 3, 8, 8, 8))
    changes = {"bound": "elbo", **few}
    batches = micro_batches(tiny_plan(data, **changes).settings, data)
    assert len(batches.padded_lengths) == 2
    assert train_tiny(tmp_path / "two", data, **changes).compilations == 2


def test_micro_batches_are_as_large_as_padding_allows():
    config = make_settings({**SETTINGS, "bound": "elbo", "particles": 4})
    assert micro_batches(config, tiny_music((6,) * 9)).batch_size == 8
    assert micro_batches(config, tiny_music((2, 4, 8, 16, 32, 64, 2, 4, 8, 16, 32, 64))).batch_size == 2
    assert micro_batches(config, tiny_music((6, 6, 6))).batch_size == 2
    assert micro_batches(make_settings({"bound": "fivo"}, config), tiny_music((6,) * 9)).batch_size == 2


def test_the_elbo_sees_n_times_the_sequences(elbo_run, music):
    session = Session(tiny_plan(music, bound="elbo"), elbo_run.directory)
    assert sum(batch.lengths.shape[0] for batch in session.step_batches(0)) == 4
    batches = Batches(music.lengths("train"), session.batches.batch_size, elbo_run.settings.training.seed)
    per_step = 4 // batches.batch_size
    for step in range(5):
        for batch, k in zip(session.step_batches(step), range(step * per_step, (step + 1) * per_step), strict=True):
            frames = [music.splits["train"][i] for i in batches[k].indices]
            np.testing.assert_array_equal(batch.observations, frames)


def test_a_run_trains_with_its_settings(tmp_path, music):
    plan = tiny_plan(music, learning_rate=0.25, weight_decay=0.3, warmup=5)
    rule, rate = Session(plan, RunDirectory(tmp_path)).trainer.optimizer
    assert [rate(step) for step in (0, 4, 9)] == [0.05, 0.25, 0.25]
    # Where the gradient is zero, only the decay is left.
    (changes, _) = rule.update([jnp.zeros(1)], rule.init([jnp.ones(1)]), [jnp.ones(1)], learning_rate=jnp.float32(0.5))
    np.testing.assert_allclose(changes[0], [-0.5 * 0.3], rtol=1e-6)


def test_early_stopping(tmp_path, music):
    changes = {"learning_rate": 1.0, "steps": 100, "validate_every": 5, "patience": 2}
    result = train_tiny(tmp_path, music, **changes)
    assert result.stopped_early
    assert result.steps == result.best_step + 10 < 100
    assert train_tiny(tmp_path, music, **changes) == result


def test_a_loss_that_is_not_a_number_stops_and_can_be_continued(tmp_path, music, monkeypatch):
    """The batch of step 83 is poisoned as long as the learning rate is what it was."""
    clean = Session.step_batches

    def poisoned(session, step):
        batches = clean(session, step)
        if step == 82 and session.plan.settings.optimizer.learning_rate == SETTINGS["learning_rate"]:
            nan = jnp.full_like(batches[0].observations, jnp.nan)
            return [dataclasses.replace(batches[0], observations=nan)]
        return batches

    monkeypatch.setattr(Session, "step_batches", poisoned)
    with pytest.raises(InputError) as stop:
        train_tiny(tmp_path, music)
    assert_one_sentence(stop.value, "bound", "gradient norm", "NaN", "at step 83", "at step 80", "--override")

    session = Session(tiny_plan(music), RunDirectory(tmp_path))
    session.restore()
    assert session.progress.step == 80
    assert [row["step"] for row in RunDirectory(tmp_path).metrics()] == [20, 40, 60, 80]

    with pytest.raises(InputError, match="at step 83"):
        train_tiny(tmp_path, music)
    with pytest.raises(InputError, match="--override"):
        train_tiny(tmp_path, music, learning_rate=0.003)
    assert train_tiny(tmp_path, music, learning_rate=0.003, override=True).steps == 120
    assert [row["step"] for row in RunDirectory(tmp_path).metrics()] == [20, 40, 60, 80, 100, 120]
    assert RunDirectory(tmp_path).config() == tiny_plan(music, learning_rate=0.003).settings


def test_a_validation_that_is_not_a_number_stops_too(tmp_path, music, monkeypatch):
    monkeypatch.setattr("fivo.training.session.score", lambda *args, **kwargs: np.array([np.nan, -3.0]))
    with pytest.raises(InputError) as stop:
        train_tiny(tmp_path, music)
    assert_one_sentence(stop.value, "validation bound", "at step 40", "at step 0")
    assert not RunDirectory(tmp_path).best.exists()


def test_more_steps_continue_a_run(tmp_path, music, fivo_run):
    """As if they had been asked for at once: the checkpoint does not know where the run was to end."""
    train_tiny(tmp_path, music, steps=80)
    with pytest.raises(KeyboardInterrupt):
        train_tiny(tmp_path, music, watchers=Watchers(report=interrupt))
    assert not (tmp_path / "result.json").exists()
    assert train_tiny(tmp_path, music).steps == 120
    assert arrays(RunDirectory(tmp_path)) == arrays(fivo_run.directory)
    assert RunDirectory(tmp_path).config() == tiny_plan(music).settings


def test_no_more_steps_than_a_checkpoint_has_that_was_never_validated(tmp_path, music, monkeypatch):
    monkeypatch.setattr("fivo.training.loop.CHECKPOINT_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        train_tiny(tmp_path / "run", music, watchers=Watchers(report=interrupt))
    result = train_tiny(tmp_path / "run", music, steps=20)
    whole = train_tiny(tmp_path / "whole", music, steps=20)
    assert (result.steps, result.best_step, result.best_validation) == (20, 20, whole.best_validation)
    assert arrays(RunDirectory(tmp_path / "run")) == arrays(RunDirectory(tmp_path / "whole"))


def test_a_kill_while_more_steps_begin_leaves_no_result_of_fewer(tmp_path, music, monkeypatch):
    train_tiny(tmp_path, music, steps=80)
    monkeypatch.setattr(Session, "settle", interrupt)
    with pytest.raises(KeyboardInterrupt):
        train_tiny(tmp_path, music)
    assert RunDirectory(tmp_path).config() == tiny_plan(music).settings
    assert not (tmp_path / "result.json").exists()


def test_a_run_that_is_done_keeps_the_commit_that_trained_it(tmp_path, music, monkeypatch, fivo_run):
    shutil.copytree(fivo_run.directory.path, tmp_path / "run")
    before = (tmp_path / "run" / "run.json").read_bytes()
    monkeypatch.setattr("fivo.training.run_directory.code_commit", lambda: "later")
    train_tiny(tmp_path / "run", music)
    assert (tmp_path / "run" / "run.json").read_bytes() == before


def interrupt(row):
    raise KeyboardInterrupt
