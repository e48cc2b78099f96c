"""A twist for any model: a network of the particle and of an LSTM that reads the frames to come, from the last one."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PyTree

from fivo.batch import Sequence
from fivo.errors import InputError
from fivo.models._contract import SequenceModel
from fivo.models._emissions import Emission
from fivo.models._extend import inspect_step
from fivo.models._kalman import following_steps
from fivo.models._latents import Latent
from fivo.models._layers import LSTM, MLP
from fivo.models._reading import DataEncoder, check_sizes
from fivo.models._trajectories import read
from fivo.models._twisted import Twist


class RecurrentTwist(Twist):
    """log r_t = f(z_t, h_t, b_t+1), where b_t+1 is an LSTM run backwards over φ_x(x_T … x_t+1) and the inputs.

    Args:
        model: the model that it will twist: a `VRNN`, an `SRNN`, or any other.
        frames: the emission that says how a frame is read; by default the model's own `output`. For a model without
            one, such as `NormalEmission(mean, deviation)` of the data.
        hidden: units of every network.
        key: a random key for the initial weights.

    It begins as r_t = 1. Where latents are a Markov chain it does not read h_t.
    """

    data_encoder: DataEncoder
    backward: LSTM
    network: MLP
    frames: Emission
    reads_state: bool = eqx.field(static=True)

    def __init__(
        self, model: SequenceModel, hidden: int, *, frames: Emission | None = None, key: Key[Array, ""]
    ) -> None:
        found = getattr(model, "output", None) if frames is None else frames
        if found is None:
            raise InputError(
                f"frames must be an emission, such as NormalEmission(mean, deviation), for a twist of a "
                f"{type(model).__name__}, which has none of its own."
            )
        check_sizes(hidden, 0)
        self.frames = found
        keys = jax.random.split(key, 3)
        self.data_encoder = DataEncoder(found, hidden, gaps=True, key=keys[0])
        known = (model.num_inputs,) if model.num_inputs else ()
        self.backward = LSTM((hidden, *known), hidden, key=keys[1])
        self.reads_state = not model.markov
        latent, state = _sizes(model, found.dim)
        read = (latent, hidden, state) if self.reads_state else (latent, hidden)
        network = MLP(read, hidden, 1, key=keys[2])
        self.network = eqx.tree_at(lambda n: n.output.weights[0], network, replace_fn=jnp.zeros_like)

    def check(self, model: SequenceModel) -> None:
        if self.reads_state == model.markov:
            raise InputError(f"the twist must be made for the model it is used with, got {type(model).__name__}.")

    def lookahead(self, model: SequenceModel, sequence: Sequence) -> Float[Array, "time hidden"]:
        features = self.data_encoder(self.frames, sequence.observations, sequence.mask)
        gates = self.backward.gates
        drive = gates.part(0, features)
        if sequence.inputs is not None and len(gates.weights) == 3:
            drive = drive + gates.part(1, sequence.inputs)
        active = jnp.arange(features.shape[0]) < sequence.length
        from_here_on = self.backward.backward(gates.biased(drive), active)
        return self.network.hidden.part(1, following_steps(from_here_on))

    def __call__(self, model: Any, state: PyTree, latent: PyTree, future: Float[Array, " hidden"]) -> Float[Array, ""]:
        layer = self.network.hidden
        preactivation = layer.biased(layer.part(0, features_of(model, latent)) + future)
        if self.reads_state:
            preactivation = preactivation + layer.part(2, _flat(state))
        return self.network.finish(preactivation)[0]


def features_of(model: Any, latent: PyTree) -> Float[Array, " size"]:
    """A latent as networks read it."""
    family = getattr(model, "latent", None)
    return family.features(latent) if isinstance(family, Latent) else _flat(latent)


def _flat(tree: PyTree) -> Float[Array, " size"]:
    return jnp.concatenate([jnp.ravel(leaf).astype(float) for leaf in jax.tree.leaves(tree)] or [jnp.zeros(0)])


def _sizes(model: SequenceModel, dim: int) -> tuple[int, int]:
    """How many numbers a latent and a state are."""
    inputs = jnp.zeros((2, model.num_inputs)) if model.num_inputs else None
    sequence = Sequence(jnp.zeros((2, dim)), jnp.asarray(2, jnp.int32), None, inputs)
    kinds = inspect_step(model, jax.eval_shape(lambda s: read(model, s).frames, sequence), num_axes=1)
    latent = jax.eval_shape(lambda z: features_of(model, z), kinds.latent)
    return latent.shape[0], sum(leaf.size for leaf in jax.tree.leaves(kinds.state))
