"""`jax.shard_map` with its default checks: sequences over devices give the numbers of one device."""

import subprocess
import sys

import pytest

from tests.fast import UNOPTIMISED

PROGRAM = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import AxisType, PartitionSpec as P
import fivo
from fivo.bounds import FIVO
from fivo.models import VRNN, BernoulliEmission

jax.config.update("jax_enable_x64", True)
model = VRNN(BernoulliEmission(np.full(2, 0.5)), 4, key=jax.random.key(1))
model = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), model)
x = jnp.asarray(np.random.default_rng(0).integers(0, 2, (2, 3, 2)), jnp.float64)
keys = jax.random.split(jax.random.key(0), 2)
mesh = jax.make_mesh((2,), ("sequences",), axis_types=(AxisType.Auto,))


def values(model, x, keys):
    return FIVO(4)(model, x, key=keys).log_evidence


spread = jax.shard_map(
    values, mesh=mesh, in_specs=(P(), P("sequences"), P("sequences")), out_specs=P("sequences")
)
with fivo.config.fuse({fuse}):
    loss = lambda function: jax.jit(jax.value_and_grad(lambda m: function(m, x, keys).mean()))(model)
    for mine, theirs in zip(*(jax.tree.leaves(loss(function)) for function in (spread, values))):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
print(len(jax.devices()))
"""


@pytest.mark.parametrize("fuse", [True, False])
def test_sequences_over_two_devices(fuse, monkeypatch):
    flags = [f"--{name}={str(value).lower()}" for name, value in UNOPTIMISED.items()]
    monkeypatch.setenv("XLA_FLAGS", " ".join(["--xla_force_host_platform_device_count=2", *flags]))
    program = PROGRAM.replace("{fuse}", str(fuse))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "2"
