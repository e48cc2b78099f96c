"""One step: micro-batches add up to the whole batch, metrics are averages, shapes compile once."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import optax
import pytest

from fivo.batch import Batch
from fivo.bounds import ELBO, BoundInfo, BoundResult
from fivo.models import VRNN, BernoulliEmission, SequenceModel
from fivo.settings import Adam
from fivo.training import Trainer, adam
from fivo.training.step import summarise

LENGTHS = (3, 4, 5, 6)


class Level(SequenceModel):
    """A level and noise around it."""

    persistence: jax.Array
    log_scale: jax.Array

    def initial_state(self, past):
        return jnp.zeros(1)

    def prior(self, state, past):
        return dist.Normal(self.persistence * state, 1.0)

    def emission(self, state, latent, past):
        return dist.Normal(latent, jnp.exp(self.log_scale))


class OwnNoise:
    """The ELBO with noise that belongs to a sequence, whichever batch it comes in."""

    def __call__(self, model, batch, *, key):
        keys = jax.vmap(lambda length: jax.random.fold_in(jax.random.key(7), length))(batch.lengths)
        return ELBO(1)(model, batch, key=keys)


def make_trainer(**options):
    rates = np.linspace(0.1, 0.6, 5, dtype=np.float32)
    rule = adam(Adam(learning_rate=1e-3, **options), 100)
    return Trainer(VRNN(BernoulliEmission(rates), 3, key=jax.random.key(0)), OwnNoise(), rule)


@pytest.fixture(scope="module")
def trainer():
    return make_trainer()


def batch_of(*which):
    rng = np.random.default_rng(0)
    frames = [(rng.random((length, 5)) < 0.4).astype(np.float32) for length in LENGTHS]
    return Batch.from_sequences([frames[i] for i in which], pad_to=max(LENGTHS))


def test_micro_batches_sum_to_the_gradient_of_the_whole_batch(trainer):
    key = jax.random.key(1)
    whole, whole_metrics = trainer(trainer.start(), [batch_of(0, 1, 2, 3)], key, 0)
    parts, part_metrics = trainer(trainer.start(), [batch_of(0, 1), batch_of(2, 3)], key, 0)
    # After Adam's first step, its running mean is a tenth of the gradient.
    gradients = [state.optimizers["objective"].mu for state in (whole, parts)]
    assert jax.tree.structure(gradients[0]) == jax.tree.structure(gradients[1])
    for a, b in zip(*map(jax.tree.leaves, gradients), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-7)
    assert any(np.abs(leaf).max() > 1e-3 for leaf in jax.tree.leaves(gradients[0]))
    assert list(whole_metrics) == list(part_metrics)
    for name, value in whole_metrics.items():
        np.testing.assert_allclose(part_metrics[name], value, rtol=1e-5)
    known = trainer.compilations
    trainer(parts, [batch_of(1, 3), batch_of(0, 2), batch_of(0, 1)], key, 1)
    assert trainer.compilations == known == 2


@pytest.mark.parametrize("weight_decay", [0.0, 50.0])
def test_the_step_is_adams(trainer, weight_decay):
    """With weight decay it is AdamW's."""
    trainer = make_trainer(weight_decay=weight_decay) if weight_decay else trainer
    state, _ = trainer(trainer.start(), [batch_of(0, 1, 2, 3)], jax.random.key(1), 0)
    rule = optax.adamw(1e-3, weight_decay=weight_decay)
    start = trainer.start().parameters["objective"]
    gradient = jax.tree.map(lambda mean: 10 * mean, state.optimizers["objective"].mu)
    updates, _ = rule.update(gradient, rule.init(start), start)
    expected = optax.apply_updates(start, updates)
    for a, b in zip(jax.tree.leaves(state.parameters["objective"]), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    assert trainer.model(state).output.mean == trainer.template.output.mean


def test_fixed_statistics_stay_and_everything_else_moves(trainer):
    before = trainer.start()
    after, _ = trainer(trainer.start(), [batch_of(0, 1, 2, 3)], jax.random.key(1), 0)
    model = trainer.model(after)
    assert model.output.mean == trainer.template.output.mean
    moved = jax.tree.map(lambda a, b: bool(jnp.any(a != b)), before.parameters, after.parameters)
    still = [jax.tree_util.keystr(path) for path, flag in jax.tree.leaves_with_path(moved) if not flag]
    assert still == []


def test_a_model_outlives_its_training(trainer):
    trainer(trainer.start(), [batch_of(0, 1, 2, 3)], jax.random.key(1), 0)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(trainer.template))


def test_metrics_are_averages_over_time_then_over_sequences():
    ess = jnp.array([[2.0, 4.0, 9.0], [1.0, 9.0, 9.0]])
    resampled = jnp.array([[True, False, True], [False, True, True]])
    info = BoundInfo(log_increments=ess, ess=ess, resampled=resampled, kl=10 * ess)
    batch = Batch(jnp.zeros((2, 3, 1)), jnp.array([2, 1], jnp.int32))
    metrics = summarise(BoundResult(jnp.array([-4.0, -1.0]), info), batch)
    assert metrics["bound"] == pytest.approx((-2 - 1) / 2)
    assert metrics["ess"] == pytest.approx((3 + 1) / 2)
    assert metrics["kl"] == pytest.approx((30 + 10) / 2)
    assert metrics["resampling_rate"] == pytest.approx((0.5 + 0) / 2)


def test_weakly_typed_parameters_compile_once():
    model = Level(jnp.asarray(0.5), jnp.asarray(0.0))  # as users write them: weak types
    trainer = Trainer(model, ELBO(2), adam(Adam(), 3))
    state = trainer.start()
    batch = Batch.from_sequences([np.ones((3, 1), np.float32)])
    for step in range(3):
        state, _ = trainer(state, [batch], jax.random.key(step), step)
    assert trainer.compilations == 1
