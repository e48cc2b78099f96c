"""The forward algorithm and the smoother against enumeration of all paths and against dynamax."""

import itertools
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fivo
from fivo.models import DiscreteHMM, simulate
from tests.fast import fast_jit
from tests.helpers import mean_within

pytestmark = pytest.mark.usefixtures("x64")

FROZEN = json.loads((Path(__file__).parents[1] / "oracles" / "dynamax.json").read_text())["hmm"]
INITIAL = np.array([0.6, 0.0, 0.4])
TRANSITION = np.array([[0.5, 0.5, 0.0], [0.0, 0.3, 0.7], [0.2, 0.2, 0.6]])
EMISSION = np.array([[0.7, 0.2, 0.1, 0.0], [0.1, 0.6, 0.0, 0.3], [0.0, 0.3, 0.3, 0.4]])


def model(proposal="prior"):
    """Some things cannot happen in it."""
    return DiscreteHMM(initial_probs=INITIAL, transition_probs=TRANSITION, emission_probs=EMISSION, proposal=proposal)


def path_probability(path, x, mask):
    probability = INITIAL[path[0]]
    for before, after in itertools.pairwise(path):
        probability *= TRANSITION[before, after]
    for state, symbol, seen in zip(path, x, mask, strict=True):
        probability *= EMISSION[state, symbol] if seen else 1
    return probability


def enumerate_paths(x, mask):
    """p(x) and p(z_t | x) from all paths."""
    paths = list(itertools.product(range(3), repeat=len(x)))
    weights = np.array([path_probability(path, x, mask) for path in paths])
    marginals = np.zeros((len(x), 3))
    for path, weight in zip(paths, weights, strict=True):
        marginals[np.arange(len(x)), path] += weight
    return weights.sum(), marginals / weights.sum()


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_evidence_and_posteriors_are_those_of_the_enumeration(missing):
    xs = [np.array([0, 1, 3, 3, 2]), np.array([2, 3, 1])]
    masks = [np.ones(len(x), bool) for x in xs]
    if missing:
        masks = [np.array([False, True, False, True, True]), np.array([True, True, False])]
    frames, seen = [x[:, None] for x in [*xs, xs[1]]], [m[:, None] for m in [*masks, masks[1]]]
    batch = fivo.Batch.from_sequences(frames, mask=seen if missing else None, pad_to=6)
    batch = fivo.Batch(batch.observations, batch.lengths.at[2].set(0), batch.mask)
    log_evidence, filtered, smoothed = model().log_evidence(batch), model().filtered(batch), model().smoothed(batch)
    assert log_evidence[2] == 0
    for i, (x, mask) in enumerate(zip(xs, masks, strict=True)):
        evidence, marginals = enumerate_paths(x, mask)
        np.testing.assert_allclose(log_evidence[i], np.log(evidence), rtol=1e-12)
        np.testing.assert_allclose(smoothed[i, : len(x)], marginals, atol=1e-12)
        for t in range(len(x)):
            _, until_now = enumerate_paths(x[: t + 1], mask[: t + 1])
            np.testing.assert_allclose(filtered[i, t], until_now[t], atol=1e-12)


def test_log_joint_of_every_path():
    x = np.array([0, 3, 2])
    paths = np.array(list(itertools.product(range(3), repeat=3)))
    log_joints = fast_jit(jax.vmap(lambda path: model().log_joint(path, jnp.asarray(x[:, None]))))(jnp.asarray(paths))
    expected = [path_probability(path, x, np.ones(3, bool)) for path in paths]
    np.testing.assert_allclose(np.exp(log_joints), expected, atol=1e-15)


@pytest.mark.parametrize("frozen", FROZEN, ids=lambda frozen: f"{len(frozen['parameters']['initial_probs'])}-state")
def test_agreement_with_dynamax(frozen):
    hmm = DiscreteHMM(**{name: np.array(value) for name, value in frozen["parameters"].items()})
    batch = fivo.Batch.from_sequences([np.array(frozen["observations"])[:, None]])
    got = {
        "log_evidence": hmm.log_evidence(batch),
        "filtered_probabilities": hmm.filtered(batch),
        "smoothed_probabilities": hmm.smoothed(batch),
    }
    for name, expected in frozen["expected"].items():
        np.testing.assert_allclose(got[name][0], expected, rtol=1e-10, atol=1e-11, err_msg=name)


@pytest.mark.parametrize("symbol", [-1, 4, 1.5])
def test_what_is_no_symbol_has_probability_zero(symbol):
    batch = fivo.Batch.from_sequences([np.array([[0.0], [symbol], [1.0]])])
    assert model().log_evidence(batch)[0] == -jnp.inf


def test_simulated_sequences_have_the_frequencies_of_the_chain():
    keys = jax.random.split(jax.random.key(5), 20_000)
    drawn = fast_jit(jax.vmap(lambda key: simulate(model(), 3, key=key)))(keys)
    states, symbols = np.eye(3)[drawn.latents[:, -1]], np.eye(4)[drawn.observations[:, -1, 0]]
    marginal = INITIAL @ TRANSITION @ TRANSITION
    assert mean_within(states, marginal)
    assert mean_within(symbols, marginal @ EMISSION)
