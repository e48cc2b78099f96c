"""Multiple importance sampling on a posterior that is a mixture: unbiased, sharp at its components, and learnable."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import fivo
from fivo.bounds import IWAE, MIS, AffineGate, AffineProposal, ConstantGate, OwnProposal
from tests.bounds.mixture import observations, two_hills
from tests.fast import fast_jit
from tests.helpers import linear_gaussian, mean_within, one_sequence, repeated
from tests.sentences import assert_one_sentence

NUM_RUNS = 20_000


@fast_jit
def log_evidence(bound, model, batch: fivo.Batch, key: jax.Array) -> jax.Array:
    return bound(model, batch, key=key).log_evidence


def rough() -> tuple[tuple[AffineProposal, ...], AffineGate]:
    """Proposals on both hills, but neither where nor as wide as they should be, and a gate that leans wrongly."""
    proposals = tuple(
        AffineProposal(jnp.full((1, 1), 0.1), jnp.full((1,), mean), jnp.full((1,), 0.1)) for mean in (-1.0, 1.0)
    )
    return proposals, AffineGate(jnp.asarray([[0.1], [-0.1]]), jnp.asarray([-0.3, 0.3]))


def ratios(bound, num_runs: int = NUM_RUNS) -> np.ndarray:
    """Draws of p̂/p for one observation."""
    model, batch = two_hills(), observations(1)
    drawn = log_evidence(bound, model, repeated(batch, num_runs), jax.random.key(0))
    return np.exp(np.asarray(drawn) - model.log_evidence(batch))


def test_the_mixture_estimator_is_unbiased_and_tightens_with_more_draws(x64):
    gaps = []
    for num_samples in (2, 16):
        drawn = ratios(MIS(*rough(), num_samples=num_samples))
        assert drawn.var() < 1
        assert mean_within(drawn, 1)
        gaps.append(-np.log(drawn).mean())
        assert gaps[-1] > 4 * np.log(drawn).std() / np.sqrt(NUM_RUNS)
    assert gaps[0] > 5 * gaps[1]


def test_it_is_sharp_where_the_mixture_is_the_posterior(x64):
    """Different observations, each with its own weights w_i(x)."""
    model, batch = two_hills(), observations(50)
    drawn = log_evidence(MIS(*model.exact()), model, batch, jax.random.key(1))
    np.testing.assert_allclose(drawn, model.log_evidence(batch), atol=1e-9)


def test_one_proposal_of_the_model_itself_is_iwae(x64):
    """With a single q the balance estimator averages plain importance weights: same mean, same variance."""
    own = ratios(MIS((OwnProposal(),), ConstantGate(jnp.zeros(1)), num_samples=4))
    plain = ratios(IWAE(4))
    assert mean_within(own, 1)
    difference = (own - 1) ** 2, (plain - 1) ** 2
    error = np.hypot(*(square.std() for square in difference)) / np.sqrt(NUM_RUNS)
    assert abs(difference[0].mean() - difference[1].mean()) < 4 * error


def test_whole_trajectories_of_a_sequential_model(x64):
    """The optimal proposal beside a rough one of the same latents, on a sequence with a step behind its end."""
    model = linear_gaussian("optimal")
    batch = one_sequence(model, 3)
    behind = jnp.full_like(batch.observations[:, :1], jnp.nan)
    padded = fivo.Batch(jnp.concatenate([batch.observations, behind], axis=1), batch.lengths)
    beside = AffineProposal(jnp.full((2, 1), 0.2), jnp.zeros(2), jnp.zeros(2))
    bound = MIS((OwnProposal(), beside), ConstantGate(jnp.asarray([1.5, 0.0])), num_samples=2)
    drawn = log_evidence(bound, model, repeated(padded, NUM_RUNS), jax.random.key(0))
    relative = np.exp(np.asarray(drawn) - np.asarray(model.log_evidence(batch)))
    assert relative.var() < 1
    assert mean_within(relative, 1)


def test_gradients_find_the_components_of_the_posterior_and_their_weights(x64):
    """q_i and w_i(x) from rough ones: the optimum is the posterior, at which the bound is the evidence.

    Observations between the hills, where the weights of both matter, each many times over for little noise.
    """
    x = np.array([-0.6, 0.0, 0.3, 0.9])
    model, batch = two_hills(), fivo.Batch.from_sequences(np.repeat(x, 50)[:, None, None])
    exact = model.log_evidence(batch).mean()
    bound = MIS(*rough(), num_samples=2)
    optimiser = optax.adam(optax.cosine_decay_schedule(0.05, 800))

    def loss(bound, key):
        return -jnp.mean(bound(model, batch, key=key).log_evidence)

    def step(carry, key):
        bound, state = carry
        value, gradient = jax.value_and_grad(loss)(bound, key)
        updates, state = optimiser.update(gradient, state)
        return (eqx.apply_updates(bound, updates), state), -value

    @fast_jit
    def train(bound):
        keys = jax.random.split(jax.random.key(0), 800)
        return jax.lax.scan(step, (bound, optimiser.init(bound)), keys)

    (trained, _), values = train(bound)
    assert exact - values[0] > 0.1
    assert abs(exact - np.mean(values[-50:])) < 1e-3
    one = lambda x: trained.gate(fivo.Sequence(x[None], jnp.asarray(1)))  # noqa: E731
    logits = np.asarray(jax.vmap(one)(jnp.asarray(x[:, None])))
    weights = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(weights, model.responsibilities(x), atol=0.04)
    for found, true in zip(trained.proposals, model.exact()[0], strict=True):
        np.testing.assert_allclose(found.gain, true.gain, atol=0.05)
        np.testing.assert_allclose(found.bias, true.bias, atol=0.05)
        np.testing.assert_allclose(found.log_scale, true.log_scale, atol=0.05)


def test_bad_settings():
    model, batch = two_hills(), observations(1)
    for make, part in (
        (lambda: MIS((), ConstantGate(jnp.zeros(1))), "at least one proposal, got none"),
        (
            lambda: MIS((OwnProposal(),), ConstantGate(jnp.zeros(1)), num_samples=0),
            "num_samples must be a positive integer, got 0",
        ),
        (
            lambda: MIS((OwnProposal(),), ConstantGate(jnp.zeros(2)))(model, batch, key=jax.random.key(0)),
            "2 proposals",
        ),
    ):
        with pytest.raises(fivo.InputError) as refusal:
            make()
        assert_one_sentence(refusal.value, part)
