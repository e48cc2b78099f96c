"""Score terms: the gradient's share of every draw that cannot be differentiated (Section 3.1 of the paper)."""

from typing import ClassVar, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from fivo.batch import Batch
from fivo.errors import InputError
from fivo.gradients.baselines import Baseline, NoBaseline, OtherParticles, Signals, get_baseline
from fivo.gradients.estimator import Estimate, Gradient, Setting, refuse_carrying, refuse_discrete, slope_only
from fivo.models.contract import SequenceModel
from fivo.models.scoring import log_prob, observation_log_prob, sample, weight_dtype
from fivo.resampling import law_of, systematic
from fivo.smc import FilterResult
from fivo.smc.filter import kept, sequence_keys
from fivo.smc.step import EVERY_PATH, Paths, Propagated, StepInputs

Result = TypeVar("Result", bound=eqx.Module)


class Score(Gradient):
    """∇ log p̂ given all draws, plus the scores of latents and ancestors times what follows them.

    The whole gradient of FIVO for latents of any kind: unbiased for a fixed schedule. An adaptive criterion depends on
    the parameters too, and that share of the gradient is dropped.
    """

    baseline: Baseline = eqx.field(converter=get_baseline, default=NoBaseline())
    of_latents: ClassVar[bool] = True
    of_ancestors: ClassVar[bool] = True
    name: ClassVar[str] = "score"

    def check(self, setting: Setting) -> None:
        refuse_carrying(setting, self.name)
        if self.of_ancestors and setting.resamples:
            law_of(setting.scheme)
        if not self.of_latents and not setting.resamples:
            raise InputError(
                f"got the {self.name} gradient for a bound that never resamples; use gradient='pathwise', or "
                "'latent-score' for discrete latents."
            )
        if isinstance(self.baseline, OtherParticles):
            _check_particles(setting, self.of_ancestors)

    def __call__(self, setting: Setting, model: SequenceModel, batch: Batch, key: Key[Array, "*batch"]) -> Estimate:
        copies = self.baseline.num_filters
        if copies > 1:
            batch, key = independent_copies(batch, key, copies)
        paths = Scored() if self.of_latents else EVERY_PATH
        result = setting.run(model, batch, key, paths=paths, keep=("log_weights", "ancestors"))
        if not self.of_latents:
            refuse_discrete(result, self.name)
        log_evidence = result.log_evidence + slope_only(self.terms(result, batch, setting))
        return Estimate(*first_copies(log_evidence, result, copies))

    def terms(self, result: FilterResult, batch: Batch, setting: Setting) -> Float[Array, " batch"]:
        """Σ over draws of (signal - baseline) log-probability, whose derivative is the score term."""
        signals = Signals.of(result, batch.lengths)
        total = jnp.zeros_like(result.log_evidence)
        if self.of_latents:
            advantage = self.baseline.latents(signals)
            active = signals.steps_left > 0
            total = total + _weighted_sum(advantage, kept(result.log_proposal), active)
        if self.of_ancestors and setting.resamples:
            advantage = self.baseline.ancestors(signals)
            followed = result.resampled & (signals.steps_left > 1)
            scores = jax.vmap(jax.vmap(law_of(setting.scheme)))(kept(result.log_weights), kept(result.ancestors))
            total = total + _weighted_sum(advantage, scores, followed)
        return total

    def learn(self, log_increments: Float[Array, "batch time"], lengths: Int[Array, " batch"]) -> "Score":
        return type(self)(self.baseline.learn(log_increments, lengths))


class ResamplingScore(Score):
    """Pathwise latents plus the scores of the ancestors drawn (Eq. 5 of the paper).

    The whole gradient of FIVO for reparameterised latents and a fixed schedule.
    """

    of_latents: ClassVar[bool] = False
    name: ClassVar[str] = "resampling-score"


class LatentScore(Score):
    """∇ log p̂ given all draws, plus the scores of the latents; resampling terms dropped.

    The whole gradient of the ELBO and of IWAE; for FIVO it is to discrete latents what the pathwise one is to others.
    """

    of_ancestors: ClassVar[bool] = False
    name: ClassVar[str] = "latent-score"


class Scored(Paths):
    """Latents that derivatives do not pass through, with log q_t of each."""

    def propagate(self, model: SequenceModel, key: Key[Array, ""], state: PyTree, inputs: StepInputs) -> Propagated:
        prior = model.prior(state, inputs.past)
        proposal = model.proposal(state, inputs.full, prior)
        dtype = weight_dtype(model)
        latent = jax.lax.stop_gradient(sample(proposal, key, dtype))
        log_likelihood = observation_log_prob(model.emission(state, latent, inputs.past), inputs.x, inputs.mask)
        log_proposal = log_prob(proposal, latent)
        same = proposal is prior
        log_ratio = jnp.zeros_like(log_likelihood) if same else log_prob(prior, latent) - log_proposal
        following = model.advance(state, latent, inputs.past_next)
        log_likelihood, log_ratio = log_likelihood.astype(dtype), log_ratio.astype(dtype)
        return Propagated(latent, log_likelihood, log_ratio, following, log_proposal.astype(dtype))


def independent_copies(batch: Batch, key: Key[Array, "*batch"], copies: int) -> tuple[Batch, Key[Array, " copies"]]:
    """Every sequence several times in a row, each with a key of its own."""
    keys = sequence_keys(key, batch.lengths.shape[0])
    keys = jax.vmap(lambda k: jax.random.split(k, copies))(keys).reshape(-1)
    return jax.tree.map(lambda leaf: jnp.repeat(leaf, copies, axis=0), batch), keys


def first_copies(
    log_evidence: Float[Array, " copies"], result: Result, copies: int
) -> tuple[Float[Array, " batch"], Result]:
    """The average estimate of a sequence's copies, and the run of the first of them."""
    if copies == 1:
        return log_evidence, result
    return log_evidence.reshape(-1, copies).mean(axis=1), jax.tree.map(lambda leaf: leaf[::copies], result)


def _weighted_sum(
    advantage: Float[Array, "batch time signal"],
    scores: Float[Array, "batch time draw"],
    chosen: Bool[Array, "batch time"],
) -> Float[Array, " batch"]:
    products = jnp.where(chosen[..., None], jax.lax.stop_gradient(advantage) * scores, 0)
    return jnp.sum(products, axis=(1, 2))


def _check_particles(setting: Setting, of_ancestors: bool) -> None:
    if setting.num_particles < 2:
        raise InputError(
            "got the particles baseline with one particle, where there is no other; use more, or baseline='filters'."
        )
    if of_ancestors and setting.resamples and setting.scheme is systematic:
        raise InputError(
            "got the particles baseline with systematic resampling, whose ancestors all depend on one draw; use "
            "multinomial or stratified resampling, or baseline='filters'."
        )
