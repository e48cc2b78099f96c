"""A model as it is, but for a part of it that is another."""

from typing import Any

import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, PyTree, Shaped

from fivo.batch import Sequence
from fivo.models._contract import SequenceModel, check_kind


class Wrapped(SequenceModel):
    """A model that does everything as another does; subclasses replace a part of it.

    Args:
        model: the other model.
    """

    model: SequenceModel

    def __check_init__(self) -> None:
        check_kind(self.model)

    @property
    def bare(self) -> SequenceModel:
        return self.model.bare

    @property
    def markov(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.model.markov

    @property
    def num_inputs(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.model.num_inputs

    @property
    def causal(self) -> bool:
        return self.model.causal

    def __getattr__(self, name: str) -> Any:
        # Only what neither this class nor the contract has. While JAX rebuilds a module it has no fields yet.
        if name.startswith("_") or name in type(self).__dataclass_fields__:
            raise AttributeError(name)
        return getattr(self.model, name)

    def initial_state(self, context: PyTree) -> PyTree:
        return self.model.initial_state(context)

    def initial_prior(self, state: PyTree, context: PyTree) -> dist.Distribution:
        return self.model.initial_prior(state, context)

    def prior(self, state: PyTree, context: PyTree) -> dist.Distribution:
        return self.model.prior(state, context)

    def proposal(self, state: PyTree, evidence: PyTree, prior: dist.Distribution) -> dist.Distribution:
        return self.model.proposal(state, evidence, prior)

    def emission(self, state: PyTree, latent: PyTree, context: PyTree) -> dist.Distribution:
        return self.model.emission(state, latent, context)

    def advance(self, state: PyTree, latent: PyTree, history: PyTree) -> PyTree:
        return self.model.advance(state, latent, history)

    def encode(self, sequence: Sequence) -> tuple[PyTree, PyTree, PyTree]:
        return self.model.encode(sequence)

    def begin(self) -> PyTree:
        return self.model.begin()

    def context_next(self, memory: PyTree, inputs: Float[Array, " input"] | None) -> PyTree:
        return self.model.context_next(memory, inputs)

    def encode_next(
        self,
        memory: PyTree,
        x: Shaped[Array, " dim"],
        mask: Bool[Array, " dim"] | None,
        inputs: Float[Array, " input"] | None,
    ) -> tuple[PyTree, PyTree, PyTree]:
        return self.model.encode_next(memory, x, mask, inputs)
