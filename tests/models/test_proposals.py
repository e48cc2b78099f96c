"""Families of proposals: their densities against what they are defined by, and what they are good for."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from fivo.batch import Sequence
from fivo.bounds import FIVO
from fivo.distributions import Gaussian
from fivo.errors import InputError
from fivo.models import (
    DiscreteHMM,
    ExactTwist,
    LinearGaussian,
    LinearProposal,
    NormalEmission,
    ProductProposal,
    Proposed,
    ResidualProposal,
    Twisted,
)
from tests.helpers import hidden_markov, linear_gaussian, mean_within, one_sequence, relative_evidence
from tests.sentences import assert_one_sentence

MEAN, TRIL = np.asarray([0.3, -1.0]), np.asarray([[0.7, 0.0], [-0.4, 0.9]])
PRIORS = {
    "Normal": lambda: dist.Normal(jnp.asarray(MEAN), jnp.asarray([0.7, 1.4])),
    "Gaussian": lambda: Gaussian(jnp.asarray(MEAN), jnp.asarray(TRIL)),
}
POINTS = np.asarray([[0.0, 0.0], [1.0, -0.5], [-2.0, 3.0], [0.4, 1.1]])


def log_prob(distribution, z):
    return np.sum(np.asarray(distribution.log_prob(jnp.asarray(z))))


def evidence_at(proposal, t, x):
    frames = jnp.broadcast_to(x, (t + 1, *x.shape))
    return jax.tree.map(lambda leaf: leaf[t], proposal.encode(Sequence(frames, jnp.asarray(t + 1))))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("kind", PRIORS)
def test_a_product_is_the_prior_times_its_factor(kind):
    """log q - log p - log factor is the same at every point; after the last factor q is the prior."""
    prior = PRIORS[kind]()
    mean, scale = np.asarray([[0.0, 0.0], [0.5, -2.0]]), np.asarray([[1.0, 1.0], [0.3, 2.0]])
    proposal = ProductProposal(2, 2, mean=mean, scale=scale)
    q = proposal(None, evidence_at(proposal, 1, jnp.zeros(1)), prior)
    factor = dist.Normal(mean[1], scale[1])
    constants = [log_prob(q, z) - log_prob(prior, z) - log_prob(factor, z) for z in POINTS]
    np.testing.assert_allclose(constants, constants[0], atol=1e-9)
    after = proposal(None, evidence_at(proposal, 2, jnp.zeros(1)), prior)
    np.testing.assert_allclose([log_prob(after, z) - log_prob(prior, z) for z in POINTS], 0, atol=1e-9)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("kind", PRIORS)
def test_linear_and_residual_proposals_begin_as_the_prior_and_move_as_they_say(kind):
    prior, x = PRIORS[kind](), jnp.asarray([0.5, -0.2, 0.8])
    residual = ResidualProposal(2, NormalEmission(np.zeros(3, np.float32)), 4, key=jax.random.key(0))
    linear = LinearProposal(2, 3, 2, dtype=jnp.float64)
    for proposal in (linear, residual):
        q = proposal(None, evidence_at(proposal, 1, x), prior)
        np.testing.assert_allclose([log_prob(q, z) - log_prob(prior, z) for z in POINTS], 0, atol=1e-6)
    rng = np.random.default_rng(0)
    linear = jax.tree.map(lambda leaf: jnp.asarray(rng.standard_normal(leaf.shape)), linear)
    a, b, c, d = (leaf[1] for leaf in (linear.slope, linear.gain, linear.offset, linear.log_scale))
    scale_tril = TRIL if kind == "Gaussian" else jnp.diag(prior.scale)
    expected = Gaussian(prior.loc + a @ prior.loc + b @ x + c, jnp.diag(jnp.exp(d)) @ scale_tril)
    for t in (1, 4):
        q = linear(None, evidence_at(linear, t, x), prior)
        np.testing.assert_allclose([log_prob(q, z) - log_prob(expected, z) for z in POINTS], 0, atol=1e-9)
    residual = eqx.tree_at(lambda r: r.network.output.bias, residual, jnp.asarray([1.0, -2.0, 0.3, 0.1]))
    q = residual(None, evidence_at(residual, 0, x), prior)
    expected = Gaussian(
        prior.loc + scale_tril @ jnp.asarray([1.0, -2.0]), jnp.diag(jnp.exp(jnp.asarray([0.3, 0.1]))) @ scale_tril
    )
    np.testing.assert_allclose([log_prob(q, z) - log_prob(expected, z) for z in POINTS], 0, atol=1e-6)


def test_factors_of_the_likelihood_make_the_optimal_proposal():
    """With x_t = z_t + noise the factors N(x_t, R) give p(z_t | z_t-1, x_t): less variance, and still unbiased."""
    model, best = (one_to_one(proposal) for proposal in ("prior", "optimal"))
    batch = one_sequence(model, 5)
    product = ProductProposal(5, 2, mean=batch.observations[0], scale=0.3**0.5)
    variances = {}
    for name, proposed in (("prior", model), ("product", Proposed(model, product)), ("optimal", best)):
        ratios = relative_evidence(FIVO(8), proposed, batch, 4000)
        assert mean_within(ratios, 1), name
        variances[name] = ratios.var()
    assert variances["product"] < 0.5 * variances["prior"]
    assert variances["product"] == pytest.approx(variances["optimal"], rel=0.2)


def one_to_one(proposal):
    return LinearGaussian(
        transition_matrix=jnp.asarray([[0.8, 0.2], [-0.3, 0.6]]),
        transition_covariance=jnp.asarray([[0.5, 0.1], [0.1, 0.3]]),
        emission_matrix=jnp.eye(2),
        emission_covariance=0.3 * jnp.eye(2),
        initial_mean=jnp.zeros(2),
        initial_covariance=jnp.eye(2),
        proposal=proposal,
    )


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: Proposed(Twisted(linear_gaussian(), ExactTwist()), LinearProposal(2, 1)), "without a twist"),
        (lambda: ProductProposal(0, 2), "num_steps must be a positive integer, got 0"),
        (lambda: LinearProposal(2, True), "got True"),
        (lambda: _run(Proposed(hidden_markov(), LinearProposal(1, 1))), "must be a Normal or a Gaussian"),
    ],
)
def test_mistakes_are_refused_in_one_sentence(make, part):
    with pytest.raises(InputError) as refusal:
        make()
    assert_one_sentence(refusal.value, part)


def _run(model):
    assert isinstance(model.bare, DiscreteHMM)
    FIVO(2)(model, np.zeros((2, 1), np.int32), key=jax.random.key(0))
