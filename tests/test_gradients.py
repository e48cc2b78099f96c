"""`jax.grad` of a bound is the paper's estimator: exact where it is known, pathwise given the ancestors."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from fivo import ParticleFilter
from fivo.bounds import ELBO, FIVO, IWAE
from fivo.models import LinearGaussian
from fivo.resampling import Always
from tests.fast import fast_jit
from tests.helpers import linear_gaussian, mean_within, one_sequence, repeated
from tests.oracles.moments import DenseGaussian


def test_with_the_smoothing_proposal_every_draw_is_the_exact_gradient(x64):
    """log p̂ = log p for all parameters, so that their gradients are equal too, parameter by parameter."""
    model = linear_gaussian("smoothing")
    batch = one_sequence(model, 6)
    exact = fast_jit(jax.grad(lambda model: model.log_evidence(batch)[0]))(model)
    for bound in (ELBO(), IWAE(3)):
        run = partial(bound, key=jax.random.key(0))
        gradient = fast_jit(jax.grad(lambda model, run=run: run(model, batch).log_evidence[0]))(model)
        for got, expected in zip(jax.tree.leaves(gradient), jax.tree.leaves(exact), strict=True):
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-8)


def with_decay(model: LinearGaussian, decay: jax.Array) -> LinearGaussian:
    """The model with its transition matrix scaled."""
    return eqx.tree_at(lambda m: m.transition_matrix, model, decay * model.transition_matrix)


def test_the_gradient_of_the_elbo_is_unbiased(x64):
    model = linear_gaussian()
    batch = one_sequence(model, 6)

    def closed_form(decay: float) -> float:
        return DenseGaussian(with_decay(model, jnp.asarray(decay)), 6).elbo(batch.observations[0])

    exact = (closed_form(1 + 1e-5) - closed_form(1 - 1e-5)) / 2e-5

    def estimate(decay: jax.Array, key: jax.Array) -> jax.Array:
        return ELBO()(with_decay(model, decay), batch, key=key).log_evidence[0]

    keys = jax.random.split(jax.random.key(0), 5_000)
    samples = fast_jit(jax.vmap(jax.grad(estimate), in_axes=(None, 0)))(jnp.asarray(1.0), keys)
    assert samples.std() > 0.1
    assert mean_within(samples, exact)


def test_the_gradient_of_fivo_is_pathwise_with_the_ancestors_held_fixed(x64):
    model = linear_gaussian()
    batch = repeated(one_sequence(model, 6), 20)

    @fast_jit
    def run(decay: jax.Array):
        pf = ParticleFilter(4, criterion=Always())
        result = pf(with_decay(model, decay), batch, key=jax.random.key(0), keep=("ancestors",))
        return result.log_evidence, result.ancestors

    @fast_jit
    @jax.jacrev
    def jacobian(decay: jax.Array):
        return FIVO(4, criterion=Always())(with_decay(model, decay), batch, key=jax.random.key(0)).log_evidence

    step = 1e-6
    (above, ancestors), (below, same_ancestors) = run(jnp.asarray(1 + step)), run(jnp.asarray(1 - step))
    np.testing.assert_array_equal(ancestors, same_ancestors)
    assert (np.asarray(ancestors) != np.arange(4)).any()
    np.testing.assert_allclose(jacobian(jnp.asarray(1.0)), (above - below) / (2 * step), rtol=1e-6, atol=1e-7)
