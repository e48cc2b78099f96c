"""`fivo.fit` itself: warm starts, runs that are not kept, history, callbacks, double precision, and what it says."""

import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fivo
from fivo import open_run
from fivo._run import prepare
from fivo.bounds import FIVO
from fivo.errors import InputError
from fivo.training import RunDirectory
from tests.fitting.own import Pendulum, tiny_waves
from tests.music import SETTINGS
from tests.sentences import assert_one_sentence
from tests.training.runs import assert_same_run

FEW = {"bound": FIVO(2), "steps": 20, "batch_size": 2, "validate_every": 10, "log_every": 5, "learning_rate": 0.05}


def same(one: object, other: object) -> bool:
    return jax.tree.all(jax.tree.map(lambda a, b: bool(jnp.all(a == b)), one, other))


def test_a_name_and_settings_reach_the_same_function(fivo_run, music, tmp_path):
    """Also without `out`."""
    run = fivo.fit("vrnn", music, bound="fivo", progress=False, **SETTINGS)
    assert same(run.model, fivo_run.model)
    assert run.settings == fivo_run.settings


def test_a_warm_start_is_the_other_runs_best_model(fivo_run, music, tmp_path, monkeypatch):
    monkeypatch.chdir(fivo_run.directory.path.parent)
    settings = {**SETTINGS, "steps": 1, "seed": 5, "init_from": fivo_run.directory.path.name}
    cold = prepare(data=music, settings={**settings, "init_from": ""})
    warm = prepare(data=music, settings=settings)
    assert same(warm.model, fivo_run.model)
    assert not same(cold.model, fivo_run.model)
    run = fivo.fit("vrnn", music, out=tmp_path / "run", progress=False, **settings)
    monkeypatch.chdir(tmp_path)  # what a run started from is found again from anywhere
    again = fivo.fit(
        "vrnn", music, out=tmp_path / "run", progress=False, **settings | {"init_from": fivo_run.directory.path}
    )
    assert again.result == run.result


def test_a_warm_start_of_an_own_model(waves, tmp_path):
    first = fivo.fit(Pendulum(), waves, out=tmp_path / "first", progress=False, average=0.5, **FEW)
    warm = prepare(Pendulum(), waves, settings={"init_from": str(tmp_path / "first")})
    assert same(warm.model, first.model)
    second = fivo.fit(Pendulum(), waves, out=tmp_path / "second", init_from=tmp_path / "first", progress=False, **FEW)
    assert second.history["bound"][0] > first.history["bound"][0]


def test_a_run_that_is_not_kept_is_removed_with_its_object(waves):
    run = fivo.fit(Pendulum(), waves, progress=False, **FEW)
    place = run.directory.path
    assert place.is_dir()
    assert np.isfinite(run.evaluate(particles=2, repeats=1).reported.nats_per_step)
    assert run.result.steps == 20
    del run
    gc.collect()
    assert not place.exists()


def test_the_history_is_a_table(waves):
    history = fivo.fit(Pendulum(), waves, progress=False, **FEW).history
    assert len(history) == 4
    assert [row["step"] for row in history] == [5, 10, 15, 20] == history["step"].tolist()
    assert np.isnan(history["validation"]).tolist() == [True, False, True, False]
    assert history[-1]["validation"] == history["validation"][-1]
    assert {"step", "bound", "validation", "gradient_norm", "ess"} <= set(history.columns)
    assert "4 lines" in repr(history)
    assert "bound" in repr(history)
    with pytest.raises(InputError) as refused:
        history["bond"]
    assert_one_sentence(refused.value, "'bond'", "bound")


def test_a_callback_sees_every_line_and_ends_training(waves, tmp_path):
    events = []

    def enough(event):
        events.append((event.step, event.metrics["bound"], float(event.model.frequency)))
        return event.step == 15

    run = fivo.fit(Pendulum(), waves, out=tmp_path, callbacks=[enough], progress=False, **FEW)
    assert [step for step, *_ in events] == [5, 10, 15]
    assert len({frequency for *_, frequency in events}) == 3
    assert [bound for _, bound, _ in events] == run.history["bound"].tolist()
    assert (run.result.steps, run.result.stopped_early) == (15, True)
    # What it ended is done, with it or without it, even if the best checkpoint has to be made anew.
    for callbacks in ([enough], []):
        again = fivo.fit(Pendulum(), waves, out=tmp_path, callbacks=callbacks, progress=False, **FEW)
        assert again.result == run.result
    assert len(events) == 3
    best = again.directory.best.read_bytes()
    again.directory.best.unlink()
    mended = fivo.fit(Pendulum(), waves, out=tmp_path, progress=False, **FEW)
    assert mended.result.steps == 15
    assert mended.directory.best.read_bytes() == best
    # With more steps the run goes on, as if the callback had never been there.
    more = {**FEW, "steps": FEW["steps"] + 5}
    fivo.fit(Pendulum(), waves, out=tmp_path, progress=False, **more)
    whole = fivo.fit(Pendulum(), waves, out=tmp_path.with_name("whole"), progress=False, **more)
    assert_same_run(RunDirectory(tmp_path), whole.directory)


def test_a_callback_that_ends_it_before_the_first_validation_leaves_a_model(waves):
    run = fivo.fit(Pendulum(), waves, callbacks=[lambda event: True], progress=False, **FEW)
    assert (run.result.steps, run.step) == (5, 5)
    assert np.isfinite(run.result.best_validation)


def test_double_precision(x64, tmp_path):
    """Every array of a run, before and after it was interrupted."""
    waves = tiny_waves()

    def fit(out, **more):
        return fivo.fit(Pendulum(), waves, out=out, progress=False, average=0.9, **FEW, **more)

    whole = fit(tmp_path / "whole")

    def interrupt(event):
        if event.step == 15:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path / "broken", callbacks=[interrupt])
    fit(tmp_path / "broken")
    assert_same_run(RunDirectory(tmp_path / "broken"), whole.directory)
    assert {leaf.dtype for leaf in jax.tree.leaves(whole.model)} == {jnp.dtype(jnp.float64)}
    arrays = whole.directory.read_latest().arrays
    assert {array.dtype for name, array in arrays.items() if "count" not in name} == {np.dtype(np.float64)}
    opened = open_run(tmp_path / "whole", model=Pendulum(), dataset=waves)
    key = jax.random.key(0)
    batch = fivo.Batch.from_sequences([np.asarray(x, np.float64) for x in waves.splits["test"]])
    by_hand = FIVO(64)(opened.model, batch, key=key).log_evidence
    assert by_hand.dtype == jnp.float64
    assert np.isfinite(opened.evaluate(particles=4, repeats=1).reported.nats_per_step)
    assert whole.history["bound"][-1] > whole.history["bound"][0]


def test_it_says_that_it_compiles_and_how_far_it_is(waves, capsys):
    fivo.fit(Pendulum(), waves, **FEW)
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert lines[0] == "training: compiling a training step"
    assert "training: compiling validation" in lines
    assert lines[-1].startswith("training 20/20")
    assert "validation" in lines[-1]


def test_it_is_silent_when_told_so(waves, capsys):
    fivo.fit(Pendulum(), waves, progress=False, **FEW)
    assert capsys.readouterr() == ("", "")
