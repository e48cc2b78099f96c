"""Compile once per shape: new numbers, keys, models and bounds of the same form reuse the program."""

import os
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fivo
from fivo.bounds import FIVO, IWAE
from fivo.models import LinearGaussian
from fivo.resampling import ESSBelow

TRACED = []


class Counting(LinearGaussian):
    """Notes when a program is made of it; running the program does not pass here."""

    def encode(self, sequence):
        TRACED.append("batch")
        return super().encode(sequence)

    def encode_next(self, memory, x, mask, inputs):
        TRACED.append("frame")
        return super().encode_next(memory, x, mask, inputs)


def model(drift=0.9):
    return Counting(
        transition_matrix=np.array([[drift]]),
        transition_covariance=np.array([[0.5]]),
        emission_matrix=np.array([[1.0]]),
        emission_covariance=np.array([[0.3]]),
        initial_mean=np.array([0.0]),
        initial_covariance=np.array([[1.0]]),
    )


def batch(*lengths, seed=0):
    rng = np.random.default_rng(seed)
    return fivo.Batch.from_sequences([rng.standard_normal((length, 1)) for length in lengths], pad_to=6)


@pytest.fixture(autouse=True)
def forget():
    TRACED.clear()
    jax.clear_caches()


def test_the_filter_is_traced_once_per_shape():
    def run(data, drift=0.9, seed=0, keep=("log_weights", "ancestors"), **setting):
        pf = fivo.ParticleFilter(**{"num_particles": 3, "resampling": "systematic"} | setting)
        pf(model(drift), data, key=jax.random.key(seed), keep=keep)

    run(batch(6, 4))
    assert TRACED == ["batch"]
    run(batch(6, 4), seed=1)
    run(batch(6, 4), drift=0.5)
    run(batch(3, 5, seed=2))
    run(batch(6, 4), criterion=ESSBelow(0.5))
    run(batch(6, 4), keep=["ancestors", "log_weights"])
    assert TRACED == ["batch"], "only numbers were new"
    run(batch(6, 4, 5))
    run(batch(6, 4), num_particles=4)
    assert TRACED == ["batch"] * 3, "each was a new program"


def test_equal_bounds_share_a_program():
    for seed in range(3):
        FIVO(3, "stratified", ESSBelow(0.3))(model(), batch(6, 4), key=jax.random.key(seed))
    assert TRACED == ["batch"]
    IWAE(3)(model(), batch(6, 4), key=jax.random.key(0))
    IWAE(3)(model(0.1), batch(1, 2), key=jax.random.split(jax.random.key(0), 2))
    assert TRACED == ["batch"] * 2


def test_a_gradient_step_is_traced_once():
    @eqx.filter_jit
    def step(model, data, key):
        loss = eqx.filter_grad(lambda m: -jnp.sum(FIVO(3)(m, data, key=key).log_evidence))
        return eqx.apply_updates(model, jax.tree.map(lambda g: -1e-3 * g, loss(model)))

    trained = model()
    for seed in range(3):
        trained = step(trained, batch(6, 4, seed=seed), jax.random.key(seed))
    assert TRACED == ["batch"]


def test_a_stream_is_traced_once():
    pf = fivo.ParticleFilter(3)
    state = pf.init(model(), key=jax.random.key(0))
    for x in np.random.default_rng(0).standard_normal((4, 1)):
        state, _ = pf.step(model(), state, jnp.asarray(x))
    assert TRACED == ["frame"]


PRINT_DIGEST = """
import hashlib, equinox as eqx, jax, jax.numpy as jnp, fivo
model = fivo.models.VRNN(fivo.models.NormalEmission(jnp.zeros(3)), 2, key=jax.random.key(0))
batch = fivo.Batch(jnp.zeros((2, 5, 3)), jnp.full((2,), 5))
def loss(model, batch, key):
    return fivo.bounds.FIVO(2)(model, batch, key=key).log_evidence.sum()
program = jax.jit(lambda *inputs: eqx.filter_grad(loss)(*inputs)).lower(model, batch, jax.random.key(1)).as_text()
print(hashlib.sha256(program.encode()).hexdigest())
"""


def test_every_process_makes_the_same_program():
    # Or one would not find what another has compiled and kept on disk. A set of "loc" and "scale" is in one order with
    # the first of these seeds, in the other with the second.
    environments = [{**os.environ, "PYTHONHASHSEED": seed} for seed in ("1", "6")]
    digests = {subprocess.check_output([sys.executable, "-c", PRINT_DIGEST], env=env) for env in environments}
    assert len(digests) == 1
