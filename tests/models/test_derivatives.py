"""Derivatives that are written down equal those of the plain definitions, forwards, backwards and twice."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from fivo.distributions import Bernoulli, Normal, softplus
from fivo.models._layers import FORGET_BIAS, lstm_cell
from tests.fast import fast_jit


def plain_cell(cell, gates):
    enter, candidate, forget, leave = jnp.split(gates, 4)
    cell = jax.nn.sigmoid(forget + FORGET_BIAS) * cell + jax.nn.sigmoid(enter) * jnp.tanh(candidate)
    return jax.nn.sigmoid(leave) * jnp.tanh(cell), cell


def our_cell(cell, gates):
    state = lstm_cell(cell, gates)
    return state.hidden, state.cell


def draws(*shapes):
    return [2 * jax.random.normal(jax.random.key(i), shape, jnp.float64) for i, shape in enumerate(shapes)]


CASES = {
    "lstm": (our_cell, plain_cell, [(5,), (20,)]),
    "softplus": (softplus, jax.nn.softplus, [(6,)]),
    "normal": (
        lambda z, loc, raw: Normal(loc, softplus(raw)).log_prob(z),
        lambda z, loc, raw: dist.Normal(loc, jax.nn.softplus(raw)).log_prob(z),
        [(4,), (4,), (4,)],
    ),
    "normal, one scale": (
        lambda z, loc, raw: Normal(loc, softplus(raw)).log_prob(z),
        lambda z, loc, raw: dist.Normal(loc, jax.nn.softplus(raw)).log_prob(z),
        [(4,), (4,), (1,)],
    ),
    "bernoulli": (
        lambda logits: Bernoulli(logits).log_prob(jnp.array([0, 1, 1, 0], jnp.uint8)),
        lambda logits: dist.BernoulliLogits(logits).log_prob(jnp.array([0, 1, 1, 0], jnp.uint8)),
        [(4,)],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_values_and_derivatives(x64, case):
    ours, plain, shapes = CASES[case]
    arguments = draws(*shapes)
    everything = tuple(range(len(arguments)))

    def scalar(function):
        return lambda *xs: sum(jnp.sum(jnp.sin(leaf)) for leaf in jax.tree.leaves(function(*xs)))

    def all_of(f):
        return fast_jit(
            lambda *xs: (
                f(*xs),
                jax.jacfwd(f, everything)(*xs),
                jax.jacrev(f, everything)(*xs),
                jax.hessian(scalar(f), everything)(*xs),
            )
        )(*arguments)

    for got, expected in zip(jax.tree.leaves(all_of(ours)), jax.tree.leaves(all_of(plain)), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12)


def test_saturated_gates_and_logits_have_finite_derivatives():
    gates = jnp.array([100.0, -100.0, 100.0, -100.0])
    slopes = jax.grad(lambda g: lstm_cell(jnp.ones(1), g).hidden.sum())(gates)
    assert np.isfinite(slopes).all()
    logits = jnp.array([200.0, -200.0])
    np.testing.assert_allclose(Bernoulli(logits).log_prob(jnp.array([0, 1])), [-200, -200])
    np.testing.assert_allclose(jax.grad(lambda v: Bernoulli(v).log_prob(jnp.array([0, 1])).sum())(logits), [-1, 1])
