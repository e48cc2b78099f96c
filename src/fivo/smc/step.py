"""One step of the particle filter (Algorithm 1 of the paper) for one sequence."""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, Int, Key, PyTree, Shaped

from fivo._fuse import particle_keys, recompute, write_out
from fivo.errors import InputError
from fivo.models.contract import SequenceModel
from fivo.models.scoring import log_prob, observation_log_prob, sample, weight_dtype
from fivo.resampling import CarryingScheme, Criterion, Never, Scheme, draw_ancestors
from fivo.weights import effective_sample_size, normalize


class Particles(eqx.Module):
    """What the next step needs: the states h_{t+1} and their normalised log-weights."""

    state: PyTree
    log_weights: Float[Array, "*batch particle"]


class StepInputs(NamedTuple):
    """What step t reads besides the particles."""

    step: Int[Array, ""]
    key: Key[Array, ""]
    active: Bool[Array, ""] | None
    x: Shaped[Array, " dim"]
    mask: Bool[Array, " dim"] | None
    past: PyTree
    full: PyTree
    past_next: PyTree
    path_weights: Float[Array, " particle"] | None = None


class Propagated(NamedTuple):
    """One particle extended by one step; log q_t(z_t) only if a gradient needs it."""

    latent: PyTree
    log_likelihood: Float[Array, ""]
    log_ratio: Float[Array, ""]
    state: PyTree
    log_proposal: Float[Array, ""] | None = None


class Proposed(NamedTuple):
    """Particles extended by one step: z_t, log α_t, log p_t(z_t) - log q_t(z_t), h_{t+1} and maybe log q_t(z_t)."""

    latents: PyTree
    log_alpha: Float[Array, " particle"]
    log_ratio: Float[Array, " particle"]
    state: PyTree
    log_proposal: Float[Array, " particle"] | None = None


class StepInfo(eqx.Module):
    """What a person may want to see of a step; weights, ancestors and latents are those before resampling acts.

    `ancestors[i]` is the particle of this step that particle i of the next one continues. `kl` is the average of
    log q_t - log p_t over the particles.
    """

    log_increment: Float[Array, "*steps"]
    ess: Float[Array, "*steps"]
    resampled: Bool[Array, "*steps"]
    kl: Float[Array, "*steps"]
    log_weights: Float[Array, "*steps particle"]
    ancestors: Int[Array, "*steps particle"]
    latents: PyTree
    log_proposal: Float[Array, "*steps particle"] | None = None


class Paths(eqx.Module):
    """Which ways from the parameters to log p̂ a derivative follows through a step; values are the same for all.

    These are all ways but the choice of ancestors; `fivo.gradients` has others.
    """

    weights: ClassVar[Float[Array, "batch time particle"] | None] = None
    """What the steps read as `path_weights`."""

    def begin(self, state: PyTree) -> PyTree:
        """What particles carry in place of h_1."""
        return state

    def propagate(self, model: SequenceModel, key: Key[Array, ""], state: PyTree, inputs: StepInputs) -> Propagated:
        """One particle extended by one step."""
        return propagate(model, key, state, inputs)

    def resume(self, resampled: Bool[Array, ""], state: PyTree) -> PyTree:
        """What they carry on with after a step, its resampling done."""
        return state


EVERY_PATH = Paths()


def smc_step(
    model: SequenceModel,
    scheme: Scheme | CarryingScheme,
    criterion: Criterion,
    particles: Particles,
    inputs: StepInputs,
) -> tuple[Particles, StepInfo]:
    """Propose, weight, and resample if the criterion says so."""
    particles, info = weigh(model, criterion, particles, inputs)
    if isinstance(criterion, Never):
        return particles, info
    particles, ancestors = resample(scheme, inputs.key, info.resampled, particles)
    return particles, eqx.tree_at(lambda i: i.ancestors, info, ancestors)


def weigh(
    model: SequenceModel, criterion: Criterion, particles: Particles, inputs: StepInputs, paths: Paths = EVERY_PATH
) -> tuple[Particles, StepInfo]:
    """Propose and weight; whether to resample is decided, everyone still is its own ancestor."""
    num_particles = particles.log_weights.shape[-1]
    latents, log_alpha, log_ratio, state, log_proposal = propose(model, particles.state, num_particles, inputs, paths)
    log_weights, log_increment = normalize(particles.log_weights + log_alpha)
    if inputs.active is not None:
        log_increment = jnp.where(inputs.active, log_increment, 0)
        log_weights = jnp.where(inputs.active, log_weights, particles.log_weights)
    resampled = criterion(log_weights, inputs.step)
    info = StepInfo(
        log_increment=log_increment,
        ess=jnp.where(jnp.isneginf(log_increment), 0, effective_sample_size(log_weights)),
        resampled=resampled if inputs.active is None else resampled & inputs.active,
        kl=-jnp.mean(log_ratio),
        log_weights=log_weights,
        ancestors=jnp.arange(num_particles, dtype=jnp.int32),
        latents=latents,
        log_proposal=log_proposal,
    )
    return Particles(state, log_weights), info


def resample(
    scheme: Scheme | CarryingScheme,
    key: Key[Array, ""],
    resampled: Bool[Array, ""],
    particles: Particles,
    paths: Paths = EVERY_PATH,
) -> tuple[Particles, Int[Array, " particle"]]:
    """Where it was decided, N particles drawn by weight, of equal weights; and everyone's ancestor."""
    log_weights = particles.log_weights
    num_particles = log_weights.shape[-1]
    key = jax.random.split(key)[1]
    own = jnp.arange(num_particles, dtype=jnp.int32)
    if isinstance(scheme, CarryingScheme):
        carried = scheme.carry(key, log_weights, particles.state)
        after = select(resampled, Particles(carried.state, carried.log_weights), particles)
        return after, jnp.where(resampled, carried.ancestors, own)
    drawn = draw_ancestors(scheme, key, jax.lax.stop_gradient(log_weights), num_particles)
    ancestors = jnp.where(resampled, drawn, own)
    state = paths.resume(resampled, jax.tree.map(lambda leaf: leaf[ancestors], particles.state))
    uniform = jnp.full_like(log_weights, -jnp.log(num_particles))
    return Particles(state, jnp.where(resampled, uniform, log_weights)), ancestors


def propose(
    model: SequenceModel, state: PyTree, num_particles: int, inputs: StepInputs, paths: Paths = EVERY_PATH
) -> Proposed:
    """Extend every particle by z_t ~ q_t; a sequence that has ended stays as it is."""
    keys = particle_keys(jax.random.split(inputs.key)[0], num_particles)

    def extend(key: Key[Array, ""], state: PyTree, weight: Float[Array, ""] | None) -> Propagated:
        return paths.propagate(model, key, state, inputs._replace(path_weights=weight))

    extend = write_out(extend, num_particles)
    latents, log_likelihood, log_ratio, following, log_proposal = jax.vmap(extend)(keys, state, inputs.path_weights)
    log_alpha = log_likelihood + log_ratio
    if inputs.active is not None:
        log_alpha = jnp.where(inputs.active, log_alpha, 0)
        log_ratio = jnp.where(inputs.active, log_ratio, 0)
        following = select(inputs.active, following, state)
    return Proposed(latents, log_alpha, log_ratio, following, log_proposal)


def propagate(model: SequenceModel, key: Key[Array, ""], state: PyTree, inputs: StepInputs) -> Propagated:
    """z_t ~ q_t, log g_t(x_t | z_t), log p_t(z_t) - log q_t(z_t) and h_{t+1} of one particle.

    Sampling and scoring stay inside this mapped function: a mapped distribution forgets its batch shape, and
    sampled outside it would give all particles one noise.
    """
    prior = model.prior(state, inputs.past)
    proposal = model.proposal(state, inputs.full, prior)
    dtype = weight_dtype(model)
    latent = sample(proposal, key, dtype)
    log_likelihood = recompute(observation_log_prob, model.emission(state, latent, inputs.past), inputs.x, inputs.mask)
    if proposal is prior:
        log_ratio = jnp.zeros_like(log_likelihood)
    else:
        log_ratio = recompute(_log_ratio, prior, proposal, latent)
    following = model.advance(state, latent, inputs.past_next)
    return Propagated(latent, log_likelihood.astype(dtype), log_ratio.astype(dtype), following)


def _log_ratio(prior: dist.Distribution, proposal: dist.Distribution, latent: PyTree) -> Float[Array, ""]:
    return log_prob(prior, latent) - log_prob(proposal, latent)


def initial_particles(model: SequenceModel, past: PyTree, num_particles: int) -> Particles:
    """N equal particles in the state h_1."""
    state = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, (num_particles, *jnp.shape(leaf))), model.initial_state(past)
    )
    dtype = weight_dtype(model)
    return Particles(state, jnp.full((num_particles,), -jnp.log(jnp.asarray(num_particles, dtype)), dtype))


def check_particles(num_particles: int) -> None:
    """Refuse anything but a positive whole number."""
    if not isinstance(num_particles, int) or num_particles < 1:
        raise InputError(f"got num_particles={num_particles!r} where a whole number of at least 1 was expected.")


def select(flag: Bool[Array, ""], new: PyTree, old: PyTree) -> PyTree:
    """`new` where the flag is set, else `old`."""
    return jax.tree.map(lambda a, b: jnp.where(flag, a, b), new, old)
