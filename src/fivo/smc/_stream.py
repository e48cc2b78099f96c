"""The filter one frame at a time, with a state that can be saved and loaded."""

from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key, PyTree, Shaped

from fivo._fuse import straight
from fivo.distributions import weight_dtype
from fivo.errors import InputError
from fivo.models import Frame, SequenceModel, check_inputs, check_streams, has_initial_prior, inspect_step
from fivo.smc._step import Particles, StepInfo, StepInputs, initial_particles, propose, resample, select, weigh

if TYPE_CHECKING:
    from fivo.smc._filter import ParticleFilter


class FilterState(eqx.Module):
    """Everything that a filter knows between two frames."""

    particles: Particles
    """The particles after the last frame."""
    log_evidence: Float[Array, ""]
    """log p̂ of the frames so far."""
    step: Int[Array, ""]
    """How many frames there were."""
    key: Key[Array, ""]
    """The random key of the stream."""
    memory: PyTree
    """The model's own, of the frames so far."""


class StreamResult(eqx.Module):
    """The outcome of a finished stream.

    Args:
        log_evidence: log p̂ of all frames.
        alive: whether any particle is.
        num_steps: how many frames there were.
        particles: the final particles.
    """

    log_evidence: Float[Array, ""]
    alive: Bool[Array, ""]
    num_steps: Int[Array, ""]
    particles: Particles


def init(pf: "ParticleFilter", model: SequenceModel, key: Key[Array, ""]) -> FilterState:
    """A filter that has seen nothing yet."""
    check_streams(model)
    if pf.twisted:
        raise InputError(
            "a stream must be filtered without a twist, which reads frames that are still to come; use a "
            "ParticleFilter with twisted=False."
        )
    if not model.causal:
        raise InputError(
            "a model that is streamed must not read future frames in its proposal, as this one does; filter whole "
            "sequences, or use a model without smoothing."
        )
    memory = model.begin()
    dtype = weight_dtype(model)
    # The inputs are not there yet: h_1 gets its shape here, and its value with the first frame.
    width = model.num_inputs
    context = model.context_next(memory, jnp.zeros(width, dtype) if width else None)
    try:
        particles = initial_particles(model, context, pf.num_particles)
    except (TypeError, AttributeError) as error:
        if context is not None:
            raise
        raise InputError(
            f"{type(model).__name__} must declare num_inputs, the width of its inputs, to be streamed if its first "
            f"state depends on them, which without inputs raised: {str(error).partition(chr(10))[0]:.120}."
        ) from error
    return FilterState(
        particles=particles,
        log_evidence=jnp.zeros((), dtype),
        step=jnp.zeros((), jnp.int32),
        key=key,
        memory=memory,
    )


@eqx.filter_jit
def step(
    pf: "ParticleFilter",
    model: SequenceModel,
    state: FilterState,
    x: Shaped[Array, " dim"],
    mask: Bool[Array, " dim"] | None,
    inputs: Float[Array, " input"] | None,
) -> tuple[FilterState, StepInfo]:
    """Take in one frame."""
    x, dtype = jnp.asarray(x), weight_dtype(model)
    if x.ndim != 1:
        raise InputError(f"a frame must have shape [dim], got {x.shape}.")
    if jnp.issubdtype(x.dtype, jnp.floating):
        x = x.astype(dtype)
    if mask is not None:
        mask = jnp.asarray(mask)
        x = jnp.where(mask, x, 0)
    check_inputs(model, 0 if inputs is None else jnp.shape(inputs)[-1])
    inputs = None if inputs is None else jnp.asarray(inputs, dtype)
    context = model.context_next(state.memory, inputs)
    evidence, history, memory = model.encode_next(state.memory, x, mask, inputs)
    key = jax.random.fold_in(straight(state.key), state.step)
    now = StepInputs(state.step, key, None, Frame(x, mask, context, evidence, history))
    inspect_step(model, now.frame)

    def take(particles: Particles, first: bool) -> tuple[Particles, StepInfo]:
        made = propose(model, particles.state, pf.num_particles, now, first)
        particles, info = weigh(pf.criterion, particles, made, now)
        if not pf.resamples:
            return particles, info
        particles, ancestors = resample(pf.scheme, now.key, info.resampled, particles)
        return particles, eqx.tree_at(lambda i: i.ancestors, info, ancestors)

    before = state.particles
    if jax.tree.leaves(context):
        fresh = initial_particles(model, context, pf.num_particles)
        before = select(state.step == 0, fresh, before)
    if has_initial_prior(model):
        # Not a Python branch: a state that was loaded does not say to the compiler whether it is the first.
        particles, info = lax.cond(state.step == 0, lambda p: take(p, True), lambda p: take(p, False), before)
    else:
        particles, info = take(before, False)
    following = FilterState(
        particles=particles,
        log_evidence=state.log_evidence + info.log_increment,
        step=state.step + 1,
        key=state.key,
        memory=memory,
    )
    return following, info


def finish(state: FilterState) -> StreamResult:
    """The evidence estimate and the final particles."""
    return StreamResult(state.log_evidence, ~jnp.isneginf(state.log_evidence), state.step, state.particles)
