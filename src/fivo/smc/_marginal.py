"""The marginal particle filter (Klaas, de Freitas and Doucet 2005): weights that average over all ancestors."""

from typing import Any, NamedTuple, NoReturn

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PyTree

from fivo._fuse import particle_keys, scan
from fivo.batch import Batch
from fivo.distributions import log_prob, sample, weight_dtype
from fivo.errors import InputError
from fivo.models import SequenceModel, extend, inspect_step, over_time, read_batch
from fivo.resampling import Always, AnyScheme, DifferentiableScheme, draw_ancestors
from fivo.smc._filter import ParticleFilter
from fivo.smc._result import FilterResult, without
from fivo.smc._rules import EVERY_PATH, Rules
from fivo.smc._step import Particles, StepInfo, StepInputs, initial_particles, select
from fivo.weights import effective_sample_size, log_sum_exp, normalize

MAX_PARTICLES = 2048
"""Above it the N² densities of a step take longer than many more particles of a plain filter."""


class MarginalParticleFilter(ParticleFilter):
    """A particle filter that draws z_t from the mixture of all particles' proposals, and weighs it by the mixtures.

    w_t^i ∝ g(x_t | z_t^i) Σ_j w_{t-1}^j p(z_t^i | z_{t-1}^j) / Σ_j w_{t-1}^j q(z_t^i | z_{t-1}^j, x_t): unbiased, with
    less variance than the plain filter's at equal N, at N² densities a step.

    Args:
        num_particles: N, at most 2,048.
        resampling: how the components of the mixture are drawn: "multinomial", "stratified", "systematic" or
            "residual".

    It is called like a `ParticleFilter`, with a model whose latents are a Markov chain (`model.markov`); an ancestor in
    its result is the component that a latent was drawn from. There is nothing to stream or to condition on, and
    derivatives follow every path.
    """

    def __init__(self, num_particles: int, resampling: str | AnyScheme = "multinomial") -> None:
        self.num_particles, self.resampling, self.criterion, self.twisted = num_particles, resampling, Always(), False

    def __check_init__(self) -> None:
        if self.num_particles > MAX_PARTICLES:
            raise InputError(
                f"a marginal filter must have at most {MAX_PARTICLES} particles, got {self.num_particles}: it computes "
                "the square of that in densities at every step; use a ParticleFilter."
            )
        if isinstance(self.scheme, DifferentiableScheme):
            raise InputError(
                f"a marginal filter must draw whole particles, got {self.resampling!r} resampling, which mixes or "
                "reweighs them; use multinomial, stratified, systematic or residual."
            )

    def _filter(
        self, model: SequenceModel, batch: Batch, keys: Key[Array, " batch"], records: frozenset[str], rules: Rules
    ) -> FilterResult:
        if not model.markov:
            raise InputError(
                f"the latents of {type(model).__name__} must be a Markov chain for a marginal filter: otherwise a "
                "latent has no density given another particle's past; use a ParticleFilter."
            )
        if rules is not EVERY_PATH:
            raise InputError(
                "a marginal filter must be differentiated by gradient='pathwise' or 'resampling-score', got another."
            )
        return _run(self, model, batch, keys, records)

    def init(self, model: SequenceModel, *, key: Key[Array, ""]) -> NoReturn:
        """Refused: use a `ParticleFilter` to stream.

        Args:
            model: any model.
            key: a random key.

        Returns:
            Nothing.
        """
        raise InputError("a stream must be filtered by a ParticleFilter, got a marginal one.")


class Mixture(NamedTuple):
    """The particles of the last step as components, and the component that each new particle is drawn from."""

    particles: Particles
    ancestors: Int[Array, "*batch particle"]


@eqx.filter_jit
def _run(
    pf: MarginalParticleFilter,
    model: SequenceModel,
    batch: Batch,
    keys: Key[Array, " batch"],
    keep: frozenset[str],
) -> FilterResult:
    frames = read_batch(model, batch, time_first=True).frames
    kinds = inspect_step(model, frames, num_axes=2)
    size, (num_sequences, num_steps) = pf.num_particles, batch.observations.shape[:2]
    first_context = jax.tree.map(lambda leaf: leaf[0], frames.context)
    start = jax.vmap(lambda context: initial_particles(model, context, size), axis_size=num_sequences)(first_context)
    own = jnp.broadcast_to(jnp.arange(size, dtype=jnp.int32), (num_sequences, size))
    steps = jnp.arange(num_steps, dtype=jnp.int32)
    inputs = StepInputs(
        step=steps,
        key=jax.vmap(lambda t: jax.vmap(lambda k: jax.random.fold_in(k, t))(keys))(steps),
        active=steps[:, None] < batch.lengths[None, :],
        frame=frames,
    )
    axes = StepInputs(None, 0, 0, 0, 0)  # pyright: ignore[reportArgumentType]

    def step(mixture: Mixture, now: StepInputs, first: bool) -> tuple[Mixture, StepInfo]:
        one = lambda m, i: _step(pf, model, m, i, first)  # noqa: E731
        mixture, info = jax.vmap(one, in_axes=(0, axes))(mixture, now)
        return mixture, without(info, keep)

    mixture, info = over_time(model, step, Mixture(start, own), inputs, scan)
    info = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), info)
    return FilterResult.of(mixture.particles, info, discrete=kinds.discrete)


def _step(
    pf: MarginalParticleFilter, model: SequenceModel, mixture: Mixture, inputs: StepInputs, first: bool
) -> tuple[Mixture, StepInfo]:
    """Draw from the mixture of proposals, weigh by the mixtures, and draw the components of the next step."""
    (state, log_weights), ancestors = (mixture.particles.state, mixture.particles.log_weights), mixture.ancestors
    dtype, active = weight_dtype(model), jnp.asarray(inputs.active)
    proposal_key, resampling_key = jax.random.split(inputs.key)
    keys = particle_keys(proposal_key, pf.num_particles)
    parents = jax.tree.map(lambda leaf: leaf[ancestors], state)

    def drawn(key: Key[Array, ""], parent: PyTree) -> tuple[PyTree, Float[Array, ""], PyTree]:
        made = extend(model, parent, inputs.frame, lambda q: sample(q, key, dtype), first=first)
        return made.latent, made.log_likelihood, made.state

    latents, log_likelihood, after = jax.vmap(drawn)(keys, parents)
    log_ratio = _mixture_ratio(model, state, log_weights, latents, inputs, first).astype(dtype)
    new_weights, log_total = normalize(log_likelihood + log_ratio)
    log_increment = log_total - jnp.log(jnp.asarray(pf.num_particles, dtype))
    particles = select(active, Particles(after, new_weights), mixture.particles)
    log_increment = jnp.where(active, log_increment, 0)
    scheme: Any = pf.scheme  # no differentiable one, as was checked
    chosen = draw_ancestors(scheme, resampling_key, jax.lax.stop_gradient(particles.log_weights), pf.num_particles)
    chosen = jnp.where(active, chosen, ancestors)
    info = StepInfo(
        log_increment=log_increment,
        ess=jnp.where(jnp.isneginf(log_increment), 0, effective_sample_size(particles.log_weights)),
        resampled=active,
        kl=jnp.where(active, -jnp.mean(log_ratio), 0),
        log_weights=particles.log_weights,
        ancestors=chosen,
        latents=latents,
    )
    return Mixture(particles, chosen), info


def _mixture_ratio(
    model: SequenceModel,
    state: PyTree,
    log_weights: Float[Array, " particle"],
    latents: PyTree,
    inputs: StepInputs,
    first: bool,
) -> Float[Array, " particle"]:
    """log Σ_j w_j p(z_i | h_j) - log Σ_j w_j q(z_i | h_j); zero for bootstrap proposals."""
    frame, bootstrap = inputs.frame, []

    def component(state: PyTree) -> tuple[Float[Array, " particle"], Float[Array, " particle"]]:
        prior = (model.initial_prior if first else model.prior)(state, frame.context)
        proposal = model.proposal(state, frame.evidence, prior)
        bootstrap.append(proposal is prior)
        log_prior = jax.vmap(lambda z: log_prob(prior, z))(latents)
        return log_prior, log_prior if proposal is prior else jax.vmap(lambda z: log_prob(proposal, z))(latents)

    log_prior, log_proposal = jax.vmap(component, out_axes=1)(state)
    if all(bootstrap):
        return jnp.zeros(log_weights.shape, log_weights.dtype)
    return log_sum_exp(log_prior + log_weights[None, :]) - log_sum_exp(log_proposal + log_weights[None, :])
