"""One particle, one step: what every algorithm of this package does with a model."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, PyTree, Shaped

from fivo._fuse import recompute
from fivo.distributions import observation_log_prob, sample, weight_dtype
from fivo.errors import InputError
from fivo.models._contract import SequenceModel, has_initial_prior

Propose = Callable[[PyTree, PyTree, dist.Distribution], dist.Distribution]
"""q_t from (h_t, evidence_t, p_t), as the model's own `proposal`."""


class Ahead(NamedTuple):
    """What a twist reads.

    Args:
        future: future_t, what `lookahead` says of the step.
        last: whether the step is the sequence's last, at which r_T = 1.
    """

    future: PyTree
    last: Bool[Array, "*batch"]


class TwistedState(NamedTuple):
    """What a particle of a twisted filter carries.

    Args:
        state: h_{t+1}.
        log_twist: log r_t, which the next step divides by.
    """

    state: PyTree
    log_twist: Float[Array, "*particle"]


class Frame(NamedTuple):
    """What a step reads of a sequence.

    Args:
        x: x_t [dim].
        mask: true where an entry was observed [dim]; None where all were.
        context: context_t.
        evidence: evidence_t.
        history: history_t.
        ahead: what a twisted filter reads of the frames to come; None for others.
    """

    x: Shaped[Array, " dim"]
    mask: Bool[Array, " dim"] | None
    context: PyTree
    evidence: PyTree
    history: PyTree
    ahead: Ahead | None = None


class Extension(NamedTuple):
    """A particle extended by one step.

    Args:
        latent: z_t.
        log_likelihood: log g_t(x_t | z_t).
        prior: p_t.
        proposal: q_t.
        state: h_{t+1}.
    """

    latent: PyTree
    log_likelihood: Float[Array, ""]
    prior: dist.Distribution
    proposal: dist.Distribution
    state: PyTree


def extend(
    model: SequenceModel,
    state: PyTree,
    frame: Frame,
    choose: Callable[[dist.Distribution], PyTree],
    *,
    first: bool = False,
    propose: Propose | None = None,
) -> Extension:
    """Extend one particle by one step, with a drawn or a given latent.

    Args:
        model: the model.
        state: h_t of the particle; a `TwistedState` where the frame says what lies ahead.
        frame: what the step reads of the sequence.
        choose: z_t from q_t: a draw, or a function that returns a given latent.
        first: whether this is the first step of a model that has an `initial_prior`.
        propose: another q_t than the model's own.

    Returns:
        The extended particle. With a twist g_t comes multiplied by r_t / r_{t-1}, and the state carries log r_t on.

    Sampling and scoring stay inside the function that is mapped over particles: a mapped numpyro distribution forgets
    its batch shape, and sampled outside the map it would give all particles the same noise.
    """
    if frame.ahead is not None:
        return _twisted(model, state, frame, choose, first=first, propose=propose)
    prior = (model.initial_prior if first else model.prior)(state, frame.context)
    check_distribution(model, "initial_prior" if first else "prior", prior)
    proposal = (propose or model.proposal)(state, frame.evidence, prior)
    check_distribution(model, "proposal", proposal)
    latent = choose(proposal)
    emission = model.emission(state, latent, frame.context)
    check_distribution(model, "emission", emission)
    log_likelihood = recompute(observation_log_prob, emission, frame.x, frame.mask)
    following = model.advance(state, latent, frame.history)
    return Extension(latent, log_likelihood.astype(weight_dtype(model)), prior, proposal, following)


def _twisted(
    model: SequenceModel,
    state: TwistedState,
    frame: Frame,
    choose: Callable[[dist.Distribution], PyTree],
    **chosen: Any,
) -> Extension:
    """`extend`, with the incremental weight times r_t / r_{t-1}."""
    ahead = frame.ahead
    made = extend(model, state.state, frame._replace(ahead=None), choose, **chosen)
    if ahead is None:
        return made
    log_twist = model.twist(state.state, made.latent, ahead.future)
    if jnp.shape(log_twist) != ():
        raise InputError(f"{type(model).__name__}.twist must return one number, got shape {jnp.shape(log_twist)}.")
    log_twist = jnp.where(ahead.last, 0, log_twist).astype(made.log_likelihood.dtype)
    # A particle whose twist is zero is dead already; what is divided by it must not come back as NaN.
    before = jnp.where(jnp.isneginf(state.log_twist), 0, state.log_twist)
    return made._replace(
        log_likelihood=made.log_likelihood + (log_twist - before), state=TwistedState(made.state, log_twist)
    )


def untwisted(carried: PyTree) -> PyTree:
    """What particles carry, without the twists.

    Args:
        carried: any pytree with `TwistedState`s in it.

    Returns:
        The same with the states in their places.
    """
    return jax.tree.map(lambda node: node.state if _is_twisted(node) else node, carried, is_leaf=_is_twisted)


def log_twist_of(carried: PyTree) -> Float[Array, "*particle"] | None:
    """The twist of what particles carry.

    Args:
        carried: any pytree.

    Returns:
        log r_t of the first `TwistedState` in it; None where there is none.
    """
    nodes = jax.tree.leaves(carried, is_leaf=_is_twisted)
    return next((node.log_twist for node in nodes if _is_twisted(node)), None)


def _is_twisted(node: object) -> bool:
    return isinstance(node, TwistedState)


def check_distribution(model: SequenceModel, method: str, made: object) -> None:
    """Refuse what cannot be drawn from and scored."""
    if not isinstance(made, dist.Distribution):
        what = "an array" if isinstance(made, jax.Array) else type(made).__name__
        raise InputError(
            f"{type(model).__name__}.{method} must return a distribution, as numpyro has them, got {what}."
        )


def start_state(model: SequenceModel, context: PyTree) -> PyTree:
    """The state before the first step.

    Args:
        model: the model.
        context: context_1.

    Returns:
        h_1, with floats of the model's own type.
    """
    return _typed(model.initial_state(context), weight_dtype(model))


class Kinds(NamedTuple):
    """What a step of a model makes, without computing anything.

    Args:
        latent: shapes and types of z_t.
        state: shapes and types of the state.
        discrete: whether any part of a drawn latent is discrete, so that no derivative passes through its draw.
    """

    latent: PyTree
    state: PyTree
    discrete: bool


def inspect_step(model: SequenceModel, frames: Frame, num_axes: int = 0) -> Kinds:
    """Take the first step without computing it, and refuse a state that changes its shape or type on the way.

    Args:
        model: the model.
        frames: a `Frame` of one step of one sequence, or of many.
        num_axes: how many first axes say which steps and sequences they are.

    Returns:
        Shapes and types of the latent and the state.
    """
    dtype = weight_dtype(model)
    declared = []
    frame = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[num_axes:], leaf.dtype), frames)

    def step(frame: Frame) -> tuple[PyTree, PyTree, PyTree]:
        state = start_state(model, frame.context)

        def choose(proposal: dist.Distribution) -> PyTree:
            declared.append(getattr(proposal, "support", None) is not None and proposal.is_discrete)
            return sample(proposal, jax.random.key(0), dtype)

        made = extend(model, state, frame, choose, first=has_initial_prior(model))
        return state, made.latent, made.state

    before, latent, after = jax.eval_shape(step, frame)
    check_state(model, before, after)
    # A distribution may not declare its support, or draw several variables of which only some are discrete.
    mixed = any(not jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in jax.tree.leaves(latent))
    return Kinds(latent, after, bool(declared[0]) or mixed)


def check_state(model: SequenceModel, before: PyTree, after: PyTree) -> None:
    """Refuse a state that is not like the one before it."""
    if _types(before) != _types(after):
        raise InputError(
            f"{type(model).__name__}.advance must return a state like the one before the first step, which is "
            f"{_told(before)}, got {_told(after)}."
        )


def _typed(tree: PyTree, dtype: jnp.dtype) -> PyTree:
    """Floats in the given type, nothing weakly typed."""

    def strong(leaf: Array) -> Array:
        leaf = jnp.asarray(leaf)
        return leaf.astype(dtype if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf.dtype)

    return jax.tree.map(strong, tree)


def _types(tree: PyTree) -> tuple:
    return jax.tree.structure(tree), tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in jax.tree.leaves(tree))


def _told(tree: PyTree) -> str:
    leaves = [f"{jnp.result_type(leaf)}{list(jnp.shape(leaf))}" for leaf in jax.tree.leaves(tree)]
    return ", ".join(leaves[:4]) + (", …" if len(leaves) > 4 else "") if leaves else "empty"
