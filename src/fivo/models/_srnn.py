"""The stochastic recurrent neural network (Fraccaro et al. 2016), the second model of the paper's released code."""

from typing import ClassVar

import jax.numpy as jnp
import numpyro.distributions as dist
from jax import lax
from jaxtyping import Array, Bool, Float, Shaped

from fivo.batch import Sequence
from fivo.models._layers import LSTMState
from fivo.models._recurrent import Drive, Reads, RecurrentModel


class SRNN(RecurrentModel):
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

    reads: ClassVar[Reads] = Reads(recurrence=1, prior=2, proposal=3, backward=2)

    def encode(self, sequence: Sequence) -> tuple[Drive, Float[Array, "time hidden"], None]:
        features = self.data_encoder(self.output, sequence.observations, sequence.mask)

        def step(state: LSTMState, drive: Array) -> tuple[LSTMState, Array]:
            return self.recurrence.step(state, drive), state.hidden

        _, hidden = lax.scan(step, self.begin(), self.recurrence.drive({0: features}, sequence.inputs))
        evidence = self.proposal_network.hidden.drive({0: hidden, 2: features}, sequence.inputs)
        if self.backward is not None:
            active = jnp.arange(features.shape[0]) < sequence.length
            future = self.backward.backward(self.backward.drive({0: hidden, 1: features}), active)
            evidence = evidence + self.proposal_network.hidden.part(3, future)
        return self._drive(hidden, sequence.inputs), evidence, None

    def begin(self) -> LSTMState:
        """h_1; like the VRNN's, the frame before the first is zero after centring.

        Returns:
            The memory before the first frame.
        """
        return self._first()

    def context_next(self, memory: LSTMState, inputs: Float[Array, " input"] | None) -> Drive:
        return self._drive(memory.hidden, inputs)

    def encode_next(
        self,
        memory: LSTMState,
        x: Shaped[Array, " dim"],
        mask: Bool[Array, " dim"] | None,
        inputs: Float[Array, " input"] | None,
    ) -> tuple[Float[Array, " hidden"] | None, None, LSTMState]:
        features, layer = self.data_encoder(self.output, x, mask), self.proposal_network.hidden
        evidence = layer.drive({0: memory.hidden, 2: features}, inputs) if self.causal else None
        return evidence, None, self.recurrence.step(memory, self.recurrence.drive({0: features}, inputs))

    def initial_state(self, context: Drive) -> Float[Array, " hidden"]:
        return jnp.zeros_like(context.prior)

    def prior(self, state: Float[Array, " hidden"], context: Drive) -> dist.Distribution:
        return self._prior(context.prior + self.prior_network.hidden.part(1, state))

    def proposal(
        self, state: Float[Array, " hidden"], evidence: Float[Array, " hidden"], prior: dist.Distribution
    ) -> dist.Distribution:
        return self._proposal(evidence + self.proposal_network.hidden.part(1, state), prior)

    def emission(
        self, state: Float[Array, " hidden"], latent: Shaped[Array, "..."], context: Drive
    ) -> dist.Distribution:
        return self._emission(context.emission + self.emission_network.hidden.part(0, self._read(latent)))

    def advance(
        self, state: Float[Array, " hidden"], latent: Shaped[Array, "..."], history: None
    ) -> Float[Array, " hidden"]:
        return self._read(latent)

    def _drive(self, hidden: Float[Array, "*time hidden"], inputs: Float[Array, "*time input"] | None) -> Drive:
        prior, emission = self.prior_network.hidden, self.emission_network.hidden
        return Drive(prior.drive({0: hidden}, inputs), emission.drive({1: hidden}, inputs))
