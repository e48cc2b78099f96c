"""ELBO, IWAE and FIVO as one filter: where they are equal, how they are ordered, and what they tend to."""

import jax
import numpy as np
import pytest

from fivo.bounds import ELBO, FIVO, IWAE
from fivo.resampling import Always, Never
from tests.fast import fast_jit
from tests.helpers import hidden_markov, linear_gaussian, log_evidence_of, mean_within, one_sequence, repeated
from tests.oracles.moments import DenseGaussian

in_both_precisions = pytest.mark.parametrize(
    ("x64_enabled", "build"),
    [(False, lambda: linear_gaussian("optimal")), (True, hidden_markov)],
    ids=["linear-gaussian-float32", "hmm-float64"],
)


def draws(bounds, model, batch, num_runs):
    """One draw per run of every bound, all with the same keys, in one program."""

    @fast_jit
    def program(model, batch, key):
        return [bound(model, batch, key=key).log_evidence for bound in bounds]

    return [np.asarray(drawn) for drawn in program(model, repeated(batch, num_runs), jax.random.key(0))]


@in_both_precisions
def test_fivo_that_never_resamples_is_iwae_to_the_bit(x64_enabled, build):
    with jax.enable_x64(x64_enabled):
        model = build()
        bounds = [IWAE(4), FIVO(4, "systematic", Never()), FIVO(4)]
        iwae, never, default = draws(bounds, model, one_sequence(model, 8), 50)
    np.testing.assert_array_equal(iwae, never)
    assert (iwae != default).any()


@in_both_precisions
def test_all_bounds_agree_to_the_bit_with_one_particle(x64_enabled, build):
    with jax.enable_x64(x64_enabled):
        model = build()
        bounds = [ELBO(), IWAE(1), FIVO(1), FIVO(1, "residual", Always())]
        elbo, *others = draws(bounds, model, one_sequence(model, 8), 50)
    assert len(np.unique(elbo)) > 25
    for other in others:
        np.testing.assert_array_equal(elbo, other)


def test_elbo_is_its_closed_form(x64):
    model = linear_gaussian()
    batch = one_sequence(model, 8)
    exact = DenseGaussian(model, 8).elbo(batch.observations[0])
    for bound in (ELBO(), ELBO(3)):
        drawn = np.asarray(log_evidence_of(bound, model, repeated(batch, 10_000), jax.random.key(0)))
        assert mean_within(drawn, exact)
        assert drawn.std() > 0.1


def test_bounds_tighten_with_the_number_of_particles(x64):
    """ELBO < IWAE_4 < IWAE_8 < log p in expectation, each step by more than 4 standard errors of the difference."""
    model = linear_gaussian()
    batch = one_sequence(model, 8)
    samples = [
        np.asarray(log_evidence_of(bound, model, repeated(batch, 20_000), jax.random.key(seed)))
        for seed, bound in enumerate([ELBO(), IWAE(4), IWAE(8)])
    ]
    means = [drawn.mean() for drawn in samples] + [float(model.log_evidence(batch)[0])]
    errors = [drawn.std() / np.sqrt(drawn.size) for drawn in samples] + [0.0]
    steps = np.diff(means) / np.hypot(errors[:-1], errors[1:])
    assert (steps > 4).all(), steps


def test_the_smoothing_proposal_makes_elbo_and_iwae_exact_and_fivo_not(x64):
    """Sharpness the other way round: whole trajectories have constant weights, their beginnings do not."""
    model = linear_gaussian("smoothing")
    batch = one_sequence(model, 8)
    exact = float(model.log_evidence(batch)[0])
    for bound in (ELBO(), IWAE(5)):
        drawn = np.asarray(log_evidence_of(bound, model, repeated(batch, 20), jax.random.key(0)))
        np.testing.assert_allclose(drawn, exact, rtol=0, atol=1e-9)

    drawn = np.asarray(log_evidence_of(FIVO(4, criterion=Always()), model, repeated(batch, 2_000), jax.random.key(0)))
    assert exact - drawn.mean() > 4 * drawn.std() / np.sqrt(drawn.size) > 0
