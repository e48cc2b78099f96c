"""E[p̂_N] = p: what makes log p̂_N a lower bound on average, for every scheme and criterion."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Bool, Float, Int

from fivo.bounds import FIVO, IWAE
from fivo.resampling import SCHEMES, Always, Criterion, ESSBelow, Schedule, multinomial
from fivo.smc import ParticleFilter, filtered_mean, trajectories
from tests.covering import covering
from tests.helpers import hidden_markov, linear_gaussian, mean_within, one_sequence, relative_evidence, repeated
from tests.oracles.moments import hmm_evidence, hmm_filter_variance, hmm_importance_variance

NUM_RUNS, NUM_STEPS, NUM_PARTICLES = 20_000, 8, 4
CRITERIA = {"always": Always(), "ess": ESSBelow(0.5), "schedule": Schedule((1, 2, 5))}
MODELS = {"linear-gaussian": lambda: linear_gaussian("optimal"), "hmm": hidden_markov}


class OneOf(eqx.Module):
    """One of several criteria, chosen when the program runs, so that all of them share a compilation."""

    criteria: tuple[Criterion, ...]
    index: Int[Array, ""]

    def __call__(self, log_weights: Float[Array, " particle"], step: Int[Array, ""]) -> Bool[Array, ""]:
        return jnp.stack([criterion(log_weights, step) for criterion in self.criteria])[self.index]


def unbiased(ratios: np.ndarray) -> bool:
    """The check that every estimator passes and a biased scheme does not."""
    assert ratios.var() < 1, "the case has too much variance for the check to have power"
    return mean_within(ratios, 1)


@covering("model, scheme", MODELS, SCHEMES, strength=1)
def test_the_evidence_estimate_is_unbiased(model, scheme):
    model = MODELS[model]()
    batch = one_sequence(model, NUM_STEPS)
    variances = []
    for i, name in enumerate(CRITERIA):
        bound = FIVO(NUM_PARTICLES, scheme, OneOf(tuple(CRITERIA.values()), jnp.asarray(i)))
        ratios = relative_evidence(bound, model, batch, NUM_RUNS, seed=i)
        assert unbiased(ratios), name
        variances.append(ratios.var())
    assert len(set(variances)) == len(CRITERIA), "the criteria must make a difference"


def tempered(key, log_weights, num_draws):
    """Draws from weights to the power of 0.8: a temperature forgotten."""
    return multinomial(key, 0.8 * log_weights, num_draws)


def at_midpoints(key, log_weights, num_draws):
    """Systematic resampling without its one random number."""
    cumulative = jnp.cumsum(jax.nn.softmax(log_weights))
    return jnp.searchsorted(cumulative, (jnp.arange(num_draws) + 0.5) / num_draws).astype(jnp.int32)


def keeps_the_best(key, log_weights, num_draws):
    """Multinomial, except that the heaviest particle always survives."""
    return multinomial(key, log_weights, num_draws).at[0].set(jnp.argmax(log_weights).astype(jnp.int32))


@pytest.mark.parametrize("scheme", [tempered, at_midpoints, keeps_the_best])
def test_the_check_rejects_a_biased_scheme(scheme):
    model = hidden_markov()
    ratios = relative_evidence(FIVO(NUM_PARTICLES, scheme, Always()), model, one_sequence(model, NUM_STEPS), NUM_RUNS)
    assert not unbiased(ratios)


@pytest.mark.parametrize("kind", ["fivo", "iwae"])
def test_the_variance_is_the_exact_one(x64, kind):
    """Right on average is not enough: particles that shared their noise would show here."""
    model = hidden_markov()
    batch = one_sequence(model, NUM_STEPS)
    x = np.asarray(batch.observations[0])
    if kind == "fivo":
        bound, exact = FIVO(NUM_PARTICLES, "multinomial", Always()), hmm_filter_variance(model, x, NUM_PARTICLES)
    else:
        bound, exact = IWAE(NUM_PARTICLES), hmm_importance_variance(model, x, NUM_PARTICLES)
    ratios = relative_evidence(bound, model, batch, NUM_RUNS)
    assert np.isclose(np.log(hmm_evidence(model, x)), model.log_evidence(batch)[0], rtol=1e-12)
    assert mean_within((ratios - 1) ** 2, exact)


@pytest.mark.parametrize("scheme", ["multinomial", "residual"])
def test_weighted_particles_are_unbiased_too(scheme):
    """E[p̂ Σ w f(z)] = p E[f(z) | x], for the last step's particles and for whole trajectories by ancestor tracing."""
    model = linear_gaussian()
    batch = one_sequence(model, NUM_STEPS)
    result = ParticleFilter(NUM_PARTICLES, scheme, ESSBelow(0.5))(
        model,
        repeated(batch, NUM_RUNS),
        key=jax.random.key(3),
        keep=("log_weights", "ancestors", "latents"),
    )
    log_ratios = np.asarray(result.log_evidence - model.log_evidence(batch)[0], np.float64)
    ratios = np.exp(log_ratios)[:, None]
    last = ratios * np.asarray(filtered_mean(result)[:, -1])
    assert mean_within(last, np.asarray(model.filtered(batch).means[0, -1]))

    weights = np.exp(np.asarray(result.log_weights[:, -1], np.float64))
    smoothed = np.einsum("bn,btnd->btd", weights, np.asarray(trajectories(result)))
    for t in (0, NUM_STEPS // 2):
        assert mean_within(ratios * smoothed[:, t], np.asarray(model.smoothed(batch).means[0, t])), t
