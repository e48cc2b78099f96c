"""Benchmarks of later papers: their data, their measures where the answer is known, and the jobs of a sweep on them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fivo._run import imported, made_dataset, names_object, prepare_named
from fivo.batch import Batch
from fivo.benchmarks import drift, forex, neuron
from fivo.bounds import FIVO
from fivo.errors import InputError
from fivo.experiments import worker
from fivo.experiments.experiment import read_experiment
from fivo.models import DriftDiffusion, ExactTwist, HodgkinHuxley, QuadratureTwist, Twisted
from fivo.runs import Evaluations
from fivo.training import RunDirectory
from tests.sentences import assert_one_sentence

KEY = jax.random.key(0)


def batch_of(split) -> Batch:
    masks = None if split.masks is None else list(split.masks)
    return Batch.from_sequences(list(split), mask=masks)


def test_the_measures_of_the_drift_diffusion_are_zero_for_the_best_model():
    """With the exact lookahead and the smoothing proposal SIXO is the evidence, series by series; FIVO is not."""
    data = drift.data()
    batch = jax.tree.map(lambda leaf: leaf[:50], batch_of(data.split("train")))
    best = Twisted(DriftDiffusion(drift.NUM_STEPS, drift.BEST_DRIFT, proposal="smoothing"), ExactTwist())
    np.testing.assert_allclose(drift.sixo_gap(best, batch, key=KEY), 0, atol=1e-4)
    np.testing.assert_allclose(drift.drift_error(best, batch, key=KEY), 0, atol=1e-6)
    assert np.abs(drift.fivo_gap(best, batch, key=KEY)).max() > 1e-3
    np.testing.assert_allclose(drift.drift_error(drift.model(data), batch, key=KEY), drift.BEST_DRIFT, rtol=1e-6)


def rates(folder, months: int):
    file = folder / forex.FILE
    file.parent.mkdir(exist_ok=True)
    walk = np.exp(0.02 * np.random.default_rng(0).standard_normal((months, 3)).cumsum(axis=0))
    np.savetxt(file, walk, delimiter="\t", header="A\tB\tC", comments="")
    return np.diff(np.log(walk), axis=0)


def test_the_currencies_are_split_as_published_and_filtered_without_the_proposal(tmp_path, monkeypatch):
    returns = rates(tmp_path, 174)
    data = forex.data(tmp_path)
    np.testing.assert_allclose(data.split("train")[0], returns[:119], atol=1e-6)
    np.testing.assert_allclose(data.split("test")[0], returns[118:], atol=1e-6)
    monkeypatch.setattr(forex, "PARTICLES", 8)
    model = Twisted(forex.model(data), QuadratureTwist())
    for measure, first in ((forex.bootstrap, 119), (forex.bootstrap_of_55, 118)):
        found = measure(model, batch_of(data.split("test")), key=KEY)
        batch = Batch.from_sequences([returns[first:].astype(np.float32)])
        np.testing.assert_allclose(found, FIVO(8)(model.bare, batch, key=KEY).log_evidence, rtol=1e-6)
        assert not np.allclose(found, FIVO(8)(model, batch, key=KEY).log_evidence, rtol=1e-6)
    for months, part in ((100, "174 months"), (None, "--data-dir")):
        place = tmp_path / "other"
        place.mkdir(exist_ok=True)
        _ = rates(place, months) if months else (place / forex.FILE).unlink()
        with pytest.raises(InputError) as refused:
            forex.data(place)
        assert_one_sentence(refused.value, part)


def test_a_neuron_is_seen_every_fifty_steps_and_filtered_without_the_twist(monkeypatch):
    """In units of 10 mV a density is ten times as high for every observation."""
    for name, count in (("NUM_TRAIN", 2), ("NUM_VALID", 2), ("NUM_TEST", 2), ("NUM_STEPS", 101), ("PARTICLES", 4)):
        monkeypatch.setattr(neuron, name, count)
    data = neuron.data()
    batch = batch_of(data.split("test"))
    assert batch.mask is not None
    assert batch.mask[:, :, 0].sum(axis=1).tolist() == [3, 3]
    assert bool(batch.mask[:, ::50].all())
    model = neuron.model(data)
    plain = FIVO(4)(HodgkinHuxley(neuron.START), batch, key=KEY).log_evidence
    np.testing.assert_allclose(neuron.bootstrap(model, batch, key=KEY), plain + 3 * np.log(10), rtol=1e-5)
    np.testing.assert_allclose(neuron.current_error(model, batch, key=KEY), 1, rtol=1e-6)
    better = neuron.true_model(model, batch, key=KEY)
    np.testing.assert_array_equal(better, neuron.bootstrap(HodgkinHuxley(13.0), batch, key=KEY))


def test_what_is_named_as_an_object(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert names_object("fivo.benchmarks.drift:data")
    assert not any(names_object(value) for value in ("jsb", "C:\\data", "a/b:c", "x:", 3, None))
    with pytest.raises(InputError) as refused:
        made_dataset("builtins:str")
    assert_one_sentence(refused.value, "must return a fivo.data.Dataset")
    plan = prepare_named({"model": "fivo.benchmarks.drift:model", "dataset": "fivo.benchmarks.drift:data"})
    assert plan.settings.data.dataset == "fivo.benchmarks.drift:data"
    assert isinstance(plan.model, Twisted)


def test_the_jobs_of_a_sweep_train_and_measure_a_model_that_is_named_as_an_object(tmp_path, quickly_compiled):
    experiment = read_experiment("sixo-drift")
    run = experiment.runs[-1]
    assert run.flat["bound"] == "sixo"
    settings = {**run.flat, "steps": 2, "validate_every": 2, "particles": 2, "batch_size": 2}
    job = {"directory": str(tmp_path), "data_dir": None, "settings": settings, "curves": None}
    worker._train(job)
    measures = dict(experiment.document.evaluation.measures)
    assert {callable(imported(measure)) for measure in measures.values()} == {True}
    chosen = {"error of the drift": measures["error of the drift"]}
    worker._evaluate({**job, "kind": "evaluate", "splits": ["test"], "particles": 2, "repeats": 1, "measures": chosen})
    (scores,) = RunDirectory(tmp_path).read(Evaluations).splits["test"].bounds.values()
    assert jnp.isfinite(scores.nats_per_sequence)
    assert 0 < scores.nats_per_sequence < drift.BEST_DRIFT
