"""With the compiler off the same numbers come from plain programs."""

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
from fivo.models import VRNN, BernoulliEmission
from tests.helpers import linear_gaussian, one_sequence

BITS = (np.random.default_rng(0).random((2, 6, 3)) < 0.4).astype(np.float64)
CASES = {
    "VRNN": (lambda: VRNN(BernoulliEmission(np.full(3, 0.4)), 3, key=jax.random.key(0)), lambda m: BITS, FIVO(4)),
    "IWAE": (lambda: VRNN(BernoulliEmission(np.full(3, 0.4)), 3, key=jax.random.key(0)), lambda m: BITS, IWAE(4)),
    "many particles": (linear_gaussian, lambda m: one_sequence(m, 5).observations, FIVO(300)),
}


@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients_agree(x64, case):
    make, observe, bound = CASES[case]
    model = make()
    batch = fivo.Batch.from_sequences(list(observe(model)))

    def both():
        def total(parameters, static):
            found = bound(eqx.combine(parameters, static), batch, key=jax.random.key(1))
            return jnp.sum(found.log_evidence), found

        return jax.value_and_grad(total, has_aux=True)(*eqx.partition(model, eqx.is_inexact_array))

    fused = both()
    with fivo.config.fuse(False):
        plain = both()
    for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(fused), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mapped", [False, True])
def test_plain_random_numbers_are_the_same(mapped):
    from fivo._fuse import particle_keys, straight

    def draw():
        keys = particle_keys(straight(jax.random.key(3)), 5)
        some = lambda key: (jax.random.normal(key, (3,)), jax.random.bits(jax.random.split(key)[1], (2,)))  # noqa: E731
        return jax.jit(jax.vmap(some))(keys) if mapped else some(keys[2])

    fused = draw()
    with fivo.config.fuse(False):
        plain = draw()
    for a, b in zip(fused, plain, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("value", "expected"), [("0", "False"), ("1", "True"), ("", "True")])
def test_the_environment_switches_it(value, expected):
    program = "import fivo._fuse as f; print(f.enabled())"
    environment = {**os.environ, "FIVO_FUSE": value}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == expected


def test_other_backends_are_plain_unless_asked(monkeypatch):
    from fivo._fuse import enabled

    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert not enabled()
    with fivo.config.fuse(True):
        assert enabled()
