"""Backward simulation and fixed-lag smoothing against the Kalman smoother."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fivo
from fivo.smc import backward_simulate, filtered_mean, fixed_lag, lineages, trajectories
from tests.fast import fast_jit
from tests.helpers import linear_gaussian, mean_within, one_sequence, repeated
from tests.models.cases import CASES
from tests.sentences import assert_one_sentence

NUM_STEPS, NUM_RUNS, NUM_PARTICLES, LENGTH = 8, 60, 400, 7


@pytest.fixture(scope="module")
def run():
    """Many filters of one sequence, padded by a step, that resample all the time."""
    with jax.enable_x64(True):
        model = linear_gaussian()
        batch = one_sequence(model, LENGTH)
        behind = jnp.full_like(batch.observations[:, :1], jnp.nan)
        padded = fivo.Batch(jnp.concatenate([batch.observations, behind], axis=1), batch.lengths)
        copies = repeated(padded, NUM_RUNS)
        pf = fivo.ParticleFilter(NUM_PARTICLES, criterion=fivo.resampling.Always())
        filtered = fast_jit(
            lambda m, b: pf(m, b, key=jax.random.key(0), keep=("log_weights", "ancestors", "latents")),
        )
        return model, batch, copies, filtered(model, copies)


@pytest.mark.usefixtures("x64")
def test_backward_simulation_has_the_moments_of_the_smoother(run):
    """One trajectory per run would be independent; several per run are averaged first. Their bias is O(1/N)."""
    model, batch, copies, result = run
    simulate = fast_jit(lambda m, b, r: backward_simulate(m, b, r, num_trajectories=50, key=jax.random.key(1)))
    drawn = np.asarray(simulate(model, copies, result))[:, :LENGTH]
    exact = model.smoothed(batch)
    bias = 2 / NUM_PARTICLES
    deviation = drawn - np.asarray(exact.means)[:, :, None]
    means, variances = deviation.mean(axis=2), (deviation**2).mean(axis=2)
    for samples, truth in ((means, 0.0), (variances, np.diagonal(exact.covariances[0], axis1=1, axis2=2))):
        error = samples.std(axis=0) / np.sqrt(NUM_RUNS)
        assert (np.abs(samples.mean(axis=0) - truth) < 4 * error + bias).all()
    # Neighbouring steps belong together: their covariance is G P_t+1, with the smoother's gain G.
    a, q = np.asarray(model.transition_matrix), np.asarray(model.transition_covariance)
    filtered = np.asarray(model.filtered(batch).covariances[0])
    products = np.einsum("btns,btnu->btsu", deviation[:, :-1], deviation[:, 1:]) / deviation.shape[2]
    gains = np.stack([p @ a.T @ np.linalg.inv(a @ p @ a.T + q) for p in filtered[:-1]])
    pairs = gains @ np.asarray(exact.covariances[0])[1:]
    error = products.std(axis=0) / np.sqrt(NUM_RUNS)
    assert (np.abs(products.mean(axis=0) - pairs) < 4 * error + bias).all()


@pytest.mark.usefixtures("x64")
def test_backward_simulation_keeps_the_early_steps_diverse(run):
    """Where ancestors have died out, tracing them leaves a few values; going back by weight does not."""
    model, _, copies, result = run
    one = jax.tree.map(lambda leaf: leaf[:1], (copies, result))
    drawn = np.asarray(backward_simulate(model, *one, num_trajectories=200, key=jax.random.key(1)))
    survivors = len(np.unique(np.asarray(lineages(result.ancestors[:1]))[0, 0]))
    assert len(np.unique(drawn[0, 0], axis=0)) > 1.5 * min(survivors, 200 / 1.5)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("lag", [0, 2, 30])
def test_fixed_lag_means_are_those_of_a_smoother_that_stops_early(run, lag):
    model, batch, copies, result = run
    means = np.asarray(fixed_lag(model, copies, result, lag=lag))[:, :LENGTH]
    exact = []
    for t in range(LENGTH):
        until = min(t + lag + 1, LENGTH)
        early = fivo.Batch(batch.observations[:, :until], jnp.full((1,), until, jnp.int32))
        exact.append(np.asarray(model.smoothed(early).means[0, t]))
    error = means.std(axis=0) / np.sqrt(NUM_RUNS)
    assert (np.abs(means.mean(axis=0) - np.stack(exact)) < 4 * error + 2 / NUM_PARTICLES).all()


@pytest.mark.usefixtures("x64")
def test_the_ends_of_fixed_lag_smoothing(run):
    """No lag is filtering; a lag of the whole sequence is tracing ancestors."""
    model, _, copies, result = run
    np.testing.assert_allclose(fixed_lag(model, copies, result, lag=0), filtered_mean(result), atol=1e-12)
    weights = np.exp(np.asarray(result.log_weights[:, -1]))
    traced = np.einsum("bn,btnd->btd", weights, np.asarray(trajectories(result)))
    np.testing.assert_allclose(fixed_lag(model, copies, result, lag=NUM_STEPS), traced, atol=1e-12)


def test_a_discrete_chain_is_smoothed_too():
    """Against the forward-backward algorithm: the share of trajectories in each state."""
    case = next(case for case in CASES if case.name == "discrete_hmm-prior")
    model, batch = case.build(np.float32), fivo.Batch.from_sequences(case.sequences(5))
    copies = repeated(batch, NUM_RUNS)
    keep = ("log_weights", "ancestors", "latents")
    result = fivo.ParticleFilter(NUM_PARTICLES)(model, copies, key=jax.random.key(0), keep=keep)
    drawn = np.asarray(backward_simulate(model, copies, result, num_trajectories=50, key=jax.random.key(1)))
    shares = (drawn[..., None] == np.arange(3)).mean(axis=2)
    assert mean_within(shares, np.asarray(model.smoothed(batch)[0]), sigmas=4.5)


def test_who_cannot_be_smoothed_and_why():
    case = next(case for case in CASES if case.name == "vrnn-notes")
    batch = fivo.Batch.from_sequences(case.sequences(3))
    model = case.build(np.float32)
    keep = ("log_weights", "ancestors", "latents")
    result = fivo.ParticleFilter(2)(model, batch, key=jax.random.key(0), keep=keep)
    with pytest.raises(fivo.InputError) as refusal:
        backward_simulate(model, batch, result, num_trajectories=2, key=jax.random.key(0))
    assert_one_sentence(refusal.value, "VRNN", "Markov", "particle_gibbs")
    with pytest.raises(fivo.InputError):
        fixed_lag(model, batch, result, lag=1)
    markov = linear_gaussian()
    batch = one_sequence(markov, 3)
    bare = fivo.ParticleFilter(2)(markov, batch, key=jax.random.key(0))
    whole = fivo.ParticleFilter(2)(markov, batch, key=jax.random.key(0), keep=keep)
    for call, part in (
        (lambda: fixed_lag(markov, batch, bare, lag=1), "latents"),
        (lambda: fixed_lag(markov, batch, whole, lag=-1), "got -1"),
        (lambda: backward_simulate(markov, batch, whole, num_trajectories=0, key=jax.random.key(0)), "got 0"),
    ):
        with pytest.raises(fivo.InputError) as refusal:
            call()
        assert_one_sentence(refusal.value, part)
