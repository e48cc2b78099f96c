"""The networks of the paper's models: linear maps of several inputs, one-hidden-layer MLPs, the LSTM."""

import functools
import operator

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Key

FORGET_BIAS = 1.0


class Linear(eqx.Module):
    """Σ_i x_i W_i + b of several inputs, kept apart so that a part known early can be computed early.

    Xavier-uniform weights with the fan-in of all inputs together, zero bias.
    """

    weights: tuple[Float[Array, "inputs outputs"], ...]
    bias: Float[Array, " outputs"]

    def __init__(self, inputs: tuple[int, ...], outputs: int, *, key: Key[Array, ""]) -> None:
        limit = (6 / (sum(inputs) + outputs)) ** 0.5
        keys = jax.random.split(key, len(inputs))
        self.weights = tuple(
            jax.random.uniform(k, (size, outputs), minval=-limit, maxval=limit)
            for k, size in zip(keys, inputs, strict=True)
        )
        self.bias = jnp.zeros(outputs)

    def part(self, index: int, x: Float[Array, "*time inputs"]) -> Float[Array, "*time outputs"]:
        """x_i W_i of one input, without the bias."""
        return x @ self.weights[index]

    def biased(self, total: Float[Array, "*time outputs"]) -> Float[Array, "*time outputs"]:
        """A sum of parts with the bias."""
        return total + jnp.broadcast_to(self.bias, total.shape)

    def first(self, *xs: Float[Array, "*time _"]) -> Float[Array, "*time outputs"]:
        """Σ_i x_i W_i + b of the first inputs; the parts of the others can be added to it."""
        total = self.part(0, xs[0])
        for index, x in enumerate(xs[1:], start=1):
            total = total + self.part(index, x)
        return self.biased(total)

    def drive(
        self, early: dict[int, Float[Array, "*time _"]], known: Float[Array, "*time input"] | None, at: int = -1
    ) -> Float[Array, "*time outputs"]:
        """Σ_i x_i W_i + b of the inputs known early, by their places, and of u_t, if there is one, at its own."""
        parts = [self.part(index, x) for index, x in early.items()]
        total = self.biased(functools.reduce(operator.add, parts))
        return total if known is None else total + self.part(at, known)

    def __call__(self, *xs: Float[Array, "*time _"]) -> Float[Array, "*time outputs"]:
        return self.first(*xs)


class MLP(eqx.Module):
    """One hidden layer of ReLU units and a linear output."""

    hidden: Linear
    output: Linear

    def __init__(self, inputs: tuple[int, ...], hidden: int, outputs: int, *, key: Key[Array, ""]) -> None:
        hidden_key, output_key = jax.random.split(key)
        self.hidden = Linear(inputs, hidden, key=hidden_key)
        self.output = Linear((hidden,), outputs, key=output_key)

    def finish(self, preactivation: Float[Array, "*time hidden"]) -> Float[Array, "*time outputs"]:
        """The output, from the hidden layer's pre-activation."""
        return self.output(relu(preactivation))

    def __call__(self, *xs: Float[Array, "*time _"]) -> Float[Array, "*time outputs"]:
        return self.finish(self.hidden(*xs))


def relu(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """max(x, 0) with derivative 0 at 0, as a plain selection that loops can share between its uses."""
    return jnp.where(x > 0, x, 0)


class LSTMState(eqx.Module):
    """The hidden and the cell state of an LSTM."""

    hidden: Float[Array, " hidden"]
    cell: Float[Array, " hidden"]


class LSTM(eqx.Module):
    """A single-layer LSTM; its last input is its own hidden state, its forget gate has a fixed bias of 1."""

    gates: Linear
    size: int = eqx.field(static=True)

    def __init__(self, inputs: tuple[int, ...], size: int, *, key: Key[Array, ""]) -> None:
        self.gates = Linear((*inputs, size), 4 * size, key=key)
        self.size = size

    def initial(self) -> LSTMState:
        """The zero state."""
        zeros = jnp.zeros(self.size, self.gates.bias.dtype)
        return LSTMState(zeros, zeros)

    def step(self, state: LSTMState, drive: Float[Array, " gates"]) -> LSTMState:
        """The next state, where `drive` is everything that enters the gates but the hidden state's own part."""
        return lstm_cell(state.cell, drive + self.gates.part(-1, state.hidden))

    def drive(
        self, early: dict[int, Float[Array, "*time _"]], known: Float[Array, "*time input"] | None = None
    ) -> Float[Array, "*time gates"]:
        """What inputs known early contribute to the gates; u_t is the last input before the hidden state."""
        return self.gates.drive(early, known, at=-2)

    def backward(self, drives: Float[Array, "time gates"], active: Bool[Array, " time"]) -> Float[Array, "time hidden"]:
        """Hidden states of a run from the last frame to the first, at rest behind the sequence's end."""

        def step(state: LSTMState, inputs: tuple[Array, Array]) -> tuple[LSTMState, Array]:
            drive, live = inputs
            state = jax.tree.map(lambda new: jnp.where(live, new, 0), self.step(state, drive))
            return state, state.hidden

        return lax.scan(step, self.initial(), (drives, active), reverse=True)[1]


@jax.custom_jvp
def lstm_cell(cell: Float[Array, " hidden"], gates: Float[Array, " gates"]) -> LSTMState:
    """The LSTM's non-linear part, from the gates' pre-activations in the order input, candidate, forget, output."""
    return _lstm_cell(cell, gates)[0]


@lstm_cell.defjvp
def _lstm_cell_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[LSTMState, LSTMState]:
    """Linear maps of the tangents whose factors the forward pass computes: the backward pass only multiplies."""
    state, (by_gates, by_cell, by_new_cell) = _lstm_cell(*primals)
    dcell, dgates = tangents
    enter, candidate, forget, leave = jnp.split(by_gates * dgates, 4)
    dnew = by_cell * dcell + (enter + candidate + forget)
    return state, LSTMState(by_new_cell * dnew + leave, dnew)


def _lstm_cell(cell: Array, gates: Array) -> tuple[LSTMState, tuple[Array, Array, Array]]:
    """The next state, and the derivatives of: the cell or, last, the hidden state by the gates, the cell by the cell
    before it, the hidden state by the cell.

    All four gates are one hyperbolic tangent, as σ(x) = (1 + tanh(x / 2)) / 2.
    """
    size = cell.shape[-1]
    half = jnp.repeat(jnp.array([0.5, 1, 0.5, 0.5], gates.dtype), size)
    bias = jnp.repeat(jnp.array([0, 0, FORGET_BIAS, 0], gates.dtype), size)
    curve = jnp.tanh(half * (gates + bias))
    enter, candidate, forget, leave = jnp.split(half * curve + (1 - half), 4)
    new = forget * cell + enter * candidate
    squashed = jnp.tanh(new)
    by_gates = half**2 * (1 - curve**2) * jnp.concatenate([candidate, enter, cell, squashed])
    return LSTMState(leave * squashed, new), (by_gates, forget, leave * (1 - squashed**2))
