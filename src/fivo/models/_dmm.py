"""The deep Markov model (Krishnan, Shalit & Sontag 2017): a state-space model made of networks."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, Key, Shaped

from fivo.batch import Sequence
from fivo.errors import InputError
from fivo.models._contract import SequenceModel
from fivo.models._emissions import Emission
from fivo.models._latents import NormalLatent
from fivo.models._layers import LSTM, MLP, Linear, relu
from fivo.models._reading import DataEncoder, check_sizes

START = 0.1
"""What the last weights of the transition and of the proposal start at, as a share of other networks': from larger ones
z could grow without limit over a long sequence, and with it the gradient."""


class GatedTransition(eqx.Module):
    """The prior of z_t given z_{t-1} and u_t: each mean is between those of a linear map and a network.

    With a gate g = σ(MLP(z, u)) and a network m = MLP(z, u), the mean is (1 - g) ⊙ (W [z, u] + b) + g ⊙ m, and the
    scale comes from V ReLU(m) + c (Section 5 of the paper). W starts as the identity of z, and m near zero.
    """

    gate: MLP
    network: MLP
    linear: Linear
    scale: Linear

    def __init__(self, latents: int, hidden: int, known: tuple[int, ...], *, key: Key[Array, ""]) -> None:
        keys = jax.random.split(key, 4)
        self.gate = MLP((latents, *known), hidden, latents, key=keys[0])
        self.network = _quiet(MLP((latents, *known), hidden, latents, key=keys[1]))
        linear = Linear((latents, *known), latents, key=keys[2])
        self.linear = eqx.tree_at(lambda layer: layer.weights[0], linear, jnp.eye(latents))
        self.scale = Linear((latents,), latents, key=keys[3])

    def __call__(self, *read: Float[Array, " _"]) -> Float[Array, " outputs"]:
        """Mean and raw scale of z_t, from z_{t-1} and u_t."""
        gate = jax.nn.sigmoid(self.gate(*read))
        proposed = self.network(*read)
        mean = (1 - gate) * self.linear(*read) + gate * proposed
        return jnp.concatenate([mean, self.scale(relu(proposed))])


class DMM(SequenceModel):
    """p(z_t | z_{t-1}, u_t), q(z_t | z_{t-1}, x_t, u_t), g(x_t | z_t, u_t): latents that are a Markov chain.

    The transition is `GatedTransition`'s and the emission a network of two hidden layers; z_1 is normal, with a learned
    mean and scale that u_1 shifts. Observations do not feed back into the latents, so that backward simulation and
    fixed-lag smoothing apply.

    Args:
        output: what x_t is, such as `BernoulliEmission(train_mean)`.
        hidden: H, units of every network and of the LSTM.
        latents: dimensions of z_t; by default as many as `hidden`.
        smoothing: let the proposal also read an LSTM run backwards over [φ_x(x_T), u_T] … [φ_x(x_t), u_t], as in the
            paper's structured inference network.
        num_inputs: the width of u_t, 0 for none.
        gaps: let φ_x also read which entries of a frame were missing.
        key: a random key for the initial weights.

    The proposal's network reads tanh(W z_{t-1} + b), as the paper's does; unlike there, its mean is residual to the
    prior's. A missing entry is read as its training mean.
    """

    markov: ClassVar[bool] = True

    data_encoder: DataEncoder
    initial: Linear
    transition: GatedTransition
    combiner: Linear
    proposal_network: MLP
    latent_layer: Linear
    emission_network: MLP
    backward: LSTM | None
    output: Emission
    latent: NormalLatent = eqx.field(static=True)
    num_inputs: int = eqx.field(static=True)

    def __init__(
        self,
        output: Emission,
        hidden: int,
        *,
        latents: int | None = None,
        smoothing: bool = False,
        num_inputs: int = 0,
        gaps: bool = False,
        key: Key[Array, ""],
    ) -> None:
        check_sizes(hidden, num_inputs)
        latents = hidden if latents is None else latents
        if not isinstance(latents, int) or latents < 1:
            raise InputError(f"latents must be a positive integer, got {latents!r}.")
        self.latent = NormalLatent(latents)
        self.num_inputs = num_inputs  # pyright: ignore[reportIncompatibleVariableOverride]
        known = (num_inputs,) if num_inputs else ()
        keys = jax.random.split(key, 8)
        self.data_encoder = DataEncoder(output, hidden, gaps=gaps, key=keys[0])
        self.initial = Linear(known, self.latent.num_outputs, key=keys[1])
        self.transition = GatedTransition(latents, hidden, known, key=keys[2])
        self.combiner = Linear((latents,), hidden, key=keys[7])
        read = (hidden, hidden, hidden) if smoothing else (hidden, hidden)
        self.proposal_network = _quiet(MLP((*read, *known), hidden, self.latent.num_outputs, key=keys[3]))
        self.latent_layer = Linear((latents,), hidden, key=keys[4])
        self.emission_network = MLP((hidden, *known), hidden, output.num_outputs, key=keys[5])
        self.backward = LSTM((hidden, *known), hidden, key=keys[6]) if smoothing else None
        self.output = output

    @property
    def causal(self) -> bool:
        return self.backward is None

    def encode(self, sequence: Sequence) -> tuple[Float[Array, "time input"] | None, Float[Array, "time hidden"], None]:
        """Run once per sequence what does not depend on the particles.

        Args:
            sequence: observations [time, dim], length, mask and inputs [time, input].

        Returns:
            u_t; the part of the proposal that x and u drive; nothing, as the next state is z_t alone.
        """
        features = self.data_encoder(self.output, sequence.observations, sequence.mask)
        evidence = self.proposal_network.hidden.drive({1: features}, sequence.inputs)
        if self.backward is not None:
            drives = self.backward.gates.first(*_with(features, sequence.inputs))
            active = jnp.arange(features.shape[0]) < sequence.length
            evidence = evidence + self.proposal_network.hidden.part(2, self.backward.backward(drives, active))
        return sequence.inputs, evidence, None

    def encode_next(
        self,
        memory: tuple[()],
        x: Shaped[Array, " dim"],
        mask: Bool[Array, " dim"] | None,
        inputs: Float[Array, " input"] | None,
    ) -> tuple[Float[Array, " hidden"] | None, None, tuple[()]]:
        features = self.data_encoder(self.output, x, mask)
        return self.proposal_network.hidden.drive({1: features}, inputs) if self.causal else None, None, ()

    def initial_state(self, context: Float[Array, " input"] | None) -> Float[Array, " latent"]:
        """Zero, which the proposal reads in place of a latent before the first.

        Args:
            context: context_1.

        Returns:
            h_1.
        """
        return jnp.zeros(self.latent.size, self.initial.bias.dtype)

    def initial_prior(
        self, state: Float[Array, " latent"] | None, context: Float[Array, " input"] | None
    ) -> dist.Distribution:
        shift = 0 if context is None else self.initial.part(0, context)
        return self.latent.prior(self.initial.bias + shift)

    def prior(self, state: Float[Array, " latent"], context: Float[Array, " input"] | None) -> dist.Distribution:
        return self.latent.prior(self.transition(*_with(state, context)))

    def proposal(
        self, state: Float[Array, " latent"], evidence: Float[Array, " hidden"], prior: dist.Distribution
    ) -> dist.Distribution:
        preactivation = self.proposal_network.hidden.part(0, jnp.tanh(self.combiner(state))) + evidence
        return self.latent.proposal(self.proposal_network.finish(preactivation), prior)

    def emission(
        self, state: Float[Array, " latent"], latent: Float[Array, " latent"], context: Float[Array, " input"] | None
    ) -> dist.Distribution:
        return self.output(self.emission_network(*_with(relu(self.latent_layer(latent)), context)))


def _with(
    read: Float[Array, "*time _"], inputs: Float[Array, "*time input"] | None
) -> tuple[Float[Array, "*time _"], ...]:
    return (read,) if inputs is None else (read, inputs)


def _quiet(network: MLP) -> MLP:
    """A network whose outputs start near zero."""
    return eqx.tree_at(lambda mlp: mlp.output.weights[0], network, replace_fn=lambda w: START * w)
