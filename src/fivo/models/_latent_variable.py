"""Plain latent variable models p(x, z) with q(z | x): the contract without time."""

from typing import ClassVar

from fivo.models._contract import SequenceModel


class LatentVariableModel(SequenceModel):
    """A model whose frames are independent: define `prior`, `proposal` and `emission`, and leave the state alone.

    An observation x is a sequence of one frame (`Batch.from_sequences(x[:, None])`), so that every objective takes it.
    """

    markov: ClassVar[bool] = True

    def initial_state(self, context):
        return ()

    def advance(self, state, latent, history):
        return ()
