"""Drawing sequences from a model: x and z from p, one frame at a time."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PyTree, Shaped

from fivo.distributions import sample, weight_dtype
from fivo.errors import InputError
from fivo.models._contract import SequenceModel, check_inputs, check_streams
from fivo.models._extend import check_distribution, check_state, start_state
from fivo.models._trajectories import over_time


class Generator(NamedTuple):
    """The state of a simulation after some frames: everything that the next one depends on.

    Args:
        state: h_t.
        memory: of the frames so far, as `encode_next` returns it.
    """

    state: PyTree
    memory: PyTree


class Simulation(NamedTuple):
    """A simulated sequence.

    Args:
        latents: z_1:T [time, ...].
        observations: x_1:T [time, dim].
    """

    latents: PyTree
    observations: Shaped[Array, "time dim"]


@eqx.filter_jit
def simulate(
    model: SequenceModel,
    num_steps: int,
    *,
    key: Key[Array, ""],
    inputs: Float[Array, "time input"] | None = None,
    start: Generator | None = None,
) -> Simulation:
    """Draw x_1:T and z_1:T from a model, or the continuation of a sequence.

    Args:
        model: the model.
        num_steps: how many frames to draw.
        key: a random key.
        inputs: u [num_steps, input] of the frames that are drawn, for models that read inputs.
        start: the state and memory after some frames, to continue from there; by default the beginning.

    Returns:
        The latents and observations of one sequence; map it over keys for more.
    """
    check_streams(model)
    check_inputs(model, 0 if inputs is None else inputs.shape[-1])
    if inputs is not None and inputs.shape[0] != num_steps:
        raise InputError(f"inputs must have {num_steps} steps, as many as are drawn, got {inputs.shape[0]}.")
    dtype = weight_dtype(model)
    inputs = None if inputs is None else jnp.asarray(inputs, dtype)

    def step(generator: Generator, now: tuple, first: bool) -> tuple[Generator, Simulation]:
        state, memory = generator
        key, u = now
        latent_key, observation_key = jax.random.split(key)
        context = model.context_next(memory, u)
        prior = (model.initial_prior if first else model.prior)(state, context)
        check_distribution(model, "initial_prior" if first else "prior", prior)
        latent = sample(prior, latent_key, dtype)
        emission = model.emission(state, latent, context)
        check_distribution(model, "emission", emission)
        x = sample(emission, observation_key, dtype)
        _, history, memory = model.encode_next(memory, x, None, u)
        following = model.advance(state, latent, history)
        check_state(model, state, following)
        return Generator(following, memory), Simulation(latent, x)

    steps = (jax.random.split(key, num_steps), inputs)
    if start is not None:
        return jax.lax.scan(lambda carry, now: step(carry, now, False), start, steps)[1]
    memory = model.begin()
    first = None if inputs is None else inputs[0]
    beginning = Generator(start_state(model, model.context_next(memory, first)), memory)
    return over_time(model, step, beginning, steps)[1]
