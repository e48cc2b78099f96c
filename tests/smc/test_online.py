"""One frame at a time: the numbers of the filter on the whole sequence, and a state that survives its process."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fivo
from tests.fast import fast_jit
from tests.models.cases import CASES, CAUSAL_CASES
from tests.models.protocol import assert_close
from tests.sentences import assert_one_sentence
from tests.smc.stream import NUM_FRAMES, start

pytestmark = pytest.mark.usefixtures("x64")

ROOT = Path(__file__).parents[2]
ONE_A_MODEL = [
    case
    for case in CAUSAL_CASES
    if case.name in ("linear_gaussian-optimal", "discrete_hmm-optimal", "stochastic_volatility-learned")
]
# One of every kind; the plain one's proposal is its prior.
COMPLETE = [
    case
    for case in CAUSAL_CASES
    if case in ONE_A_MODEL or case.name in ("vae", "plain", "vrnn-notes", "srnn-symbols", "dmm-samples")
]
SETTINGS = [
    *(pytest.param(case, False, {}, id=f"{case}-complete") for case in COMPLETE),
    *(pytest.param(case, True, {}, id=f"{case}-missing") for case in ONE_A_MODEL),
    pytest.param(ONE_A_MODEL[0], True, {"criterion": fivo.resampling.Never()}, id=f"{ONE_A_MODEL[0]}-never"),
]
step = fast_jit(lambda pf, model, state, x, mask: pf.step(model, state, x, mask=mask))


@pytest.mark.parametrize(("case", "masked", "changes"), SETTINGS)
def test_a_stream_gives_the_numbers_of_the_filter(case, masked, changes):
    model, pf, state = start(case, **changes)
    x = jnp.asarray(case.sequences(NUM_FRAMES)[0])
    mask = jnp.asarray(case.masks(NUM_FRAMES)[0]) if masked else None
    batch = fivo.Batch(x[None], jnp.asarray([NUM_FRAMES]), None if mask is None else mask[None])
    whole = fast_jit(
        lambda model, batch, keys: pf(model, batch, key=keys, keep=("log_weights", "ancestors", "latents"))
    )(model, batch, state.key[None])
    assert bool(whole.resampled.any()) == (not changes)

    for t in range(NUM_FRAMES):
        state, info = step(pf, model, state, x[t], None if mask is None else mask[t])
        got = (info.log_increment, info.ess, info.resampled, info.log_weights, info.ancestors, info.latents, info.kl)
        expected = jax.tree.map(
            lambda leaf, t=t: leaf[0, t],
            (
                whole.log_increments,
                whole.ess,
                whole.resampled,
                whole.log_weights,
                whole.ancestors,
                whole.latents,
                whole.kl,
            ),
        )
        assert_close(got, expected, f"step {t}")
    result = pf.finish(state)
    assert_close(result.log_evidence, whole.log_evidence[0], "log evidence")
    assert_close(result.particles, jax.tree.map(lambda leaf: leaf[0], whole.particles), "final particles")
    assert int(result.num_steps) == NUM_FRAMES
    assert bool(result.alive)


def test_a_saved_state_continues_in_a_new_process_to_the_bit(tmp_path):
    for case in ONE_A_MODEL:
        model, pf, state = start(case)
        for t, x in enumerate(jnp.asarray(case.sequences(NUM_FRAMES)[0])):
            if t == NUM_FRAMES // 2:
                fivo.save(tmp_path / f"{case.name}.half", state)
            state, _ = pf.step(model, state, x)
        fivo.save(tmp_path / f"{case.name}.whole", state)

    source = Path(fivo.__file__).parents[1]
    environment = os.environ | {"JAX_ENABLE_X64": "1", "PYTHONPATH": f"{ROOT}{os.pathsep}{source}"}
    command = [sys.executable, "-m", "tests.smc.continue_stream", str(tmp_path), *(case.name for case in ONE_A_MODEL)]
    subprocess.run(command, env=environment, check=True, timeout=300)
    for case in ONE_A_MODEL:
        whole, half = (tmp_path / f"{case.name}.{part}" for part in ("whole", "half"))
        assert (tmp_path / f"{case.name}.continued").read_bytes() == whole.read_bytes()
        assert half.read_bytes() != whole.read_bytes()


def test_a_smoothing_proposal_refuses_to_stream():
    smoothing = next(case for case in CASES if case not in CAUSAL_CASES)
    with pytest.raises(fivo.InputError) as refusal:
        fivo.ParticleFilter(6).init(smoothing.build(np.float64), key=jax.random.key(0))
    assert_one_sentence(refusal.value, "future", "filter")


def test_a_dead_stream_stays_dead():
    """Evidence -inf is a fact about the whole stream: no later frame brings it back."""
    model = fivo.models.DiscreteHMM(
        initial_probs=np.array([0.5, 0.5]),
        transition_probs=np.array([[0.9, 0.1], [0.2, 0.8]]),
        emission_probs=np.array([[0.6, 0.4, 0.0], [0.3, 0.7, 0.0]]),
    )
    pf = fivo.ParticleFilter(4)
    state = pf.init(model, key=jax.random.key(0))
    for symbol in (0, 2, 1):
        state, info = pf.step(model, state, jnp.asarray([symbol]))
        assert not np.isnan(info.log_weights).any()
    result = pf.finish(state)
    assert result.log_evidence == -jnp.inf
    assert not bool(result.alive)
