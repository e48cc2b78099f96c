"""∇ log p̂ with reparameterised latents, resampling terms dropped: the paper's choice."""

import jax
from jaxtyping import Array, Float, Key

from fivo.batch import Batch
from fivo.errors import InputError
from fivo.gradients.estimator import Estimate, Gradient, Setting, discrete_sentence
from fivo.models.contract import SequenceModel


class Pathwise(Gradient):
    """What is left of Eq. 5 of the paper without its sum over resampling steps.

    Unbiased without resampling. With it, biased by the terms that were dropped.
    """

    def check(self, setting: Setting) -> None:
        """Goes with every filter."""

    def __call__(self, setting: Setting, model: SequenceModel, batch: Batch, key: Key[Array, "*batch"]) -> Estimate:
        result = setting.run(model, batch, key)
        log_evidence = result.log_evidence
        return Estimate(_no_derivative(log_evidence) if result.discrete else log_evidence, result)


@jax.custom_vjp
def _no_derivative(log_evidence: Float[Array, " batch"]) -> Float[Array, " batch"]:
    """The same values; differentiating them is a mistake that is worth a sentence."""
    return log_evidence


def _refuse(log_evidence: Float[Array, " batch"]) -> None:
    raise InputError(discrete_sentence("pathwise"))


_no_derivative.defvjp(_refuse, _refuse)  # pyright: ignore[reportArgumentType]
