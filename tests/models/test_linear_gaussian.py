"""The Kalman filter, the smoother and the proposals against whole joint Gaussians and against dynamax."""

import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fivo
from fivo.distributions import log_prob, observation_log_prob
from fivo.models import LinearGaussian, simulate
from tests import helpers
from tests.fast import fast_jit
from tests.helpers import mean_within
from tests.models.cases import linear_gaussian
from tests.oracles.moments import DenseGaussian, log_normal

pytestmark = pytest.mark.usefixtures("x64")

FROZEN = json.loads((Path(__file__).parents[1] / "oracles" / "dynamax.json").read_text())["linear_gaussian"]


def random_model(state, dim, seed):
    rng = np.random.default_rng(seed)

    def covariance(size):
        root = rng.standard_normal((size, size + 2))
        return root @ root.T / size + 0.2 * np.eye(size)

    return LinearGaussian(
        transition_matrix=rng.standard_normal((state, state)) / np.sqrt(state),
        transition_covariance=covariance(state),
        emission_matrix=rng.standard_normal((dim, state)),
        emission_covariance=covariance(dim),
        initial_mean=rng.standard_normal(state),
        initial_covariance=covariance(state),
    )


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize(("state", "dim"), [(1, 1), (3, 2), (2, 4)])
def test_evidence_and_moments_are_those_of_the_joint_gaussian(state, dim, missing):
    model = random_model(state, dim, seed=10 * state + dim)
    rng = np.random.default_rng(0)
    xs = [rng.standard_normal((length, dim)) for length in (5, 3)]
    masks = [rng.random(x.shape) > 0.4 for x in xs] if missing else [np.ones(x.shape, bool) for x in xs]
    if missing:
        masks[0][2] = False
    batch = fivo.Batch.from_sequences([*xs, xs[1]], mask=[*masks, masks[1]] if missing else None, pad_to=6)
    batch = fivo.Batch(batch.observations, batch.lengths.at[2].set(0), batch.mask)
    log_evidence, filtered, smoothed = model.log_evidence(batch), model.filtered(batch), model.smoothed(batch)
    assert log_evidence[2] == 0
    for i, (x, mask) in enumerate(zip(xs, masks, strict=True)):
        dense = DenseGaussian(model, len(x))
        exact, means, covariances = dense.condition(x, mask)
        np.testing.assert_allclose(log_evidence[i], exact, rtol=1e-10)
        for t in range(len(x)):
            here = slice(t * state, (t + 1) * state)
            np.testing.assert_allclose(smoothed.means[i, t], means[here], rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(smoothed.covariances[i, t], covariances[here, here], rtol=1e-9, atol=1e-9)
            until_now = mask & (np.arange(len(x))[:, None] <= t)
            _, means_now, covariances_now = dense.condition(x, until_now)
            np.testing.assert_allclose(filtered.means[i, t], means_now[here], rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(filtered.covariances[i, t], covariances_now[here, here], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("frozen", FROZEN, ids=lambda frozen: f"{len(frozen['parameters']['initial_mean'])}-dim")
def test_agreement_with_dynamax(frozen):
    model = LinearGaussian(**{name: np.array(value) for name, value in frozen["parameters"].items()})
    batch = fivo.Batch.from_sequences([np.array(frozen["observations"])])
    filtered, smoothed = model.filtered(batch), model.smoothed(batch)
    got = {
        "log_evidence": model.log_evidence(batch),
        "filtered_means": filtered.means,
        "filtered_covariances": filtered.covariances,
        "smoothed_means": smoothed.means,
        "smoothed_covariances": smoothed.covariances,
    }
    for name, expected in frozen["expected"].items():
        np.testing.assert_allclose(got[name][0], expected, rtol=1e-10, atol=1e-11, err_msg=name)


def test_log_joint_is_the_joint_gaussian():
    model = random_model(3, 2, seed=4)
    rng = np.random.default_rng(1)
    z, x = rng.standard_normal((5, 3)), rng.standard_normal((5, 2))
    dense = DenseGaussian(model, 5)
    exact = log_normal(z.ravel() - dense.mean, dense.covariance)
    exact += log_normal(x.ravel() - dense.emission @ z.ravel(), dense.noise)
    np.testing.assert_allclose(fast_jit(model.log_joint)(jnp.asarray(z), jnp.asarray(x)), exact, rtol=1e-12)


@pytest.mark.parametrize("mask", [None, (False, True), (False, False)])
def test_the_optimal_proposal_is_the_posterior_of_one_step(mask):
    """p(z_t | z_{t-1}) p(x_t | z_t) / q(z_t) is then p(x_t | z_{t-1}), whatever z_t is."""
    model = linear_gaussian(np.float64, "optimal")
    x, mask = jnp.asarray([0.7, -1.2]), None if mask is None else jnp.asarray(mask)
    x = x if mask is None else jnp.where(mask, x, 0)
    state = jnp.asarray([0.4, -0.6, 0.2])

    def weights(prior_at, evidence, latents):
        prior = prior_at(state, None)
        proposal = model.proposal(state, evidence, prior)

        def weight(latent):
            log_likelihood = observation_log_prob(model.emission(state, latent, None), x, mask)
            return log_prob(prior, latent) + log_likelihood - log_prob(proposal, latent)

        return jax.vmap(weight)(latents)

    evidence, _, _ = fast_jit(model.encode_next)(model.begin(), x, mask, None)
    latents = jax.random.normal(jax.random.key(0), (4, 3))
    first, later = (
        fast_jit(lambda e, z, at=at: weights(at, e, z))(evidence, latents) for at in (model.initial_prior, model.prior)
    )
    for got in (first, later):
        np.testing.assert_allclose(got, got[0], rtol=1e-10, atol=1e-12)
    seen = x if mask is None else x[np.flatnonzero(mask)]
    assert (abs(first[0] - later[0]) > 1e-3) == bool(seen.size), "the two steps have different priors"


def test_a_learned_scale_that_gradients_filled_above_the_diagonal():
    """What is sampled has to be what is scored."""
    model = linear_gaussian(np.float64, "learned")
    model = eqx.tree_at(lambda m: m.learned.scale_tril, model, model.learned.scale_tril + 0.3)
    state, x = model.initial_mean, jnp.asarray([0.7, -1.2])
    evidence, _, _ = model.encode_next(model.begin(), x, None, None)
    proposal = model.proposal(state, evidence, model.prior(state, None))
    draws = jax.vmap(proposal.sample)(jax.random.split(jax.random.key(2), 20_000))
    scored = jnp.linalg.inv(jnp.tril(proposal.whiten))
    covariance = scored @ scored.T
    centred = np.asarray(draws) - np.asarray(proposal.loc)
    assert mean_within(centred[:, :, None] * centred[:, None, :], np.asarray(covariance))


def test_simulated_sequences_have_the_moments_of_the_joint_gaussian():
    model = random_model(2, 2, seed=6)
    keys = jax.random.split(jax.random.key(5), 20_000)
    drawn = fast_jit(jax.vmap(lambda key: simulate(model, 3, key=key)))(keys)
    dense = DenseGaussian(model, 3)
    z, x = (np.asarray(value).reshape(len(keys), -1) for value in drawn)
    assert mean_within(z, dense.mean)
    assert mean_within(x, dense.emission @ dense.mean)
    cross = (z - dense.mean)[:, :, None] * (x - dense.emission @ dense.mean)[:, None, :]
    assert mean_within(cross, dense.covariance @ dense.emission.T)
    squares = (x - dense.emission @ dense.mean) ** 2
    assert mean_within(squares, np.diag(dense.emission @ dense.covariance @ dense.emission.T + dense.noise))


def test_gradient_ascent_on_the_exact_evidence_fits_the_covariances():
    truth = helpers.linear_gaussian(noise=0.5)
    batch = fivo.Batch.from_sequences(
        [np.asarray(simulate(truth, 60, key=jax.random.key(i)).observations) for i in range(8)]
    )
    wrong = LinearGaussian(
        transition_matrix=truth.transition_matrix,
        transition_covariance=4 * np.eye(2),
        emission_matrix=truth.emission_matrix,
        emission_covariance=np.array([[9.0]]),
        initial_mean=truth.initial_mean,
        initial_covariance=0.01 * np.eye(2),
    )

    @jax.jit
    def climb(model: LinearGaussian, _: None):
        value, slope = jax.value_and_grad(lambda m: jnp.mean(m.log_evidence(batch)))(model)
        return jax.tree.map(lambda leaf, step: leaf + 0.01 * step, model, slope), value

    fitted, values = jax.lax.scan(climb, wrong, None, length=400)
    assert np.isfinite(values).all()
    # The best of its class fits these sequences at least as well as the model they came from.
    assert values[-1] > np.mean(truth.log_evidence(batch)) - 0.05
    for name in ("transition_covariance", "emission_covariance", "initial_covariance"):
        np.linalg.cholesky(getattr(fitted, name))


@pytest.mark.parametrize("name", ["transition_covariance", "emission_covariance", "initial_covariance"])
def test_covariances_are_read_out_as_they_were_given(name):
    given = {
        "transition_covariance": np.array([[0.5, 0.1], [0.1, 0.3]]),
        "emission_covariance": np.array([[2.0]]),
        "initial_covariance": np.array([[1.0, 0.2], [0.2, 0.7]]),
    }
    np.testing.assert_allclose(getattr(helpers.linear_gaussian(), name), given[name], rtol=1e-12)
