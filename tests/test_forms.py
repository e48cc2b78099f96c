"""Sequences may be given as arrays or lists wherever a batch is, and mean the same."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fivo
from fivo import Batch, InputError, ParticleFilter
from fivo.bounds import AIS, ELBO, FIVO, HMC, IWAE, MIS, ConstantGate, OwnProposal, SMCSampler, sandwich, temperatures
from fivo.models import check_model
from fivo.smc import Copy, anneal, backward_simulate, conditional_filter, fixed_lag, particle_gibbs
from tests.covering import covering
from tests.helpers import hidden_markov, linear_gaussian
from tests.sentences import assert_one_sentence

KEY, PF = jax.random.key(0), ParticleFilter(3)
KEEP = ("log_weights", "ancestors", "latents")
MODEL = linear_gaussian("optimal")
X = np.random.default_rng(0).standard_normal((2, 4, 1)).astype(np.float32)
FORMS = {
    "a sequence": (X[0], Batch.from_sequences(X[:1])),
    "a sequence of JAX": (jnp.asarray(X[0]), Batch.from_sequences(X[:1])),
    "sequences of one length": (X, Batch.from_sequences(X)),
    "sequences of JAX": (jnp.asarray(X), Batch.from_sequences(X)),
    "a list": ([X[0], X[1, :3]], Batch.from_sequences([X[0], X[1, :3]])),
    "a tuple": ((X[0], jnp.asarray(X[1, :3])), Batch.from_sequences([X[0], X[1, :3]])),
    "nested lists": (X.tolist(), Batch.from_sequences(X)),
}


def reference(x) -> jax.Array:
    """A trajectory for every sequence."""
    sequences = 1 if hasattr(x, "ndim") and x.ndim == 2 else len(x) if isinstance(x, list | tuple) else x.shape[0]
    return jnp.zeros((sequences, 4, 2))


def filtered(x):
    return PF(MODEL, x, key=KEY, keep=KEEP)


USES = {
    "filter": filtered,
    "FIVO": lambda x: FIVO(3)(MODEL, x, key=KEY),
    "IWAE": lambda x: IWAE(3)(MODEL, x, key=KEY),
    "ELBO": lambda x: ELBO(2)(MODEL, x, key=KEY),
    "ELBO by scores": lambda x: ELBO(2, gradient="latent-score")(MODEL, x, key=KEY),
    "AIS": lambda x: AIS(2, temperatures.linear(2), HMC(0.1, 1))(MODEL, x, key=KEY),
    "SMC sampler": lambda x: SMCSampler(2, temperatures.linear(2), Copy())(MODEL, x, key=KEY),
    "MIS": lambda x: MIS((OwnProposal(),), ConstantGate(jnp.zeros(1)))(MODEL, x, key=KEY),
    "exact evidence": MODEL.log_evidence,
    "exact moments": lambda x: (MODEL.filtered(x), MODEL.smoothed(x)),
    "evidence of symbols": lambda x: hidden_markov().log_evidence(jax.tree.map(np.zeros_like, x)),
    "conditional filter": lambda x: conditional_filter(PF, MODEL, x, reference(x), key=KEY, keep=KEEP),
    "particle Gibbs": lambda x: particle_gibbs(PF, MODEL, x, num_sweeps=2, key=KEY),
    "sandwich": lambda x: sandwich(PF, MODEL, x, reference(x), key=KEY),
    "annealing": lambda x: anneal(PF, MODEL, x, betas=jnp.asarray([0.0, 1.0]), kernel=Copy(), key=KEY),
    "adapted temperatures": lambda x: jnp.asarray(temperatures.adapted(MODEL, x, 2, Copy(), key=KEY).values),
    "backward simulation": lambda x: backward_simulate(MODEL, x, filtered(x), num_trajectories=2, key=KEY),
    "fixed lag": lambda x: fixed_lag(MODEL, x, filtered(x), lag=1),
}


def same(got, expected) -> bool:
    return jax.tree.all(jax.tree.map(np.array_equal, got, expected))


@covering("use, form", USES, ["a sequence", "sequences of one length", "a list"], strength=1)
def test_every_use_takes_every_form(use, form):
    x, batch = FORMS[form]
    given = USES[use]

    def of_batch(batch):
        if use in ("conditional filter", "sandwich"):
            run = conditional_filter if use == "conditional filter" else sandwich
            keep = {"keep": KEEP} if use == "conditional filter" else {}
            return run(PF, MODEL, batch, jnp.zeros((len(batch.lengths), 4, 2)), key=KEY, **keep)
        if use == "evidence of symbols":
            return hidden_markov().log_evidence(Batch(jnp.zeros_like(batch.observations), batch.lengths))
        return given(batch)

    assert same(given(x), of_batch(batch))


@pytest.mark.parametrize("form", FORMS)
def test_the_filter_takes_what_users_have(form):
    x, batch = FORMS[form]
    assert same(filtered(x), filtered(batch))


@pytest.mark.parametrize("x", [X[0], X], ids=["a sequence", "sequences"])
def test_arrays_may_be_traced(x):
    """Inside of `jit`, where nobody can look at their numbers."""
    traced = jax.jit(lambda x: FIVO(3)(MODEL, x, key=KEY).log_evidence)(jnp.asarray(x))
    np.testing.assert_allclose(traced, FIVO(3)(MODEL, x, key=KEY).log_evidence, rtol=1e-5)
    slope = jax.grad(lambda x: jnp.sum(MODEL.log_evidence(x)))(jnp.asarray(x))
    assert slope.shape == x.shape
    assert np.any(slope != 0)


def test_an_example_to_check_a_model_with_may_be_an_array():
    assert str(check_model(MODEL, X[0])) == str(check_model(MODEL, Batch.from_sequences(X[:1])))


REFUSED = {
    "one dimension": (np.zeros(4), "(4,)"),
    "four dimensions": (np.zeros((1, 1, 4, 1)), "(1, 1, 4, 1)"),
    "no dimensions": (np.zeros(()), "shape ()"),
    "a number": (3.0, "got float"),
    "nothing": (None, "got NoneType"),
    "a name": ("jsb", "got str"),
    "an empty list": ([], "got an empty list"),
    "an array without steps": (np.zeros((0, 1)), "at least one frame"),
    "NaN": (np.full((4, 1), np.nan), "NaN"),
    "a mapping": ({"x": X}, "got dict"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_anything_else_is_refused_in_one_sentence(name):
    x, part = REFUSED[name]
    for use in (filtered, USES["FIVO"], USES["exact evidence"]):
        with pytest.raises(InputError) as refusal:
            use(x)
        assert_one_sentence(refusal.value, part)


def test_a_traced_array_of_another_rank_is_refused():
    with pytest.raises(InputError) as refusal:
        jax.eval_shape(lambda x: fivo.bounds.FIVO(2)(MODEL, x, key=KEY), jnp.zeros(3))
    assert_one_sentence(refusal.value, "(3,)")
