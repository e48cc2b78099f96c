"""The variational recurrent neural network (Chung et al. 2015), as in Section 5 of the paper."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, Int, Key, Shaped

from fivo.errors import InputError
from fivo.models.contract import SequenceModel
from fivo.models.emissions import Emission
from fivo.models.latents import Latent, NormalLatent
from fivo.models.layers import LSTM, MLP, LSTMState


class VRNN(SequenceModel):
    """h_t = LSTM([φ_x(x_{t-1}), φ_z(z_{t-1})], h_{t-1}); p(z_t | h_t), q(z_t | h_t, x_t), g(x_t | z_t, h_t).

    Hidden size = latent size = H. The proposal's mean is residual to the prior's. With `smoothing` the proposal
    also reads an LSTM run backwards over φ_x(x_{T..t}). A missing entry is fed back as its training mean.
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
        self.recurrence = LSTM((hidden, hidden), hidden, key=keys[2])
        self.prior_network = MLP((hidden,), hidden, self.latent.num_outputs, key=keys[3])
        inputs = (hidden, hidden, hidden) if smoothing else (hidden, hidden)
        self.proposal_network = MLP(inputs, hidden, self.latent.num_outputs, key=keys[4])
        self.emission_network = MLP((hidden, hidden), hidden, output.num_outputs, key=keys[5])
        self.backward = LSTM((hidden,), hidden, key=keys[6]) if smoothing else None
        self.output = output

    @property
    def causal(self) -> bool:
        return self.backward is None

    def encode(
        self, observations: Shaped[Array, "time dim"], mask: Bool[Array, "time dim"] | None, length: Int[Array, ""]
    ) -> tuple[Float[Array, "past gates"], Float[Array, "time hidden"]]:
        """past[t]: the part of the gates that x_{t-1} drives; full[t]: that of the proposal that x drives."""
        features = self.data_encoder(self.output.features(observations, mask))
        first = self._drive(self._silence())
        past = jnp.concatenate([first[None], self._drive(features)])
        full = self._proposal_drive(features)
        if self.backward is not None:
            gates = self.backward.gates
            active = jnp.arange(len(features)) < length
            future = self.backward.backward(gates.biased(gates.part(0, features)), active)
            full = full + self.proposal_network.hidden.part(2, future)
        return past, full

    def initial_memory(self) -> tuple[Float[Array, " gates"], tuple[()]]:
        return self._drive(self._silence()), ()

    def encode_next(
        self, memory: tuple[()], x: Shaped[Array, " dim"], mask: Bool[Array, " dim"] | None
    ) -> tuple[Float[Array, " hidden"] | None, Float[Array, " gates"], tuple[()]]:
        features = self.data_encoder(self.output.features(x, mask))
        return self._proposal_drive(features) if self.causal else None, self._drive(features), ()

    def initial_state(self, past: Float[Array, " gates"]) -> LSTMState:
        return self.recurrence.step(self.recurrence.initial(), past)

    def prior(self, state: LSTMState, past: Float[Array, " gates"]) -> dist.Distribution:
        return self.latent.prior(self.prior_network(state.hidden))

    def proposal(self, state: LSTMState, full: Float[Array, " hidden"], prior: dist.Distribution) -> dist.Distribution:
        preactivation = self.proposal_network.hidden.part(0, state.hidden) + full
        return self.latent.proposal(self.proposal_network.finish(preactivation), prior)

    def emission(
        self, state: LSTMState, latent: Shaped[Array, "..."], past: Float[Array, " gates"]
    ) -> dist.Distribution:
        return self.output(self.emission_network(self.latent_encoder(self.latent.features(latent)), state.hidden))

    def advance(self, state: LSTMState, latent: Shaped[Array, "..."], past: Float[Array, " gates"]) -> LSTMState:
        return self.recurrence.step(
            state, past + self.recurrence.gates.part(1, self.latent_encoder(self.latent.features(latent)))
        )

    def _silence(self) -> Float[Array, " hidden"]:
        """φ_x of the frame before the first, which is zero after centring."""
        return self.data_encoder(jnp.zeros(self.output.num_features, self.recurrence.gates.bias.dtype))

    def _drive(self, features: Float[Array, "*time hidden"]) -> Float[Array, "*time gates"]:
        return self.recurrence.gates.biased(self.recurrence.gates.part(0, features))

    def _proposal_drive(self, features: Float[Array, "*time hidden"]) -> Float[Array, "*time hidden"]:
        return self.proposal_network.hidden.biased(self.proposal_network.hidden.part(1, features))
