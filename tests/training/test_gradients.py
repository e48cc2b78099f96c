"""Gradients in training: discrete latents learn, a moving average is part of the state, settings reach the bound."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fivo
from fivo.bounds import FIVO
from fivo.cli.compare_gradients import compare
from fivo.gradients import MovingAverage, OtherParticles, ResamplingScore, Score
from fivo.inference import evaluate
from fivo.models import DiscreteHMM, simulate
from fivo.settings import Adam, make_settings
from fivo.training import Trainer, adam
from fivo.training.plan import training_bound, validation_bound
from tests.helpers import hidden_markov, linear_gaussian
from tests.music import SETTINGS
from tests.sentences import assert_one_sentence

QUICK = SETTINGS | {"steps": 40, "validate_every": 20, "hidden": 4}


def test_a_hidden_markov_model_learns_from_scores():
    """Its exact likelihood rises; training leaves rows of logits that do not sum to one."""
    keys = jax.random.split(jax.random.key(0), 8)
    batch = fivo.Batch.from_sequences([simulate(hidden_markov(), 12, key=key).observations for key in keys])
    flat = jnp.full((3, 3), 1 / 3)
    skewed = jnp.array([[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]])
    start = DiscreteHMM(initial_probs=flat[0], transition_probs=flat, emission_probs=skewed, proposal="optimal")
    trainer = Trainer(start, FIVO(4, gradient=Score(OtherParticles())), adam(Adam(learning_rate=0.03), 60))
    state = trainer.start()
    for step, key in enumerate(jax.random.split(jax.random.key(1), 60)):
        state, _ = trainer(state, [batch], key, step)
    model = trainer.model(state)
    assert jnp.mean(model.log_evidence(batch) - start.log_evidence(batch)) > 0.05
    estimate = FIVO(500)(model, batch, key=jax.random.key(2)).log_evidence
    np.testing.assert_allclose(estimate, model.log_evidence(batch), atol=0.3)


def test_a_moving_average_is_learned_and_kept_in_the_state():
    model = linear_gaussian("optimal")
    batch = fivo.Batch.from_sequences([simulate(model, 8, key=jax.random.key(0)).observations] * 2)
    slow = adam(Adam(learning_rate=1e-4), 1)
    trainer = Trainer(model, FIVO(2, gradient=ResamplingScore(MovingAverage())), slow)
    state, _ = trainer(trainer.start(), [batch], jax.random.key(0), 0)
    learned = trainer.trained_bound(state).gradient.baseline
    assert float(learned.runs) == 1
    assert float(learned.slope) < -0.5
    assert jax.tree.leaves(state.parameters["objective"]["bound"]) == [], "no gradient reaches it"
    halves, _ = trainer(trainer.start(), [batch, batch], jax.random.key(0), 0)
    assert float(trainer.trained_bound(halves).gradient.baseline.runs) == 1, "micro-batches are one run together"
    assert jax.tree.leaves(Trainer(model, FIVO(2), slow).start().memory) == [], "other bounds have no state"


def test_categorical_latents_are_trained_by_scores(music, tmp_path):
    settings = QUICK | {"latent": "categorical", "gradient": "score", "baseline": "particles", "steps": 120}
    run = fivo.fit("vrnn", music, out=tmp_path / "run", progress=False, **settings)
    rows = run.directory.metrics()
    assert rows[-1]["bound"] > rows[0]["bound"] + 0.5
    assert np.isfinite(evaluate(run, particles=4, repeats=1).reported.nats_per_step)


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"latent": "categorical"}, "--gradient score"),
        ({"latent": "categorical", "gradient": "sticking-the-landing"}, "latent-score"),
        ({"gradient": "pathwise", "baseline": "filters"}, "resampling-score"),
        ({"bound": "iwae", "gradient": "resampling-score"}, "pathwise"),
        ({"resampling": "residual", "gradient": "resampling-score"}, "multinomial"),
    ],
)
def test_settings_that_mean_nothing(settings, part):
    with pytest.raises(fivo.InputError) as caught:
        training_bound(make_settings(settings))
    assert_one_sentence(str(caught.value), part)


def test_settings_reach_the_bound():
    config = make_settings({"gradient": "resampling-score", "baseline": "particles", "resampling": "stratified"})
    assert training_bound(config).gradient == ResamplingScore(OtherParticles())
    assert validation_bound(config) == FIVO(4, resampling="stratified")


def test_what_is_no_bound_is_neither_validated_nor_evaluated_with(fivo_run):
    assert validation_bound(make_settings({"resampling": "relaxed"})).filter.resampling == "multinomial"
    assert validation_bound(make_settings({"resampling": "soft"})).filter.resampling == "soft"
    relaxed = replace(fivo_run, settings=make_settings({"resampling": "relaxed"}, fivo_run.settings))
    with pytest.raises(fivo.InputError) as caught:
        evaluate(relaxed, particles=2, repeats=1)
    assert_one_sentence(str(caught.value), "no lower bound", "--resampling multinomial")
    kept = evaluate(relaxed, particles=2, repeats=1, resampling="multinomial", bounds=["fivo"])
    own = evaluate(fivo_run, particles=2, repeats=1, bounds=["fivo"])
    assert kept.bounds == own.bounds


def test_training_curves_of_several_gradients(music, tmp_path, capsys):
    """Of `fivo compare-gradients`, everything but the chorales and the time they take."""
    gradients = ["pathwise", "resampling-score:moving-average"]
    comparison = compare(music, tmp_path, gradients, {**QUICK, "validation_particles": 8})
    assert list(comparison["gradients"]) == gradients
    assert comparison["best"] in gradients
    assert "best:" in capsys.readouterr().out
    written = {path.name for path in tmp_path.iterdir() if path.is_file()}
    assert written == {"curves.svg", "curves.png", "comparison.json"}
