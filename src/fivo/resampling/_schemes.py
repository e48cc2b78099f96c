"""Schemes by name, with their conditional forms and their laws.

Given that the reference particle k of conditional SMC (Algorithm 2 of the paper) is continued, the pair of the
ancestors and of the slot j that continues it has a law proportional to the scheme's own, on all pairs with a_j = k.
Keeping a slot aside and resampling the others as usual has that law for independent draws only; schemes whose draws
depend on each other need separate conditional forms (Chopin and Singh 2015).

A law says how probable the ancestors were that a scheme drew, one number per independent draw: those of multinomial and
stratified resampling are told apart, those of systematic resampling, which share one uniform, are one draw. Residual
resampling has no usable law: the number of certain copies jumps with the weights, and what jumps has no score.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from fivo.errors import InputError
from fivo.resampling._differentiable import DifferentiableScheme
from fivo.resampling._multinomial import conditional_multinomial, multinomial, multinomial_law
from fivo.resampling._relaxed import Relaxed
from fivo.resampling._residual import residual
from fivo.resampling._soft import Soft
from fivo.resampling._stratified import conditional_stratified, stratified, stratified_law
from fivo.resampling._systematic import conditional_systematic, systematic, systematic_law
from fivo.resampling._transport import Transport

Scheme = Callable[[Key[Array, ""], Float[Array, " particle"], int], Int[Array, " draw"]]
"""(key, log_weights [particle], num_draws) -> ancestors [draw], with expected numbers of offspring N w."""
AnyScheme = Scheme | DifferentiableScheme
"""A resampling scheme of either kind."""
ConditionalScheme = Callable[
    [Key[Array, ""], Float[Array, " particle"], Int[Array, ""]], tuple[Int[Array, " particle"], Int[Array, ""]]
]
"""(key, log_weights, reference) -> (ancestors, the slot that continues the reference)."""
Law = Callable[[Float[Array, " particle"], Int[Array, " particle"]], Float[Array, " draw"]]
"""(log_weights, ancestors) -> log-probabilities of the independent draws."""

SCHEMES: dict[str, Scheme] = {
    "multinomial": multinomial,
    "stratified": stratified,
    "systematic": systematic,
    "residual": residual,
}
"""The resampling schemes by name; differentiable ones are in `DIFFERENTIABLE`."""
DIFFERENTIABLE: dict[str, DifferentiableScheme] = {"soft": Soft(), "relaxed": Relaxed(), "transport": Transport()}
"""Schemes that derivatives pass through, in their usual settings."""
CONDITIONAL: dict[Any, ConditionalScheme] = {
    multinomial: conditional_multinomial,
    stratified: conditional_stratified,
    systematic: conditional_systematic,
}
LAWS: dict[Any, Law] = {multinomial: multinomial_law, stratified: stratified_law, systematic: systematic_law}


def get_scheme(resampling: str | AnyScheme) -> AnyScheme:
    """Look up a resampling scheme.

    Args:
        resampling: a name among `SCHEMES` and `DIFFERENTIABLE`, a `DifferentiableScheme`, or a function (key,
            log_weights, num_draws) of your own.

    Returns:
        The scheme of that name, or the given scheme itself.
    """
    if isinstance(resampling, type):
        raise InputError(f"resampling must be an instance, such as {resampling.__name__}(), got the class itself.")
    if isinstance(resampling, DifferentiableScheme) or callable(resampling):
        return resampling
    known = SCHEMES | DIFFERENTIABLE
    if not isinstance(resampling, str) or resampling not in known:
        raise InputError(f"resampling must be one of {', '.join(known)} or a function, got {resampling!r:.60}.")
    return known[resampling]


def checked_scheme(resampling: str | AnyScheme, num_particles: int) -> AnyScheme:
    """Look up a resampling scheme; refuse one that cannot serve N particles, or a function that does not draw
    ancestors.

    Args:
        resampling: as for `get_scheme`.
        num_particles: N.

    Returns:
        The scheme.
    """
    scheme = get_scheme(resampling)
    if isinstance(scheme, DifferentiableScheme):
        scheme.check(num_particles)
    elif not _is_ours(scheme):
        try:
            jax.eval_shape(
                lambda key, w: draw_ancestors(scheme, key, w, num_particles),
                jax.random.key(0),
                jax.ShapeDtypeStruct((num_particles,), jnp.float32),
            )
        except TypeError as error:
            raise InputError(
                "a resampling function must take (key, log_weights, num_draws) and return ancestors, but it raised: "
                f"{str(error).partition(chr(10))[0]:.120}."
            ) from error
    return scheme


def draw_ancestors(
    scheme: Scheme, key: Key[Array, ""], log_weights: Float[Array, " particle"], num_draws: int
) -> Int[Array, " draw"]:
    """Draw ancestors; those of a user's own function are checked.

    Args:
        scheme: a function (key, log_weights, num_draws).
        key: a random key.
        log_weights: log-weights [particle], up to a constant.
        num_draws: N.

    Returns:
        The ancestors [num_draws].
    """
    ancestors = scheme(key, log_weights, num_draws)
    if _is_ours(scheme):
        return ancestors
    kind = getattr(ancestors, "dtype", None)
    if kind is None or ancestors.shape != (num_draws,) or not jnp.issubdtype(kind, jnp.integer):
        raise InputError(
            f"a resampling function must return {num_draws} whole numbers, got "
            f"{'nothing' if kind is None else f'{kind} of shape {ancestors.shape}'}."
        )
    outside = jnp.any((ancestors < 0) | (ancestors >= log_weights.shape[0]))
    sentence = f"A resampling function must return ancestors from 0 to {log_weights.shape[0] - 1}, but did not."
    return eqx.error_if(ancestors, outside, sentence).astype(jnp.int32)


def get_conditional_scheme(resampling: Any) -> ConditionalScheme:
    """Look up the conditional form of a scheme, which continues a given particle (conditional SMC).

    Args:
        resampling: the scheme, by its name or function.

    Returns:
        A function (key, log_weights, reference) -> (ancestors, the slot that continues the reference).
    """
    scheme = get_scheme(resampling)
    if scheme not in CONDITIONAL:
        known = ", ".join(known.__name__ for known in CONDITIONAL)
        raise InputError(f"resampling must be one of {known}, which have conditional forms, got {resampling!r:.60}.")
    return CONDITIONAL[scheme]


def law_of(scheme: Any) -> Law:
    """Look up how probable the ancestors are that a scheme draws, which score terms differentiate.

    Args:
        scheme: the scheme; one of your own may have a method `log_law(log_weights, ancestors)`.

    Returns:
        A function (log_weights, ancestors) -> log-probabilities of the independent draws.
    """
    own = getattr(scheme, "log_law", None)
    if own is not None:
        return own
    if scheme not in LAWS:
        name = getattr(scheme, "__name__", type(scheme).__name__)
        raise InputError(
            f"a gradient with a score term must have {', '.join(law.__name__ for law in LAWS)} resampling, whose "
            f"ancestors have probabilities that can be differentiated, got {name}."
        )
    return LAWS[scheme]


def bound_lost(scheme: Any) -> str | None:
    """Say why log p̂ is not a lower bound of log p(x) with a scheme.

    Args:
        scheme: the scheme.

    Returns:
        The reason, or None where log p̂ is a lower bound.
    """
    return getattr(scheme, "loses_bound", None)


def _is_ours(scheme: Any) -> bool:
    return getattr(scheme, "__module__", "").startswith("fivo.resampling.")
