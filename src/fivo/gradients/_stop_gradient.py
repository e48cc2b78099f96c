"""Stop-gradient resampling (Ścibior and Wood 2021)."""

from typing import ClassVar

from jaxtyping import Array, Float, Int, Key, PyTree

from fivo.distributions import discrete_log_prob, log_prob, sample, weight_dtype
from fivo.errors import InputError
from fivo.gradients._gradient import Gradient, slope_only
from fivo.models import Frame, SequenceModel, extend
from fivo.resampling import AnyScheme, StopGradient
from fivo.smc import FilterResult, ParticleFilter, Proposed, Rules


class StopGradientResampling(Gradient):
    """∇p̂ / p̂ with E[∇p̂] = ∇p(x): a consistent estimate of the *score of the likelihood*, ∇ log p(x).

    It is not an estimate of ∇E[log p̂]: a proposal's parameters leave p(x) as it is, so about q it says next to nothing.
    The proposal of discrete latents gets no gradient at all.
    """

    name: ClassVar[str] = "stop-gradient"
    follows_latents: ClassVar[bool] = False

    def check(self, pf: ParticleFilter) -> None:
        super().check(pf)
        if not pf.resamples:
            raise InputError(
                "the stop-gradient gradient must have a bound that resamples, got one that never does; use "
                "gradient='pathwise'."
            )

    def rules(self, pilot: FilterResult | None, lengths: Int[Array, " batch"]) -> Rules:
        return HeldProposal()


class HeldProposal(Rules):
    """Discrete latents are drawn from a q_t that derivatives do not see: p_t g_t / ⊥q_t is unbiased for ∇p(x) too."""

    def propose(
        self,
        model: SequenceModel,
        key: Key[Array, ""],
        state: PyTree,
        frame: Frame,
        weight: Float[Array, ""] | None,
        first: bool,
    ) -> Proposed:
        dtype = weight_dtype(model)
        made = extend(model, state, frame, lambda q: sample(q, key, dtype), first=first)
        log_ratio = log_prob(made.prior, made.latent) - log_prob(made.proposal, made.latent)
        log_ratio = log_ratio + slope_only(discrete_log_prob(made.proposal, made.latent))
        return Proposed(made.latent, made.log_likelihood, log_ratio.astype(dtype), made.state)

    def scheme(self, scheme: AnyScheme) -> AnyScheme:
        return StopGradient(scheme)
