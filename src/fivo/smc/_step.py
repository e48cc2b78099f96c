"""Algorithm 1 of the paper, one step of one sequence: propose (lines 4-7), weight (8-10), resample (11-13, 16-21)."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from fivo._fuse import particle_keys, write_out
from fivo.distributions import weight_dtype
from fivo.models import Frame, SequenceModel, TwistedState, log_twist_of, start_state
from fivo.resampling import AnyScheme, Criterion, DifferentiableScheme, draw_ancestors
from fivo.smc._rules import EVERY_PATH, Proposed, Rules
from fivo.weights import effective_sample_size, normalize


class Particles(eqx.Module):
    """What the next step needs of the particles.

    Args:
        state: their states h_{t+1} [..., particle, ...].
        log_weights: their normalised log-weights [..., particle].
    """

    state: PyTree
    log_weights: Float[Array, "*batch particle"]


class StepInputs(NamedTuple):
    """What step t reads besides the particles."""

    step: Int[Array, ""]
    key: Key[Array, ""]
    active: Bool[Array, ""] | None
    """Whether the sequence has not ended; None where it never does."""
    frame: Frame
    weights: Float[Array, " particle"] | None = None
    """What the rules asked for."""


class StepInfo(eqx.Module):
    """What a person may want to see of a step; weights, ancestors and latents are those before resampling acts.

    Args:
        log_increment: log p̂_t.
        ess: the effective sample size.
        resampled: whether particles were resampled after the step.
        kl: the average of log q_t - log p_t over the particles.
        log_weights: normalised log-weights [..., particle].
        ancestors: the particle of this step that each particle of the next one continues [..., particle].
        latents: z_t of every particle [..., particle, ...].
        log_proposal: log q_t(z_t) [..., particle], where a gradient asks for it.
        log_twist: log r_t(z_t) [..., particle] of a twisted filter.
    """

    log_increment: Float[Array, "*steps"]
    ess: Float[Array, "*steps"]
    resampled: Bool[Array, "*steps"]
    kl: Float[Array, "*steps"]
    log_weights: Float[Array, "*steps particle"]
    ancestors: Int[Array, "*steps particle"]
    latents: PyTree
    log_proposal: Float[Array, "*steps particle"] | None = None
    log_twist: Float[Array, "*steps particle"] | None = None


def initial_particles(
    model: SequenceModel, context: PyTree, num_particles: int, rules: Rules = EVERY_PATH, *, twisted: bool = False
) -> Particles:
    """Line 2: N equal particles in the state h_1, with weights 1/N.

    Args:
        model: the model.
        context: what is known before the first frame of one sequence.
        num_particles: N.
        rules: what derivatives follow.
        twisted: whether they carry a twist; r_0 = 1.

    Returns:
        The particles.
    """
    start = start_state(model, context)
    if twisted:
        start = TwistedState(start, jnp.zeros((), weight_dtype(model)))
    state = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_particles, *jnp.shape(leaf))), start)
    return Particles(rules.begin(state), uniform_weights(num_particles, weight_dtype(model)))


def propose(
    model: SequenceModel, state: PyTree, num_particles: int, inputs: StepInputs, first: bool, rules: Rules = EVERY_PATH
) -> Proposed:
    """Lines 4-7: extend every particle by z_t ~ q_t; a sequence that has ended stays as it is."""
    keys = particle_keys(jax.random.split(inputs.key)[0], num_particles)

    def one(key: Key[Array, ""], state: PyTree, weight: Float[Array, ""] | None) -> Proposed:
        return rules.propose(model, key, state, inputs.frame, weight, first)

    made = jax.vmap(write_out(one, num_particles))(keys, state, inputs.weights)
    made = made if inputs.active is None else only_active(inputs.active, made, state)
    return made._replace(log_twist=log_twist_of(made.state))


def only_active(active: Bool[Array, ""], made: Proposed, state: PyTree) -> Proposed:
    """A step that counts only where the sequence has not ended."""
    return made._replace(
        log_likelihood=jnp.where(active, made.log_likelihood, 0),
        log_ratio=jnp.where(active, made.log_ratio, 0),
        state=select(active, made.state, state),
    )


def weigh(criterion: Criterion, particles: Particles, made: Proposed, inputs: StepInputs) -> tuple[Particles, StepInfo]:
    """Lines 8-11: log p̂_t, the new weights, and whether to resample. Ancestors are still the identity."""
    # Line 8: p̂_t = Σ_i w_{t-1}^i α_t^i with α_t = p_t g_t / q_t; line 10 normalises by it.
    log_weights, log_increment = normalize(particles.log_weights + (made.log_likelihood + made.log_ratio))
    if inputs.active is not None:
        log_increment = jnp.where(inputs.active, log_increment, 0)
        log_weights = jnp.where(inputs.active, log_weights, particles.log_weights)
    resampled = criterion(log_weights, inputs.step)
    info = StepInfo(
        log_increment=log_increment,
        ess=jnp.where(jnp.isneginf(log_increment), 0, effective_sample_size(log_weights)),
        resampled=resampled if inputs.active is None else resampled & inputs.active,
        kl=-jnp.mean(made.log_ratio),
        log_weights=log_weights,
        ancestors=jnp.arange(log_weights.shape[-1], dtype=jnp.int32),
        latents=made.latent,
        log_proposal=made.log_proposal,
        log_twist=made.log_twist,
    )
    return Particles(made.state, log_weights), info


def resample(
    scheme: AnyScheme,
    key: Key[Array, ""],
    resampled: Bool[Array, ""],
    particles: Particles,
    rules: Rules = EVERY_PATH,
) -> tuple[Particles, Int[Array, " particle"]]:
    """Lines 11-13 and 16-21: where it was decided, N particles drawn by weight, of equal weights; and their
    ancestors.
    """
    log_weights = particles.log_weights
    num_particles = log_weights.shape[-1]
    key = jax.random.split(key)[1]
    own = jnp.arange(num_particles, dtype=jnp.int32)
    if isinstance(scheme, DifferentiableScheme):
        moved = scheme.resample(key, log_weights, particles.state)
        after = select(resampled, Particles(moved.state, moved.log_weights), particles)
        return after, jnp.where(resampled, moved.ancestors, own)
    drawn = draw_ancestors(scheme, key, jax.lax.stop_gradient(log_weights), num_particles)
    ancestors = jnp.where(resampled, drawn, own)
    state = rules.resume(resampled, jax.tree.map(lambda leaf: leaf[ancestors], particles.state))
    uniform = uniform_weights(num_particles, log_weights.dtype)
    return Particles(state, jnp.where(resampled, uniform, log_weights)), ancestors


def uniform_weights(num_particles: int, dtype: jnp.dtype) -> Float[Array, " particle"]:
    """log 1/N for every particle."""
    return jnp.full((num_particles,), -jnp.log(jnp.asarray(num_particles, dtype)), dtype)


def select(flag: Bool[Array, ""], new: PyTree, old: PyTree) -> PyTree:
    """Choose one of two pytrees.

    Args:
        flag: a boolean scalar.
        new: what is chosen if the flag is set.
        old: what is chosen otherwise.

    Returns:
        The chosen one, without multiplying by zero.
    """
    return jax.tree.map(lambda a, b: jnp.where(flag, a, b), new, old)
