"""Score terms: the gradient's share of every draw that cannot be differentiated (Section 3.1 of the paper)."""

from collections.abc import Collection
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from fivo.distributions import discrete_log_prob, log_prob, sample, weight_dtype
from fivo.errors import InputError
from fivo.gradients._baselines import Baseline, NoBaseline, OtherParticles, Signals, get_baseline
from fivo.gradients._gradient import Gradient
from fivo.models import Frame, SequenceModel, extend
from fivo.resampling import law_of, systematic
from fivo.smc import EVERY_PATH, FilterResult, ParticleFilter, Proposed, Record, Rules


class Score(Gradient):
    """∇ log p̂ given all draws, plus the scores of latents and ancestors times what follows them.

    Args:
        baseline: what is subtracted from the learning signals: a name ("none", "moving-average", "filters",
            "particles") or a `Baseline`.

    The whole gradient of FIVO for latents of any kind: unbiased for a fixed schedule. An adaptive criterion depends on
    the parameters too, and that share of the gradient is dropped.
    """

    baseline: Baseline = eqx.field(converter=get_baseline, default=NoBaseline())
    name: ClassVar[str] = "score"
    of_latents: ClassVar[bool] = True
    of_ancestors: ClassVar[bool] = True
    follows_latents: ClassVar[bool] = False
    keep: ClassVar[Collection[Record]] = ("log_weights", "ancestors")

    @property
    def num_filters(self) -> int:
        return self.baseline.num_filters

    def check(self, pf: ParticleFilter) -> None:
        super().check(pf)
        if self.of_ancestors and pf.resamples:
            law_of(pf.scheme)
        if not self.of_latents and not pf.resamples:
            raise InputError(
                f"the {self.name} gradient must have a bound that resamples, got one that never does; use "
                "gradient='pathwise', or 'latent-score' for discrete latents."
            )
        if isinstance(self.baseline, OtherParticles):
            _check_particles(pf, self.of_ancestors)

    def rules(self, pilot: FilterResult | None, lengths: Int[Array, " batch"]) -> Rules:
        return Scored() if self.of_latents else EVERY_PATH

    def surrogate(
        self, pf: ParticleFilter, result: FilterResult, lengths: Int[Array, " batch"]
    ) -> Float[Array, " batch"]:
        """Σ over draws of (signal - baseline) times log-probability, whose derivative is the score term.

        Args:
            pf: the filter.
            result: what it found.
            lengths: of the sequences [batch].

        Returns:
            The term [batch].
        """
        signals = Signals.of(result, lengths)
        total = jnp.zeros_like(result.log_evidence)
        if result.log_proposal is not None:
            advantage = self.baseline.latents(signals)
            total = total + _weighted_sum(advantage, result.log_proposal, signals.steps_left > 0)
        if self.of_ancestors and pf.resamples:
            advantage = self.baseline.ancestors(signals)
            followed = result.resampled & (signals.steps_left > 1)
            law = jax.vmap(jax.vmap(law_of(pf.scheme)))
            scores = law(result.record("log_weights"), result.record("ancestors"))
            total = total + _weighted_sum(advantage, scores, followed)
        return total

    def learn(self, log_increments: Float[Array, "batch time"], lengths: Int[Array, " batch"]) -> "Score":
        return type(self)(self.baseline.learn(log_increments, lengths))


class ResamplingScore(Score):
    """Pathwise latents plus the scores of the ancestors drawn (Eq. 5 of the paper).

    Args:
        baseline: what is subtracted from the learning signals.

    The whole gradient of FIVO for reparameterized latents and a fixed schedule.
    """

    name: ClassVar[str] = "resampling-score"
    of_latents: ClassVar[bool] = False
    follows_latents: ClassVar[bool] = True


class LatentScore(Score):
    """∇ log p̂ given all draws, plus the scores of the latents; resampling terms dropped.

    Args:
        baseline: what is subtracted from the learning signals.

    The whole gradient of the ELBO and of IWAE; for FIVO it is to discrete latents what the pathwise one is to others.
    """

    name: ClassVar[str] = "latent-score"
    of_ancestors: ClassVar[bool] = False


class MixedScore(Score):
    """Pathwise for continuous latents, scores for discrete ones and for the ancestors.

    Args:
        baseline: what is subtracted from the learning signals.

    The whole gradient of FIVO for a model with both kinds of latents and a fixed schedule. Such latents must be drawn
    by a `fivo.distributions.Joint`, which tells the two apart.
    """

    name: ClassVar[str] = "mixed-score"

    def rules(self, pilot: FilterResult | None, lengths: Int[Array, " batch"]) -> Rules:
        return ScoredWhereDiscrete()


class Mixed(MixedScore):
    """Pathwise for continuous latents, scores for discrete ones; resampling terms dropped.

    Args:
        baseline: what is subtracted from the learning signals.

    What the paper's choice is for continuous latents, for models with both kinds.
    """

    name: ClassVar[str] = "mixed"
    of_ancestors: ClassVar[bool] = False


class Scored(Rules):
    """Latents that derivatives do not pass through, with log q_t of each."""

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
        made = extend(model, state, frame, lambda q: jax.lax.stop_gradient(sample(q, key, dtype)), first=first)
        log_proposal = log_prob(made.proposal, made.latent)
        same = made.proposal is made.prior
        log_ratio = jnp.zeros_like(log_proposal) if same else log_prob(made.prior, made.latent) - log_proposal
        return Proposed(
            made.latent, made.log_likelihood, log_ratio.astype(dtype), made.state, log_proposal.astype(dtype)
        )


class ScoredWhereDiscrete(Rules):
    """Every path through continuous latents, and log q_t of the discrete ones."""

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
        same = made.proposal is made.prior
        ratio = 0.0 if same else log_prob(made.prior, made.latent) - log_prob(made.proposal, made.latent)
        scores = discrete_log_prob(made.proposal, made.latent)
        return Proposed(made.latent, made.log_likelihood, jnp.asarray(ratio, dtype), made.state, scores.astype(dtype))


def _weighted_sum(
    advantage: Float[Array, "batch time signal"],
    scores: Float[Array, "batch time draw"],
    chosen: Bool[Array, "batch time"],
) -> Float[Array, " batch"]:
    products = jnp.where(chosen[..., None], jax.lax.stop_gradient(advantage) * scores, 0)
    return jnp.sum(products, axis=(1, 2))


def _check_particles(pf: ParticleFilter, of_ancestors: bool) -> None:
    if pf.num_particles < 2:
        raise InputError(
            "the particles baseline must have at least two particles, got one; use more, or baseline='filters'."
        )
    if of_ancestors and pf.resamples and pf.scheme is systematic:
        raise InputError(
            "the particles baseline must have multinomial or stratified resampling, got systematic, whose ancestors "
            "all depend on one draw; change it, or use baseline='filters'."
        )
