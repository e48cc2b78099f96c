"""The variational recurrent neural network (Chung et al. 2015), as in Section 5 of the paper."""

from typing import ClassVar

import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, Shaped

from fivo.batch import Sequence
from fivo.models._layers import LSTMState
from fivo.models._recurrent import Drive, Reads, RecurrentModel


class VRNN(RecurrentModel):
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

    reads: ClassVar[Reads] = Reads(recurrence=2, prior=1, proposal=2, backward=1)

    def encode(self, sequence: Sequence) -> tuple[Drive | None, Float[Array, "time hidden"], Array]:
        """Run once per sequence what does not depend on the particles.

        Args:
            sequence: observations [time, dim], length, mask and inputs [time, input].

        Returns:
            What u_t drives; the part of the proposal that x drives; the part of the gates that x_t drives.
        """
        features = self.data_encoder(self.output, sequence.observations, sequence.mask)
        evidence = self.proposal_network.hidden.drive({1: features}, sequence.inputs)
        if self.backward is not None:
            active = jnp.arange(features.shape[0]) < sequence.length
            future = self.backward.backward(self.backward.drive({0: features}), active)
            evidence = evidence + self.proposal_network.hidden.part(2, future)
        return self._drive(sequence.inputs), evidence, self.recurrence.drive({0: features}, sequence.inputs)

    def context_next(self, memory: tuple[()], inputs: Float[Array, " input"] | None) -> Drive | None:
        return self._drive(inputs)

    def encode_next(
        self,
        memory: tuple[()],
        x: Shaped[Array, " dim"],
        mask: Bool[Array, " dim"] | None,
        inputs: Float[Array, " input"] | None,
    ) -> tuple[Float[Array, " hidden"] | None, Float[Array, " gates"], tuple[()]]:
        features = self.data_encoder(self.output, x, mask)
        evidence = self.proposal_network.hidden.drive({1: features}, inputs) if self.causal else None
        return evidence, self.recurrence.drive({0: features}, inputs), ()

    def initial_state(self, context: Drive | None) -> LSTMState:
        """The frame before the first is zero after centring, and so are the inputs before the first.

        Args:
            context: context_1.

        Returns:
            h_1.
        """
        return self._first()

    def prior(self, state: LSTMState, context: Drive | None) -> dist.Distribution:
        return self._prior(_driven(self.prior_network.hidden.first(state.hidden), context and context.prior))

    def proposal(
        self, state: LSTMState, evidence: Float[Array, " hidden"], prior: dist.Distribution
    ) -> dist.Distribution:
        return self._proposal(self.proposal_network.hidden.part(0, state.hidden) + evidence, prior)

    def emission(self, state: LSTMState, latent: Shaped[Array, "..."], context: Drive | None) -> dist.Distribution:
        preactivation = self.emission_network.hidden.first(self._read(latent), state.hidden)
        return self._emission(_driven(preactivation, context and context.emission))

    def advance(self, state: LSTMState, latent: Shaped[Array, "..."], history: Float[Array, " gates"]) -> LSTMState:
        return self.recurrence.step(state, history + self.recurrence.gates.part(1, self._read(latent)))

    def _drive(self, inputs: Float[Array, "*time input"] | None) -> Drive | None:
        if inputs is None:
            return None
        return Drive(self.prior_network.hidden.part(-1, inputs), self.emission_network.hidden.part(-1, inputs))


def _driven(preactivation: Float[Array, " hidden"], drive: Float[Array, " hidden"] | None) -> Float[Array, " hidden"]:
    return preactivation if drive is None else preactivation + drive
