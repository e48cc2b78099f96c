"""Models with a twist: a guess of how likely the frames to come are, given a particle (Lawson et al. 2022)."""

from typing import Any

import equinox as eqx
from jaxtyping import Array, Float, PyTree

from fivo.batch import Sequence
from fivo.errors import InputError
from fivo.models._contract import SequenceModel
from fivo.models._wrapped import Wrapped


class Twist(eqx.Module):
    """A family of twists r_t(z_t, x_t+1:T) > 0 for some kind of model.

    Subclasses define `lookahead` and `__call__`; both are given the model, whose parameters they may use. A family
    with its own arrays is trained by the bound or by an update of `fivo.training`.
    """

    def check(self, model: SequenceModel) -> None:
        """Refuse, with `InputError`, a model that the family has no twist for.

        Args:
            model: the model.
        """

    def lookahead(self, model: SequenceModel, sequence: Sequence) -> PyTree:
        """What the twist reads of the frames to come.

        Args:
            model: the model.
            sequence: observations [time, dim], length, mask and inputs [time, input].

        Returns:
            A pytree with T entries, future[t] from x_t+1:T and the inputs.
        """
        raise InputError(f"{type(self).__name__} must define lookahead(model, sequence).")

    def __call__(self, model: SequenceModel, state: PyTree, latent: PyTree, future: PyTree) -> Float[Array, ""]:
        """The twist of one particle.

        Args:
            model: the model.
            state: h_t.
            latent: z_t.
            future: future_t.

        Returns:
            log r_t(z_t), finite.
        """
        raise InputError(f"{type(self).__name__} must define __call__(model, state, latent, future).")


class Twisted(Wrapped):
    """A model as it is, with a twist for filters that look ahead.

    Args:
        model: any model.
        twisting: a family of twists that goes with it, such as `ExactTwist()`.

    Prior, proposal, emission and everything else are the model's own, `log_evidence` and the like included.
    """

    twisting: Twist

    def __check_init__(self) -> None:
        if not isinstance(self.twisting, Twist):
            raise InputError(f"the twist must be a fivo.models.Twist, got {type(self.twisting).__name__}.")
        self.twisting.check(self.model)

    def lookahead(self, sequence: Sequence) -> PyTree:
        return self.twisting.lookahead(self.model, sequence)

    def twist(self, state: PyTree, latent: PyTree, future: PyTree) -> Float[Array, ""]:
        return self.twisting(self.model, state, latent, future)


class ExactTwist(Twist):
    """r_t = p(x_t+1:T | z_t) itself, of models that know it: `LinearGaussian`, `DiscreteHMM`, `DriftDiffusion`.

    Such a model has `exact_lookahead(sequence) -> future` and `log_lookahead(latent, future_t)`. With it and the
    smoothing proposal p(z_t | z_t-1, x_t:T) every weight is constant and p̂_N = p(x) for every N.
    """

    def check(self, model: SequenceModel) -> None:
        if not hasattr(model, "exact_lookahead"):
            raise InputError(
                f"{type(model).__name__} must have exact_lookahead(sequence) and log_lookahead(latent, future) for an "
                "exact twist; use another family of twists."
            )

    def lookahead(self, model: Any, sequence: Sequence) -> PyTree:
        return model.exact_lookahead(sequence)

    def __call__(self, model: Any, state: PyTree, latent: PyTree, future: PyTree) -> Float[Array, ""]:
        return model.log_lookahead(latent, future)
