"""Drawing sequences from a model: x and z from p, one frame at a time."""

from typing import NamedTuple

import equinox as eqx
import jax
from jax import lax
from jaxtyping import Array, Key, PyTree, Shaped

from fivo.models.contract import SequenceModel
from fivo.models.scoring import sample, weight_dtype


class Generator(NamedTuple):
    """Where a simulation stands: everything that the next frame depends on."""

    state: PyTree
    past: PyTree
    memory: PyTree


class Simulation(NamedTuple):
    """Latents and observations of one simulated sequence."""

    latents: PyTree
    observations: Shaped[Array, "time dim"]


@eqx.filter_jit
def simulate(
    model: SequenceModel, num_steps: int, *, key: Key[Array, ""], start: Generator | None = None
) -> Simulation:
    """x_1:T and z_1:T drawn from p, or their continuation from `start`."""
    if start is None:
        past, memory = model.initial_memory()
        start = Generator(model.initial_state(past), past, memory)

    dtype = weight_dtype(model)

    def step(generator: Generator, key: Key[Array, ""]) -> tuple[Generator, Simulation]:
        state, past, memory = generator
        latent_key, observation_key = jax.random.split(key)
        latent = sample(model.prior(state, past), latent_key, dtype)
        x = sample(model.emission(state, latent, past), observation_key, dtype)
        _, past_next, memory = model.encode_next(memory, x, None)
        return Generator(model.advance(state, latent, past_next), past_next, memory), Simulation(latent, x)

    return lax.scan(step, start, jax.random.split(key, num_steps))[1]
