"""Plain latent variable models p(x, z) with q(z | x): the contract without time."""

from typing import ClassVar

from fivo.models.contract import SequenceModel


class LatentVariableModel(SequenceModel):
    """A model whose frames are independent: write `prior`, `proposal` and `emission`, and leave the state alone.

    An observation x is a sequence of one frame (`Batch.from_sequences(x[:, None])`), so that every objective takes it.
    """

    markov: ClassVar[bool] = True

    def initial_state(self, past):
        return ()

    def advance(self, state, latent, past):
        return ()
