"""Ancestor tracing, and particle means against the exact moments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fivo
from fivo.smc import filtered_mean, lineages, trajectories
from tests.fast import fast_jit
from tests.helpers import mean_within, repeated
from tests.models.cases import CASES
from tests.sentences import assert_one_sentence

NUM_RUNS, NUM_PARTICLES, NUM_STEPS = 40, 2000, 6


def test_lineages_by_hand():
    """Particle i of a step continues particle ancestors[i] of the step before; the last row acts on no later step."""
    ancestors = jnp.asarray([[[0, 0, 1], [2, 0, 2], [0, 0, 0]]])
    assert lineages(ancestors).tolist() == [[[1, 0, 1], [2, 0, 2], [0, 1, 2]]]


@pytest.fixture(scope="module")
def run():
    """The optimal proposal on a linear-Gaussian model, many times, resampling where there would be no need."""
    with jax.enable_x64(True):
        case = next(case for case in CASES if case.name == "linear_gaussian-optimal")
        model, batch = case.build(np.float64), fivo.Batch.from_sequences(case.sequences(NUM_STEPS))
        result = fivo.ParticleFilter(NUM_PARTICLES, "systematic", fivo.resampling.Every(2))(
            model,
            repeated(batch, NUM_RUNS),
            key=jax.random.key(0),
            keep=("log_weights", "ancestors", "latents"),
        )
        return model, batch, result


@pytest.mark.usefixtures("x64")
def test_filtered_means_are_those_of_the_kalman_filter(run):
    """Self-normalised weights are biased by O(1/N), far below the standard error of the mean over the runs."""
    model, batch, result = run
    exact = model.filtered(batch)
    means = np.asarray(filtered_mean(result))
    assert mean_within(means, np.asarray(exact.means[0]))
    # The optimal proposal wastes few particles: a run errs by little more than N draws from the posterior would.
    posterior = np.sqrt(np.diagonal(exact.covariances[0], axis1=1, axis2=2) / NUM_PARTICLES)
    assert np.all(means.std(axis=0) < 2 * posterior)


@pytest.mark.usefixtures("x64")
def test_weighted_trajectories_are_those_of_the_kalman_smoother(run):
    model, batch, result = run
    weights = np.exp(np.asarray(result.log_weights[:, -1]))
    traced = np.asarray(trajectories(result))
    exact = model.smoothed(batch)
    assert mean_within(np.einsum("bn,btnd->btd", weights, traced), np.asarray(exact.means[0]))
    deviation = traced - np.asarray(exact.means)[:, :, None, :]
    variances = np.einsum("bn,btnd->btd", weights, deviation**2)
    assert mean_within(variances, np.diagonal(exact.covariances[0], axis1=1, axis2=2))


def test_nobody_gets_what_was_not_kept():
    case = CASES[0]
    batch = fivo.Batch.from_sequences(case.sequences(2))
    result = fast_jit(
        lambda model: fivo.ParticleFilter(2)(model, batch, key=jax.random.key(0)),
    )(case.build(np.float32))
    assert result.log_weights is None
    assert result.ancestors is None
    assert result.latents is None
    for wanted, word in ((trajectories, "ancestors"), (filtered_mean, "log_weights")):
        with pytest.raises(fivo.InputError) as refusal:
            wanted(result)
        assert_one_sentence(refusal.value, "latents", word)
