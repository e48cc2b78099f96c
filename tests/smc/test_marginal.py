"""The marginal particle filter against the Kalman filter and the plain filter, and its gradient against another."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fivo
from fivo.bounds import FIVO, MarginalFIVO
from fivo.distributions import log_prob
from fivo.errors import InputError
from fivo.models import VRNN, BernoulliEmission
from fivo.resampling import Always
from fivo.smc import MarginalParticleFilter, ParticleFilter, conditional_filter
from tests.helpers import hidden_markov, linear_gaussian, one_sequence, relative_evidence, repeated
from tests.sentences import assert_one_sentence
from tests.test_unbiasedness import unbiased

NUM_RUNS, NUM_STEPS, NUM_PARTICLES = 20_000, 4, 4


def nudged() -> fivo.models.LinearGaussian:
    """A proposal that is neither the prior nor the best one, and wide enough for the first step."""
    model = linear_gaussian("learned")
    free = (jnp.array([[0.3], [0.1]]), jnp.array([[0.9, 0.0], [0.1, 0.8]]))
    return eqx.tree_at(lambda m: (m.learned.gain, m.learned.scale_tril), model, free)


@pytest.mark.parametrize(
    ("kind", "scheme"),
    [("linear-gaussian", "multinomial"), ("hmm", "stratified"), ("hmm", "systematic"), ("hmm", "residual")],
)
def test_the_estimate_is_unbiased(kind, scheme):
    model = nudged() if kind == "linear-gaussian" else hidden_markov("optimal")
    ratios = relative_evidence(MarginalFIVO(NUM_PARTICLES, scheme), model, one_sequence(model, NUM_STEPS), NUM_RUNS)
    assert unbiased(ratios)


def test_its_variance_is_below_the_plain_filters_at_equal_n():
    model = nudged()
    batch = one_sequence(model, NUM_STEPS)
    plain = relative_evidence(FIVO(8, criterion=Always()), model, batch, NUM_RUNS)
    marginal = relative_evidence(MarginalFIVO(8), model, batch, NUM_RUNS)
    squares = [(ratios - 1) ** 2 for ratios in (plain, marginal)]
    error = np.sqrt(sum(s.var() for s in squares) / NUM_RUNS)
    assert squares[0].mean() - squares[1].mean() > 4 * error


@pytest.mark.usefixtures("x64")
def test_a_bootstrap_proposal_makes_it_the_plain_filter():
    """Every mixture cancels, and the same particles are drawn from the same keys."""
    model = linear_gaussian()
    batch = fivo.Batch.from_sequences([np.asarray(one_sequence(model, n).observations[0]) for n in (6, 3)])
    key = jax.random.key(3)
    plain = ParticleFilter(5, criterion=Always())(model, batch, key=key, keep=("log_weights", "latents"))
    marginal = MarginalParticleFilter(5)(model, batch, key=key, keep=("log_weights", "latents"))
    np.testing.assert_allclose(marginal.log_increments, plain.log_increments, atol=1e-9)
    np.testing.assert_allclose(marginal.latents[0], plain.latents[0], atol=1e-9)
    np.testing.assert_allclose(marginal.log_weights[1, :3], plain.log_weights[1, :3], atol=1e-9)


def written_out(model, x, latents, ancestors):
    """log p̂ and the log-probability of given draws of one run, without the filter; differentiable in the model."""
    log_weights = jnp.full(latents.shape[1], -np.log(latents.shape[1]))
    total, score = 0.0, 0.0
    states = None
    for t in range(len(x)):
        if t == 0:
            priors = [model.initial_prior(None, None)] * latents.shape[1]
        else:
            priors = [model.prior(h, None) for h in states]
        evidence = jax.tree.map(lambda leaf, t=t: leaf[t], model.encode(fivo.batch.Sequence(x, jnp.asarray(len(x))))[1])
        proposals = [model.proposal(None, evidence, prior) for prior in priors]
        log_p = jnp.stack([jnp.stack([log_prob(d, z) for d in priors]) for z in latents[t]])
        log_q = jnp.stack([jnp.stack([log_prob(d, z) for d in proposals]) for z in latents[t]])
        g = jnp.stack([log_prob(model.emission(None, z, None), x[t]) for z in latents[t]])
        picked = ancestors[t - 1] if t else np.arange(latents.shape[1])
        score = score + jnp.sum(log_q[jnp.arange(latents.shape[1]), picked])
        row = log_weights[None, :]
        alpha = g + jax.nn.logsumexp(log_p + row, axis=1) - jax.nn.logsumexp(log_q + row, axis=1)
        total = total + jax.nn.logsumexp(alpha) - np.log(latents.shape[1])
        log_weights = alpha - jax.nn.logsumexp(alpha)
        if t < len(x) - 1:
            score = score + jnp.sum(log_weights[ancestors[t]])
        states = [model.advance(None, z, None) for z in latents[t]]
    return total, score


@pytest.mark.usefixtures("x64")
def test_the_scored_gradient_is_that_of_the_bound():
    """Against an estimator that scores every draw, computed from the draws alone; dropping the choice is biased."""
    model, runs = nudged(), 6_000
    batch = one_sequence(model, 2)
    result = MarginalParticleFilter(2)(
        model, repeated(batch, runs), key=jax.random.key(0), keep=("latents", "ancestors")
    )
    x = batch.observations[0]

    def scored(latents, ancestors):
        def surrogate(m):
            value, score = written_out(m, x, latents, ancestors)
            centred = jax.lax.stop_gradient(value - model.log_evidence(batch)[0])
            return value + centred * score, value

        return jax.grad(surrogate, has_aux=True)(model)

    by_scores, values = jax.jit(jax.vmap(scored))(result.latents, result.ancestors)
    np.testing.assert_allclose(values, result.log_evidence, atol=1e-9)

    def slopes(gradient):
        bound = MarginalFIVO(2, gradient=gradient)

        def one(key):
            return jax.grad(lambda m: bound(m, batch, key=key[None]).log_evidence[0])(model)

        return jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(1), runs))

    def apart(found) -> float:
        """In standard errors, the largest over some parameters."""
        picked = [lambda m: m.learned.gain, lambda m: m.transition_matrix, lambda m: m.learned.bias]
        worst = []
        for pick in picked:
            a, b = np.asarray(pick(found)), np.asarray(pick(by_scores))
            error = np.sqrt((a.var(axis=0) + b.var(axis=0)) / runs)
            worst.append(np.max(np.abs(a.mean(axis=0) - b.mean(axis=0)) / error))
        return max(worst)

    assert apart(slopes("resampling-score")) < 4


def test_what_it_cannot_do_is_refused():
    model = linear_gaussian()
    batch = one_sequence(model, 3)
    key = jax.random.key(0)
    vrnn = VRNN(BernoulliEmission(np.full(3, 0.4)), 3, key=key)
    latents = jnp.zeros((1, 3, 2))
    for mistake, said in (
        (lambda: MarginalParticleFilter(4096), "at most 2048"),
        (lambda: MarginalParticleFilter(4, "transport"), "draw whole particles"),
        (lambda: MarginalParticleFilter(4)(vrnn, jnp.zeros((1, 2, 3)), key=key), "Markov chain"),
        (lambda: MarginalParticleFilter(4).init(model, key=key), "stream"),
        (lambda: MarginalFIVO(4, gradient="sticking-the-landing"), "'pathwise' or 'resampling-score'"),
        (lambda: conditional_filter(MarginalParticleFilter(4), model, batch, latents, key=key), "plain ParticleFilter"),
    ):
        with pytest.raises(InputError) as error:
            mistake()
        assert_one_sentence(error.value, said)
