"""New sequences from a trained model, from its prior or as the continuation of a given beginning."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Key, PyTree, Shaped

from fivo.batch import Batch
from fivo.errors import InputError
from fivo.models import Generator, SequenceModel, simulate
from fivo.smc import ParticleFilter


def sample(
    model: SequenceModel,
    length: int,
    *,
    key: Key[Array, ""],
    prefix: Shaped[np.ndarray, "time dim"] | None = None,
    num_particles: int = 128,
) -> Shaped[np.ndarray, "length dim"]:
    """Draw new frames; a prefix is filtered first, and one of its particles, drawn by weight, carries on.

    Args:
        model: The model.
        length: How many frames.
        key: A random key.
        prefix: Frames to continue [time, dim].
        num_particles: Of the filter that reads the prefix.

    Returns:
        The new frames [length, dim].
    """
    if length < 1:
        raise InputError(f"length must be at least 1, got {length}.")
    filter_key, choice_key, draw_key = jax.random.split(key, 3)
    start = (
        None
        if prefix is None
        else _continue(model, np.asarray(prefix, np.float32), num_particles, filter_key, choice_key)
    )
    return np.asarray(simulate(model, length, key=draw_key, start=start).observations)


def _continue(
    model: SequenceModel, prefix: np.ndarray, num_particles: int, filter_key: Key[Array, ""], choice_key: Key[Array, ""]
) -> Generator:
    result = ParticleFilter(num_particles)(model, Batch.from_sequences([prefix]), key=filter_key)
    chosen = jax.random.categorical(choice_key, result.particles.log_weights[0])
    state = jax.tree.map(lambda leaf: leaf[0, chosen], result.particles.state)
    return Generator(state, _remember(model, jnp.asarray(prefix)))


@eqx.filter_jit
def _remember(model: SequenceModel, frames: Shaped[Array, "time dim"]) -> PyTree:
    """The model's memory after the given frames."""

    def step(memory: PyTree, x: Shaped[Array, " dim"]) -> tuple[PyTree, None]:
        return model.encode_next(memory, x, None, None)[2], None

    return lax.scan(step, model.begin(), frames)[0]
