"""The variational recurrent neural network (Chung et al. 2015), as in Section 5 of the paper."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, Key, Shaped

from fivo.batch import Sequence
from fivo.models._contract import SequenceModel
from fivo.models._emissions import Emission
from fivo.models._latents import Latent, NormalLatent
from fivo.models._layers import LSTM, MLP, LSTMState
from fivo.models._reading import DataEncoder, check_sizes


class InputDrive(NamedTuple):
    """What u_t contributes to the hidden layers of the prior and of the emission."""

    prior: Float[Array, "*time hidden"]
    emission: Float[Array, "*time hidden"]


class VRNN(SequenceModel):
    """p(z_t | h_t, u_t), q(z_t | h_t, x_t, u_t), g(x_t | z_t, h_t, u_t) with a recurrence of x and z.

    h_{t+1} = LSTM([φ_x(x_t), φ_z(z_t), u_t], h_t).

    Args:
        output: what x_t is, such as `BernoulliEmission(train_mean)`.
        hidden: H, units of every network, of the LSTM and, by default, dimensions of z_t.
        latent: the family of p and q; by default `NormalLatent(hidden)`.
        smoothing: let the proposal also read an LSTM run backwards over φ_x(x_T … x_t).
        num_inputs: the width of u_t, 0 for none.
        gaps: let φ_x also read which entries of a frame were missing.
        key: a random key for the initial weights.

    The proposal's mean is residual to the prior's. A missing entry is read as its training mean.
    """

    data_encoder: DataEncoder
    latent_encoder: MLP
    recurrence: LSTM
    prior_network: MLP
    proposal_network: MLP
    emission_network: MLP
    backward: LSTM | None
    output: Emission
    latent: Latent = eqx.field(static=True)
    num_inputs: int = eqx.field(static=True)

    def __init__(
        self,
        output: Emission,
        hidden: int,
        *,
        latent: Latent | None = None,
        smoothing: bool = False,
        num_inputs: int = 0,
        gaps: bool = False,
        key: Key[Array, ""],
    ) -> None:
        check_sizes(hidden, num_inputs)
        self.latent = NormalLatent(hidden) if latent is None else latent
        self.num_inputs = num_inputs  # pyright: ignore[reportIncompatibleVariableOverride]
        known = (num_inputs,) if num_inputs else ()
        keys = jax.random.split(key, 7)
        self.data_encoder = DataEncoder(output, hidden, gaps=gaps, key=keys[0])
        self.latent_encoder = MLP((self.latent.size,), hidden, hidden, key=keys[1])
        self.recurrence = LSTM((hidden, hidden, *known), hidden, key=keys[2])
        self.prior_network = MLP((hidden, *known), hidden, self.latent.num_outputs, key=keys[3])
        read = (hidden, hidden, hidden) if smoothing else (hidden, hidden)
        self.proposal_network = MLP((*read, *known), hidden, self.latent.num_outputs, key=keys[4])
        self.emission_network = MLP((hidden, hidden, *known), hidden, output.num_outputs, key=keys[5])
        self.backward = LSTM((hidden,), hidden, key=keys[6]) if smoothing else None
        self.output = output

    @property
    def causal(self) -> bool:
        return self.backward is None

    def encode(self, sequence: Sequence) -> tuple[InputDrive | None, Float[Array, "time hidden"], Array]:
        """Run once per sequence what does not depend on the particles.

        Args:
            sequence: observations [time, dim], length, mask and inputs [time, input].

        Returns:
            What u_t drives; the part of the proposal that x drives; the part of the gates that x_t drives.
        """
        features = self.data_encoder(self.output, sequence.observations, sequence.mask)
        evidence = self._proposal_drive(features, sequence.inputs)
        if self.backward is not None:
            gates = self.backward.gates
            active = jnp.arange(features.shape[0]) < sequence.length
            future = self.backward.backward(gates.biased(gates.part(0, features)), active)
            evidence = evidence + self.proposal_network.hidden.part(2, future)
        return self._input_drive(sequence.inputs), evidence, self._drive(features, sequence.inputs)

    def context_next(self, memory: tuple[()], inputs: Float[Array, " input"] | None) -> InputDrive | None:
        return self._input_drive(inputs)

    def encode_next(
        self,
        memory: tuple[()],
        x: Shaped[Array, " dim"],
        mask: Bool[Array, " dim"] | None,
        inputs: Float[Array, " input"] | None,
    ) -> tuple[Float[Array, " hidden"] | None, Float[Array, " gates"], tuple[()]]:
        features = self.data_encoder(self.output, x, mask)
        evidence = self._proposal_drive(features, inputs) if self.causal else None
        return evidence, self._drive(features, inputs), ()

    def initial_state(self, context: InputDrive | None) -> LSTMState:
        """The frame before the first is zero after centring, and so are the inputs before the first.

        Args:
            context: context_1.

        Returns:
            h_1.
        """
        return self.recurrence.step(self.recurrence.initial(), self._drive(self.data_encoder.silence(), None))

    def prior(self, state: LSTMState, context: InputDrive | None) -> dist.Distribution:
        preactivation = _driven(self.prior_network.hidden.first(state.hidden), context and context.prior)
        return self.latent.prior(self.prior_network.finish(preactivation))

    def proposal(
        self, state: LSTMState, evidence: Float[Array, " hidden"], prior: dist.Distribution
    ) -> dist.Distribution:
        preactivation = self.proposal_network.hidden.part(0, state.hidden) + evidence
        return self.latent.proposal(self.proposal_network.finish(preactivation), prior)

    def emission(self, state: LSTMState, latent: Shaped[Array, "..."], context: InputDrive | None) -> dist.Distribution:
        read = self.latent_encoder(self.latent.features(latent))
        preactivation = _driven(self.emission_network.hidden.first(read, state.hidden), context and context.emission)
        return self.output(self.emission_network.finish(preactivation))

    def advance(self, state: LSTMState, latent: Shaped[Array, "..."], history: Float[Array, " gates"]) -> LSTMState:
        read = self.latent_encoder(self.latent.features(latent))
        return self.recurrence.step(state, history + self.recurrence.gates.part(1, read))

    def _drive(
        self, features: Float[Array, "*time hidden"], inputs: Float[Array, "*time input"] | None
    ) -> Float[Array, "*time gates"]:
        gates = self.recurrence.gates
        drive = gates.biased(gates.part(0, features))
        return drive if inputs is None else drive + gates.part(2, inputs)

    def _proposal_drive(
        self, features: Float[Array, "*time hidden"], inputs: Float[Array, "*time input"] | None
    ) -> Float[Array, "*time hidden"]:
        layer = self.proposal_network.hidden
        drive = layer.biased(layer.part(1, features))
        return drive if inputs is None else drive + layer.part(-1, inputs)

    def _input_drive(self, inputs: Float[Array, "*time input"] | None) -> InputDrive | None:
        if inputs is None:
            return None
        return InputDrive(self.prior_network.hidden.part(-1, inputs), self.emission_network.hidden.part(-1, inputs))


def _driven(preactivation: Float[Array, " hidden"], drive: Float[Array, " hidden"] | None) -> Float[Array, " hidden"]:
    return preactivation if drive is None else preactivation + drive
