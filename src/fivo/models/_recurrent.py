"""What the paper's two recurrent models share: their networks, and how frames, inputs and latents drive these."""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import numpyro.distributions as dist
from jaxtyping import Array, Float, Key, Shaped

from fivo.models._contract import SequenceModel
from fivo.models._emissions import Emission
from fivo.models._latents import Latent, NormalLatent
from fivo.models._layers import LSTM, MLP, LSTMState
from fivo.models._reading import DataEncoder, check_sizes


class Reads(NamedTuple):
    """How many inputs of H numbers each network of a model reads, besides u_t."""

    recurrence: int
    prior: int
    proposal: int
    backward: int


class Drive(NamedTuple):
    """What is known before a particle is looked at, as parts of the hidden layers of the prior and of the emission."""

    prior: Float[Array, "*time hidden"]
    emission: Float[Array, "*time hidden"]


class RecurrentModel(SequenceModel):
    """Networks of H units around an LSTM: φ_x reads frames, φ_z latents, and the proposal perhaps a backward LSTM.

    Wherever u_t is read it is the last input, and the backward LSTM's is the proposal's last but u_t.
    """

    reads: ClassVar[Reads]

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
        known, reads = ((num_inputs,) if num_inputs else ()), self.reads
        keys = jax.random.split(key, 7)
        self.data_encoder = DataEncoder(output, hidden, gaps=gaps, key=keys[0])
        self.latent_encoder = MLP((self.latent.size,), hidden, hidden, key=keys[1])
        self.recurrence = LSTM((hidden,) * reads.recurrence + known, hidden, key=keys[2])
        self.prior_network = MLP((hidden,) * reads.prior + known, hidden, self.latent.num_outputs, key=keys[3])
        read = (hidden,) * (reads.proposal + smoothing)
        self.proposal_network = MLP(read + known, hidden, self.latent.num_outputs, key=keys[4])
        self.emission_network = MLP((hidden, hidden, *known), hidden, output.num_outputs, key=keys[5])
        self.backward = LSTM((hidden,) * reads.backward, hidden, key=keys[6]) if smoothing else None
        self.output = output

    @property
    def causal(self) -> bool:
        return self.backward is None

    def _first(self) -> LSTMState:
        """The recurrence before the first frame; the frame before that is zero after centring, and so is its u."""
        return self.recurrence.step(self.recurrence.initial(), self.recurrence.drive({0: self.data_encoder.silence()}))

    def _read(self, latent: Shaped[Array, "..."]) -> Float[Array, " hidden"]:
        """φ_z(z_t)."""
        return self.latent_encoder(self.latent.features(latent))

    def _prior(self, preactivation: Float[Array, " hidden"]) -> dist.Distribution:
        return self.latent.prior(self.prior_network.finish(preactivation))

    def _emission(self, preactivation: Float[Array, " hidden"]) -> dist.Distribution:
        return self.output(self.emission_network.finish(preactivation))

    def _proposal(self, preactivation: Float[Array, " hidden"], prior: dist.Distribution) -> dist.Distribution:
        return self.latent.proposal(self.proposal_network.finish(preactivation), prior)
