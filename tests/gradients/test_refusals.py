"""Gradients that mean nothing for a bound or a model are refused with a sentence that names another."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fivo
from fivo.bounds import ELBO, FIVO, IWAE
from fivo.gradients import OtherFilters, OtherParticles, ResamplingScore, Score, get_gradient
from fivo.resampling import Soft
from tests.gradients.switching import Switching
from tests.helpers import hidden_markov, one_sequence
from tests.sentences import assert_one_sentence


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: IWAE(4, gradient="resampling-score"), "'pathwise'"),
        (lambda: IWAE(4, gradient="stop-gradient"), "'pathwise'"),
        (lambda: ELBO(gradient="doubly-reparameterized"), "'sticking-the-landing'"),
        (lambda: FIVO(4, resampling="residual", gradient="score"), "multinomial"),
        (lambda: FIVO(4, resampling="soft", gradient="score"), "'pathwise'"),
        (lambda: FIVO(4, resampling=Soft(0.3), gradient="doubly-reparameterized"), "multinomial"),
        (lambda: FIVO(4, resampling="systematic", gradient=Score(OtherParticles())), "'filters'"),
        (lambda: FIVO(1, gradient=ResamplingScore("particles")), "'filters'"),
        (lambda: FIVO(300, resampling="transport"), "at most 256"),
        (lambda: FIVO(4, gradient="magic"), "pathwise"),
        (lambda: get_gradient("score", "magic"), "moving-average"),
        (lambda: get_gradient("pathwise", "filters"), "resampling-score"),
        (lambda: OtherFilters(1), "at least two"),
    ],
)
def test_what_means_nothing(make, part):
    with pytest.raises(fivo.InputError) as caught:
        make()
    assert_one_sentence(str(caught.value), part)


@pytest.mark.parametrize("gradient", ["pathwise", "resampling-score", "doubly-reparameterized", "sticking-the-landing"])
def test_discrete_latents_have_no_paths(gradient):
    model = hidden_markov("optimal")
    batch = one_sequence(model, 3)
    bound = FIVO(2, gradient=gradient)
    with pytest.raises(fivo.InputError) as caught:
        jax.eval_shape(jax.grad(lambda m: jnp.sum(bound(m, batch, key=jax.random.key(0)).log_evidence)), model)
    assert_one_sentence(str(caught.value), "'score'")


def test_the_value_of_a_bound_needs_no_gradient():
    model = hidden_markov("optimal")
    batch = one_sequence(model, 3)
    values = [
        FIVO(2, gradient=gradient)(model, batch, key=jax.random.key(0)).log_evidence
        for gradient in ("pathwise", "score", "stop-gradient")
    ]
    np.testing.assert_allclose(values[1], values[0], rtol=1e-6)
    np.testing.assert_allclose(values[2], values[0], rtol=1e-6)


@pytest.mark.parametrize("gradient", ["pathwise", "resampling-score", "doubly-reparameterized", "sticking-the-landing"])
def test_a_discrete_part_among_continuous_ones_has_no_path(gradient):
    model = Switching(jnp.zeros(2), jnp.array([0.5, 2.0]))
    batch = fivo.Batch.from_sequences([np.ones((3, 1), np.float32)])
    bound = FIVO(2, gradient=gradient)
    with pytest.raises(fivo.InputError) as caught:
        jax.eval_shape(jax.grad(lambda m: jnp.sum(bound(m, batch, key=jax.random.key(0)).log_evidence)), model)
    assert_one_sentence(str(caught.value), "'score'")
