"""The filter one frame at a time, with a state that can be saved and loaded."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree, Shaped

from fivo._fuse import straight
from fivo.errors import InputError
from fivo.models.contract import SequenceModel
from fivo.resampling import CarryingScheme, Criterion, ESSBelow, Scheme, checked_scheme
from fivo.smc.step import Particles, StepInfo, StepInputs, check_particles, initial_particles, smc_step, weight_dtype


class OnlineState(eqx.Module):
    """Everything a filter knows between two frames; `fivo.save` and `fivo.load` store it."""

    particles: Particles
    log_evidence: Float[Array, ""]
    step: Int[Array, ""]
    key: Key[Array, ""]
    past: PyTree
    memory: PyTree
    criterion: Criterion
    scheme: Scheme | CarryingScheme = eqx.field(static=True)


class OnlineResult(eqx.Module):
    """The outcome of a finished stream."""

    log_evidence: Float[Array, ""]
    alive: Bool[Array, ""]
    num_steps: Int[Array, ""]
    particles: Particles


def init(
    model: SequenceModel,
    *,
    num_particles: int,
    key: Key[Array, ""],
    resampling: str | Scheme | CarryingScheme = "multinomial",
    criterion: Criterion = ESSBelow(0.5),
) -> OnlineState:
    """A filter that has seen nothing yet."""
    check_particles(num_particles)
    if not model.causal:
        raise InputError(
            "this model's proposal reads future frames and cannot filter one frame at a time; use smc.filter on whole "
            "sequences, or a model without smoothing."
        )
    scheme = checked_scheme(resampling, num_particles)
    past, memory = model.initial_memory()
    return OnlineState(
        particles=initial_particles(model, past, num_particles),
        log_evidence=jnp.zeros((), weight_dtype(model)),
        step=jnp.zeros((), jnp.int32),
        key=key,
        past=past,
        memory=memory,
        criterion=criterion,
        scheme=scheme,
    )


@eqx.filter_jit
def step(
    model: SequenceModel,
    state: OnlineState,
    x: Shaped[Array, " dim"],
    mask: Bool[Array, " dim"] | None = None,
) -> tuple[OnlineState, StepInfo]:
    """Take in one frame; the numbers are those of `filter` with the same key."""
    x = jnp.asarray(x)
    if jnp.issubdtype(x.dtype, jnp.floating):
        x = x.astype(weight_dtype(model))
    if mask is not None:
        x = jnp.where(mask, x, 0)
    full, past_next, memory = model.encode_next(state.memory, x, mask)
    key = jax.random.fold_in(straight(state.key), state.step)
    inputs = StepInputs(state.step, key, None, x, mask, state.past, full, past_next)
    particles, info = smc_step(model, state.scheme, state.criterion, state.particles, inputs)
    state = OnlineState(
        particles=particles,
        log_evidence=state.log_evidence + info.log_increment,
        step=state.step + 1,
        key=state.key,
        past=past_next,
        memory=memory,
        criterion=state.criterion,
        scheme=state.scheme,
    )
    return state, info


def finish(state: OnlineState) -> OnlineResult:
    """The evidence estimate and the final particles."""
    return OnlineResult(state.log_evidence, ~jnp.isneginf(state.log_evidence), state.step, state.particles)
