"""Stop-gradient resampling (Ścibior and Wood 2021)."""

import jax
from jaxtyping import Array, Key, PyTree

from fivo.batch import Batch
from fivo.errors import InputError
from fivo.gradients.estimator import Estimate, Gradient, Setting, refuse_carrying
from fivo.models.contract import SequenceModel
from fivo.models.scoring import log_prob, observation_log_prob, sample, weight_dtype
from fivo.resampling import StopGradient
from fivo.smc.step import Paths, Propagated, StepInputs, propagate


class StopGradientResampling(Gradient):
    """∇p̂ / p̂ with E[∇p̂] = ∇p(x): a consistent estimate of the *score of the likelihood*, ∇ log p(x).

    It is not an estimate of ∇E[log p̂]: a proposal's parameters leave p(x) as it is, so about q it says next to nothing.
    The proposal of discrete latents gets no gradient at all.
    """

    def check(self, setting: Setting) -> None:
        refuse_carrying(setting, "stop-gradient")
        if not setting.resamples:
            raise InputError(
                "got the stop-gradient gradient for a bound that never resamples, where there is nothing to stop; use "
                "gradient='pathwise'."
            )

    def __call__(self, setting: Setting, model: SequenceModel, batch: Batch, key: Key[Array, "*batch"]) -> Estimate:
        result = setting.run(model, batch, key, paths=_HeldProposal(), scheme=StopGradient(setting.scheme))
        return Estimate(result.log_evidence, result)


class _HeldProposal(Paths):
    """Discrete latents are drawn from a q_t that derivatives do not see: p_t g_t / ⊥q_t is unbiased for ∇p(x) too."""

    def propagate(self, model: SequenceModel, key: Key[Array, ""], state: PyTree, inputs: StepInputs) -> Propagated:
        prior = model.prior(state, inputs.past)
        proposal = model.proposal(state, inputs.full, prior)
        if not proposal.is_discrete:
            return propagate(model, key, state, inputs)
        dtype = weight_dtype(model)
        latent = sample(proposal, key, dtype)
        log_likelihood = observation_log_prob(model.emission(state, latent, inputs.past), inputs.x, inputs.mask)
        log_ratio = log_prob(prior, latent) - jax.lax.stop_gradient(log_prob(proposal, latent))
        following = model.advance(state, latent, inputs.past_next)
        return Propagated(latent, log_likelihood.astype(dtype), log_ratio.astype(dtype), following)
