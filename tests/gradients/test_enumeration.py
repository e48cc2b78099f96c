"""Score estimators against the exact ∇E[log p̂_N], by enumerating every latent and ancestor of a small filter."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fivo import ParticleFilter
from fivo.bounds import FIVO, IWAE, SIXO
from fivo.gradients import LatentScore, MovingAverage, OtherFilters, OtherParticles, Score, StopGradientResampling
from fivo.resampling import Never, Schedule
from tests.fast import fast_jit
from tests.gradients.chain import Outcomes, chain, log_likelihood, outcomes, replay, symbols, twisted_chain
from tests.helpers import repeated

pytestmark = pytest.mark.usefixtures("x64")

SCHEDULE = Schedule((0, 1))
SLOPE = MovingAverage(slope=-0.7)


@cache
def case(scheme: str | None, num_particles: int = 2, num_steps: int = 3) -> tuple[ParticleFilter, Outcomes]:
    """A filter with its outcomes; no scheme is one that never resamples."""
    criterion = Never() if scheme is None else SCHEDULE
    pf = ParticleFilter(num_particles, scheme or "multinomial", criterion)
    return pf, outcomes(pf, symbols(num_steps))


@cache
def exact(scheme: str | None, num_steps: int = 3):
    """∇ Σ P log p̂ over all outcomes."""
    pf, drawn = case(scheme, num_steps=num_steps)

    def bound(model):
        log_evidence, log_probability = replay(model, pf, drawn.latents, drawn.ancestors)
        return jnp.sum(jnp.exp(log_probability) * log_evidence)

    return fast_jit(jax.grad(bound))(chain())


def expectation(bound, drawn: Outcomes, weight=1.0, num_steps: int = 3):
    """The average gradient: outcomes weighed by their probabilities, which are not differentiated."""
    batch = repeated(symbols(num_steps), len(drawn.keys))

    def total(model):
        return jnp.sum(weight * drawn.probability * bound(model, batch, key=drawn.keys).log_evidence)

    return fast_jit(jax.grad(total))(chain())


def assert_equal(got, expected):
    for name in ("transition", "emission_table", "guide"):
        np.testing.assert_allclose(getattr(got, name), getattr(expected, name), atol=1e-10, err_msg=name)


def distance(got, expected) -> float:
    return max(np.abs(a - b).max() for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True))


@pytest.mark.parametrize(
    ("scheme", "gradient"),
    [
        ("multinomial", Score()),
        ("multinomial", Score(SLOPE)),
        ("multinomial", Score(OtherParticles())),
        ("stratified", Score(OtherParticles())),
        ("systematic", Score()),
    ],
    ids=["no baseline", "moving average", "particles", "stratified", "systematic"],
)
def test_scores_of_latents_and_ancestors_are_the_gradient_of_fivo(scheme, gradient):
    bound = FIVO(2, resampling=scheme, criterion=SCHEDULE, gradient=gradient)
    assert_equal(expectation(bound, case(scheme)[1]), exact(scheme))


@pytest.mark.parametrize("gradient", [Score(), Score(OtherParticles())], ids=["no baseline", "particles"])
def test_scores_are_the_gradient_of_a_twisted_bound(gradient):
    """That of the twist's own parameters included."""
    model, bound = twisted_chain(), SIXO(2, criterion=SCHEDULE, gradient=gradient)
    drawn = twisted_outcomes()
    batch = repeated(symbols(3), len(drawn.keys))

    def written_out(model):
        log_evidence, log_probability = replay(model, bound.filter, drawn.latents, drawn.ancestors)
        return jnp.sum(jnp.exp(log_probability) * log_evidence)

    def estimated(model):
        return jnp.sum(drawn.probability * bound(model, batch, key=drawn.keys).log_evidence)

    expected, got = fast_jit(jax.grad(written_out))(model), fast_jit(jax.grad(estimated))(model)
    assert_equal(got, expected)
    np.testing.assert_allclose(got.tilt, expected.tilt, atol=1e-10)
    assert np.abs(np.asarray(expected.tilt)).max() > 1e-3


@cache
def twisted_outcomes() -> Outcomes:
    return outcomes(ParticleFilter(2, criterion=SCHEDULE, twisted=True), symbols(3), model=twisted_chain())


@pytest.mark.parametrize("gradient", [LatentScore(), LatentScore(OtherParticles())], ids=["no baseline", "particles"])
def test_scores_of_latents_are_the_gradient_of_iwae(gradient):
    assert_equal(expectation(IWAE(2, gradient=gradient), case(None)[1]), exact(None))


def test_without_the_ancestors_scores_the_gradient_of_fivo_is_biased():
    bound = FIVO(2, criterion=SCHEDULE, gradient=LatentScore())
    assert distance(expectation(bound, case("multinomial")[1]), exact("multinomial")) > 1e-3


def test_leaving_one_of_two_filters_out():
    """All pairs of outcomes, which stand where the two filters of one sequence would."""
    pf, drawn = case("multinomial", num_steps=2)
    size = len(drawn.keys)
    first, second = (index.reshape(-1) for index in np.meshgrid(np.arange(size), np.arange(size), indexing="ij"))
    order = np.stack([first, second], axis=1).reshape(-1)
    batch = repeated(symbols(2), len(order))
    pair = drawn.probability[first] * drawn.probability[second]
    gradient = Score(OtherFilters(2))

    def total(model):
        rules = gradient.rules(None, batch.lengths)
        result = pf(model, batch, key=drawn.keys[order], rules=rules, keep=gradient.keep)
        values = result.log_evidence + gradient.surrogate(pf, result, batch.lengths)
        return jnp.sum(jnp.repeat(pair, 2) * values) / 2

    assert_equal(fast_jit(jax.grad(total))(chain()), exact("multinomial", num_steps=2))


def test_stop_gradient_resampling_estimates_the_score_of_the_likelihood():
    """E[p̂ ∇ log p̂] = ∇p(x), which a proposal's parameters leave as it is; E[∇ log p̂] is something else."""
    pf, drawn = case("multinomial")
    log_evidence, _ = replay(chain(), pf, drawn.latents, drawn.ancestors)
    bound = FIVO(2, criterion=SCHEDULE, gradient=StopGradientResampling())
    of_likelihood = jax.grad(lambda model: jnp.exp(log_likelihood(model, 3)))(chain())
    assert_equal(expectation(bound, drawn, jnp.exp(log_evidence)), of_likelihood)
    assert not np.any(of_likelihood.guide)
    assert distance(expectation(bound, drawn), exact("multinomial")) > 1e-3
