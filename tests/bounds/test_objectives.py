"""One protocol for all objectives: a bound takes a model, a batch and a key, and nothing else."""

import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import fivo
from fivo.bounds import AIS, ELBO, FIVO, HMC, IWAE, MIS, Bound, ConstantGate, OwnProposal, SMCSampler, temperatures
from tests.bounds.mixture import observations, two_hills
from tests.fast import fast_jit
from tests.helpers import linear_gaussian, one_sequence, repeated

OBJECTIVES = {
    "elbo": ELBO(),
    "iwae": IWAE(4),
    "fivo": FIVO(4),
    "ais": AIS(4, temperatures.linear(4), HMC(0.8, 2)),
    "smc-sampler": SMCSampler(4, temperatures.linear(4), HMC(0.8, 2)),
    "mis": MIS((OwnProposal(),), ConstantGate(jnp.zeros(1)), num_samples=4),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_objective_bounds_the_evidence_of_a_plain_model(name):
    """Values and gradients in one program, for observations that are sequences of one frame."""
    bound, model, batch = OBJECTIVES[name], two_hills(), observations(500)
    assert isinstance(bound, Bound)
    assert list(inspect.signature(bound).parameters) == ["model", "batch", "key"]
    assert inspect.signature(bound).parameters["key"].kind is inspect.Parameter.KEYWORD_ONLY

    def mean(model, batch, key):
        result = bound(model, batch, key=key)
        return jnp.mean(result.log_evidence), result

    (_, result), gradient = fast_jit(jax.value_and_grad(mean, has_aux=True))(model, batch, jax.random.key(0))
    gap = model.log_evidence(batch) - np.asarray(result.log_evidence)
    assert gap.mean() > 4 * gap.std() / np.sqrt(gap.size)
    assert result.info.ess.shape[0] == 500
    assert all(np.isfinite(leaf).all() and (leaf != 0).all() for leaf in jax.tree.leaves(gradient))


def test_annealing_trains_a_proposal_to_the_posterior(x64):
    """q(z | x) of a linear-Gaussian model: its optimum is N(m + K (x - C m), (I - K C) P), where AIS is sharp.

    The gradient leaves out the decisions to accept, but not there: at the posterior all weights are equal.
    """
    model = linear_gaussian("learned")
    batch = repeated(one_sequence(model, 1), 40)
    spread = jax.random.normal(jax.random.key(0), batch.observations.shape, batch.observations.dtype)
    batch = fivo.Batch(2 * spread, batch.lengths)
    exact = np.asarray(model.log_evidence(batch)).mean()
    bound = AIS(2, fivo.bounds.LearnedTemperatures(3), HMC(0.5, 1))
    optimiser = optax.adam(optax.cosine_decay_schedule(0.05, 300))

    def step(carry, key):
        (learned, bound), state = carry

        def loss(trained):
            learned, bound = trained
            whole = eqx.tree_at(lambda m: m.learned, model, learned)
            return -jnp.mean(bound(whole, batch, key=key).log_evidence)

        value, gradient = jax.value_and_grad(loss)((learned, bound))
        updates, state = optimiser.update(gradient, state)
        return (eqx.apply_updates((learned, bound), updates), state), -value

    @fast_jit
    def train(trained):
        return jax.lax.scan(step, (trained, optimiser.init(trained)), jax.random.split(jax.random.key(1), 300))

    ((learned, _), _), values = train((model.learned, bound))
    assert exact - values[0] > 0.1
    assert abs(exact - np.mean(values[-30:])) < 1e-3
    c, p = np.asarray(model.emission_matrix), np.asarray(model.initial_covariance)
    gain = p @ c.T @ np.linalg.inv(c @ p @ c.T + np.asarray(model.emission_covariance))
    np.testing.assert_allclose(learned.gain, gain, atol=0.02)
    np.testing.assert_allclose(learned.bias, 0, atol=0.02)
    scale = np.tril(np.asarray(learned.scale_tril))
    np.testing.assert_allclose(scale @ scale.T, p - gain @ c @ p, atol=0.06)
