"""The stochastic recurrent neural network (Fraccaro et al. 2016), the second model of the paper's released code."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key, Shaped

from fivo.errors import InputError
from fivo.models.contract import SequenceModel
from fivo.models.emissions import Emission
from fivo.models.latents import Latent, NormalLatent
from fivo.models.layers import LSTM, MLP, LSTMState


class Past(NamedTuple):
    """What h_t contributes to the hidden layers of the prior and of the emission."""

    prior: Float[Array, "*time hidden"]
    emission: Float[Array, "*time hidden"]


class SRNN(SequenceModel):
    """p(z_t | h_t, z_{t-1}), q(z_t | h_t, z_{t-1}, x_t), g(x_t | z_t, h_t) with h_t = LSTM(φ_x(x_{t-1}), h_{t-1}).

    All recurrence of the data is outside the particles: the state is φ_z(z_{t-1}). With `smoothing` the proposal
    also reads an LSTM run backwards over [h_t, φ_x(x_t)].
    """

    data_encoder: MLP
    latent_encoder: MLP
    recurrence: LSTM
    prior_network: MLP
    proposal_network: MLP
    emission_network: MLP
    backward: LSTM | None
    output: Emission
    latent: Latent = eqx.field(static=True)

    def __init__(
        self,
        output: Emission,
        hidden: int,
        *,
        latent: Latent | None = None,
        smoothing: bool = False,
        key: Key[Array, ""],
    ) -> None:
        if hidden < 1:
            raise InputError(f"got hidden={hidden} where at least one unit was expected.")
        self.latent = NormalLatent(hidden) if latent is None else latent
        keys = jax.random.split(key, 7)
        self.data_encoder = MLP((output.num_features,), hidden, hidden, key=keys[0])
        self.latent_encoder = MLP((self.latent.size,), hidden, hidden, key=keys[1])
        self.recurrence = LSTM((hidden,), hidden, key=keys[2])
        self.prior_network = MLP((hidden, hidden), hidden, self.latent.num_outputs, key=keys[3])
        inputs = (hidden,) * (4 if smoothing else 3)
        self.proposal_network = MLP(inputs, hidden, self.latent.num_outputs, key=keys[4])
        self.emission_network = MLP((hidden, hidden), hidden, output.num_outputs, key=keys[5])
        self.backward = LSTM((hidden, hidden), hidden, key=keys[6]) if smoothing else None
        self.output = output

    @property
    def causal(self) -> bool:
        return self.backward is None

    def encode(
        self, observations: Shaped[Array, "time dim"], mask: Bool[Array, "time dim"] | None, length: Int[Array, ""]
    ) -> tuple[Past, Float[Array, "time hidden"]]:
        features = self.data_encoder(self.output.features(observations, mask))
        _, start = self.initial_memory()

        def step(state: LSTMState, drive: Array) -> tuple[LSTMState, Array]:
            state = self.recurrence.step(state, drive)
            return state, state.hidden

        _, later = lax.scan(step, start, self._drive(features))
        hidden = jnp.concatenate([start.hidden[None], later])
        full = self._proposal_drive(hidden[:-1], features)
        if self.backward is not None:
            gates = self.backward.gates
            active = jnp.arange(len(features)) < length
            drives = gates.biased(gates.part(0, hidden[:-1]) + gates.part(1, features))
            full = full + self.proposal_network.hidden.part(3, self.backward.backward(drives, active))
        return self._past(hidden), full

    def initial_memory(self) -> tuple[Past, LSTMState]:
        """Like the VRNN's, the frame before the first is zero after centring."""
        silence = self.data_encoder(jnp.zeros(self.output.num_features, self.recurrence.gates.bias.dtype))
        memory = self.recurrence.step(self.recurrence.initial(), self._drive(silence))
        return self._past(memory.hidden), memory

    def encode_next(
        self, memory: LSTMState, x: Shaped[Array, " dim"], mask: Bool[Array, " dim"] | None
    ) -> tuple[Float[Array, " hidden"] | None, Past, LSTMState]:
        features = self.data_encoder(self.output.features(x, mask))
        full = self._proposal_drive(memory.hidden, features) if self.causal else None
        memory = self.recurrence.step(memory, self._drive(features))
        return full, self._past(memory.hidden), memory

    def initial_state(self, past: Past) -> Float[Array, " hidden"]:
        return jnp.zeros_like(past.prior)

    def prior(self, state: Float[Array, " hidden"], past: Past) -> dist.Distribution:
        preactivation = past.prior + self.prior_network.hidden.part(1, state)
        return self.latent.prior(self.prior_network.finish(preactivation))

    def proposal(
        self, state: Float[Array, " hidden"], full: Float[Array, " hidden"], prior: dist.Distribution
    ) -> dist.Distribution:
        preactivation = full + self.proposal_network.hidden.part(1, state)
        return self.latent.proposal(self.proposal_network.finish(preactivation), prior)

    def emission(self, state: Float[Array, " hidden"], latent: Shaped[Array, "..."], past: Past) -> dist.Distribution:
        preactivation = past.emission + self.emission_network.hidden.part(
            0, self.latent_encoder(self.latent.features(latent))
        )
        return self.output(self.emission_network.finish(preactivation))

    def advance(
        self, state: Float[Array, " hidden"], latent: Shaped[Array, "..."], past: Past
    ) -> Float[Array, " hidden"]:
        return self.latent_encoder(self.latent.features(latent))

    def _drive(self, features: Float[Array, "*time hidden"]) -> Float[Array, "*time gates"]:
        return self.recurrence.gates.biased(self.recurrence.gates.part(0, features))

    def _past(self, hidden: Float[Array, "*time hidden"]) -> Past:
        prior, emission = self.prior_network.hidden, self.emission_network.hidden
        return Past(prior.biased(prior.part(0, hidden)), emission.biased(emission.part(1, hidden)))

    def _proposal_drive(
        self, hidden: Float[Array, "*time hidden"], features: Float[Array, "*time hidden"]
    ) -> Float[Array, "*time hidden"]:
        layer = self.proposal_network.hidden
        return layer.biased(layer.part(0, hidden) + layer.part(2, features))
