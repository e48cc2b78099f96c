"""Losses of twists: density-ratio estimation and temporal differences against exact lookaheads; and in runs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

import fivo
from fivo.models import DriftDiffusion, DriftTwist, ExactTwist, Twisted
from fivo.training.twists import density_ratio_loss, simulated_pairs, temporal_difference_loss
from tests.helpers import hidden_markov, one_sequence, repeated

TIME, DRIFT, PAIRS = 3, 0.7, 20_000
TOLERANCE = 0.05
"""Of the estimated log-ratio, root mean square over simulated pairs: 20,000 of them give parameters standard errors of
about 0.03."""


@pytest.mark.usefixtures("x64")
def test_the_optimum_of_density_ratio_estimation_is_the_exact_log_ratio():
    model = Twisted(DriftDiffusion(TIME, jnp.asarray(DRIFT, float)), DriftTwist(TIME, float))
    batch = model.batch(jnp.zeros(PAIRS))
    data = simulated_pairs(model, batch, key=jax.random.key(0))
    flat, unravel = jax.flatten_util.ravel_pytree(model.twisting)

    @jax.jit
    def loss(parameters):
        twisted = eqx.tree_at(lambda m: m.twisting, model, unravel(parameters))
        return jax.value_and_grad(lambda m: density_ratio_loss(m, data, key=jax.random.key(1)))(twisted)

    def value_and_slope(parameters):
        value, slope = loss(jnp.asarray(parameters))
        return float(value), np.asarray(jax.flatten_util.ravel_pytree(slope.twisting)[0])

    found = unravel(jnp.asarray(minimize(value_and_slope, np.asarray(flat), jac=True, method="BFGS").x))
    x, z = data.batch.observations[:, -1, 0], data.own.latents[..., 0]
    for t in range(TIME - 1):
        left = TIME - t
        exact = _log_normal(x, z[:, t] + left * DRIFT, left) - _log_normal(x, (TIME + 1) * DRIFT, TIME + 1)
        got = _log_normal(x, z[:, t] + found.shift[t], jnp.exp(found.log_variance[t])) - _log_normal(
            x, found.marginal_mean[t], jnp.exp(found.log_marginal_variance[t])
        )
        assert float(jnp.sqrt(jnp.mean((got - exact) ** 2))) < TOLERANCE, t
        assert float(jnp.std(exact)) > 4 * TOLERANCE


def _log_normal(x, mean, variance):
    return -0.5 * ((x - mean) ** 2 / variance + jnp.log(2 * jnp.pi * variance))


@pytest.mark.usefixtures("x64")
def test_own_and_other_particles_are_told_apart_by_what_they_made():
    """The loss of the exact ratio is below that of guessing, and pairs taken the wrong way round are worse."""
    model = Twisted(DriftDiffusion(TIME, jnp.asarray(DRIFT, float)), ExactRatio())
    data = simulated_pairs(model, model.batch(jnp.zeros(2_000)), key=jax.random.key(0))
    right = float(density_ratio_loss(model, data, key=jax.random.key(0)))
    wrong = float(density_ratio_loss(model, data._replace(own=data.other, other=data.own), key=jax.random.key(0)))
    assert right < 2 * np.log(2) - 0.05 < 2 * np.log(2) + 0.05 < wrong


class ExactRatio(ExactTwist):
    """log p(x | z_t) - log p(x)."""

    def __call__(self, model, state, latent, future):
        return super().__call__(model, state, latent, future) - _log_normal(
            future.x[0], (TIME + 1) * model.drift, TIME + 1.0
        )


@pytest.mark.usefixtures("x64")
def test_the_exact_lookahead_leaves_no_temporal_difference():
    """For a hidden Markov model: with many draws the target is the recursion itself."""
    model = Twisted(hidden_markov(), ExactTwist())
    data = simulated_pairs(model, repeated(one_sequence(model, 4), 20), key=jax.random.key(0))
    loss = jax.jit(lambda m, d: temporal_difference_loss(m, d, key=jax.random.key(1), num_draws=4_000))
    exact = float(loss(model, data))
    assert exact < 1e-3, "the square of an error of about 0.5 / sqrt(4,000)"
    assert float(loss(Twisted(hidden_markov(), Tilted()), data)) > 10 * exact


class Tilted(ExactTwist):
    """Not the lookahead."""

    def __call__(self, model, state, latent, future):
        return 0.5 * super().__call__(model, state, latent, future)


def test_a_run_trains_its_twist_by_its_own_loss(tmp_path):
    """From the settings: the twist has a loss in the metrics, the bound is scored, and the run is read again."""
    bits = (np.random.default_rng(0).random((6, 5, 3)) < 0.4).astype(np.float32)
    run = fivo.fit(
        "vrnn",
        bits,
        bound="sixo",
        twist="rnn",
        twist_training="dre",
        twist_hidden=3,
        hidden=3,
        particles=2,
        steps=2,
        validate_every=2,
        log_every=1,
        batch_size=2,
        progress=False,
        out=tmp_path / "run",
    )
    assert np.isfinite(run.history["twist_loss"]).all()
    score = run.evaluate(split="valid", particles=2, repeats=1, bounds=["fivo"])
    assert score.reported.bound == "sixo"
    assert set(score.bounds) == {"sixo", "fivo"}
    again = fivo.open_run(tmp_path / "run", dataset=run.dataset)
    assert jax.tree.structure(again.model) == jax.tree.structure(run.model)
    with pytest.raises(fivo.errors.InputError, match="must go with the bound sixo"):
        fivo.fit("vrnn", bits, twist="auxiliary", progress=False)
