"""The stochastic recurrent neural network (Fraccaro et al. 2016), the second model of the paper's released code."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import lax
from jaxtyping import Array, Bool, Float, Key, Shaped

from fivo.batch import Sequence
from fivo.models._contract import SequenceModel
from fivo.models._emissions import Emission
from fivo.models._latents import Latent, NormalLatent
from fivo.models._layers import LSTM, MLP, LSTMState
from fivo.models._reading import DataEncoder, check_sizes


class Context(NamedTuple):
    """What h_t and u_t contribute to the hidden layers of the prior and of the emission."""

    prior: Float[Array, "*time hidden"]
    emission: Float[Array, "*time hidden"]


class SRNN(SequenceModel):
    """p(z_t | h_t, z_{t-1}, u_t), q(z_t | h_t, z_{t-1}, x_t, u_t), g(x_t | z_t, h_t, u_t) with a recurrence of x alone.

    h_{t+1} = LSTM([φ_x(x_t), u_t], h_t).

    Args:
        output: what x_t is, such as `BernoulliEmission(train_mean)`.
        hidden: H, units of every network, of the LSTM and, by default, dimensions of z_t.
        latent: the family of p and q; by default `NormalLatent(hidden)`.
        smoothing: let the proposal also read an LSTM run backwards over [h_t, φ_x(x_t)].
        num_inputs: the width of u_t, 0 for none.
        gaps: let φ_x also read which entries of a frame were missing.
        key: a random key for the initial weights.

    All recurrence of the data is outside of the particles: the state is φ_z(z_{t-1}).
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
        self.recurrence = LSTM((hidden, *known), hidden, key=keys[2])
        self.prior_network = MLP((hidden, hidden, *known), hidden, self.latent.num_outputs, key=keys[3])
        read = (hidden,) * (4 if smoothing else 3)
        self.proposal_network = MLP((*read, *known), hidden, self.latent.num_outputs, key=keys[4])
        self.emission_network = MLP((hidden, hidden, *known), hidden, output.num_outputs, key=keys[5])
        self.backward = LSTM((hidden, hidden), hidden, key=keys[6]) if smoothing else None
        self.output = output

    @property
    def causal(self) -> bool:
        return self.backward is None

    def encode(self, sequence: Sequence) -> tuple[Context, Float[Array, "time hidden"], None]:
        features = self.data_encoder(self.output, sequence.observations, sequence.mask)

        def step(state: LSTMState, drive: Array) -> tuple[LSTMState, Array]:
            return self.recurrence.step(state, drive), state.hidden

        _, hidden = lax.scan(step, self.begin(), self._drive(features, sequence.inputs))
        evidence = self._proposal_drive(hidden, features, sequence.inputs)
        if self.backward is not None:
            gates = self.backward.gates
            active = jnp.arange(features.shape[0]) < sequence.length
            drives = gates.biased(gates.part(0, hidden) + gates.part(1, features))
            evidence = evidence + self.proposal_network.hidden.part(3, self.backward.backward(drives, active))
        return self._context(hidden, sequence.inputs), evidence, None

    def begin(self) -> LSTMState:
        """h_1; like the VRNN's, the frame before the first is zero after centring.

        Returns:
            The memory before the first frame.
        """
        return self.recurrence.step(self.recurrence.initial(), self._drive(self.data_encoder.silence(), None))

    def context_next(self, memory: LSTMState, inputs: Float[Array, " input"] | None) -> Context:
        return self._context(memory.hidden, inputs)

    def encode_next(
        self,
        memory: LSTMState,
        x: Shaped[Array, " dim"],
        mask: Bool[Array, " dim"] | None,
        inputs: Float[Array, " input"] | None,
    ) -> tuple[Float[Array, " hidden"] | None, None, LSTMState]:
        features = self.data_encoder(self.output, x, mask)
        evidence = self._proposal_drive(memory.hidden, features, inputs) if self.causal else None
        return evidence, None, self.recurrence.step(memory, self._drive(features, inputs))

    def initial_state(self, context: Context) -> Float[Array, " hidden"]:
        return jnp.zeros_like(context.prior)

    def prior(self, state: Float[Array, " hidden"], context: Context) -> dist.Distribution:
        preactivation = context.prior + self.prior_network.hidden.part(1, state)
        return self.latent.prior(self.prior_network.finish(preactivation))

    def proposal(
        self, state: Float[Array, " hidden"], evidence: Float[Array, " hidden"], prior: dist.Distribution
    ) -> dist.Distribution:
        preactivation = evidence + self.proposal_network.hidden.part(1, state)
        return self.latent.proposal(self.proposal_network.finish(preactivation), prior)

    def emission(
        self, state: Float[Array, " hidden"], latent: Shaped[Array, "..."], context: Context
    ) -> dist.Distribution:
        read = self.latent_encoder(self.latent.features(latent))
        preactivation = context.emission + self.emission_network.hidden.part(0, read)
        return self.output(self.emission_network.finish(preactivation))

    def advance(
        self, state: Float[Array, " hidden"], latent: Shaped[Array, "..."], history: None
    ) -> Float[Array, " hidden"]:
        return self.latent_encoder(self.latent.features(latent))

    def _drive(
        self, features: Float[Array, "*time hidden"], inputs: Float[Array, "*time input"] | None
    ) -> Float[Array, "*time gates"]:
        gates = self.recurrence.gates
        drive = gates.biased(gates.part(0, features))
        return drive if inputs is None else drive + gates.part(1, inputs)

    def _context(self, hidden: Float[Array, "*time hidden"], inputs: Float[Array, "*time input"] | None) -> Context:
        prior, emission = self.prior_network.hidden, self.emission_network.hidden
        drives = Context(prior.biased(prior.part(0, hidden)), emission.biased(emission.part(1, hidden)))
        if inputs is None:
            return drives
        return Context(drives.prior + prior.part(-1, inputs), drives.emission + emission.part(-1, inputs))

    def _proposal_drive(
        self,
        hidden: Float[Array, "*time hidden"],
        features: Float[Array, "*time hidden"],
        inputs: Float[Array, "*time input"] | None,
    ) -> Float[Array, "*time hidden"]:
        layer = self.proposal_network.hidden
        drive = layer.biased(layer.part(0, hidden) + layer.part(2, features))
        return drive if inputs is None else drive + layer.part(-1, inputs)
