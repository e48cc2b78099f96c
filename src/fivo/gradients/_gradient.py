"""What every gradient estimator says to a bound."""

from collections.abc import Collection
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PyTree

from fivo.errors import InputError
from fivo.resampling import DifferentiableScheme
from fivo.smc import EVERY_PATH, FilterResult, ParticleFilter, Record, Rules


class Gradient(eqx.Module):
    """An estimator of ∇E[log p̂]: rules that the filter is run with, and terms that are added to its value.

    It never computes the value: a bound runs the filter and sums the increments. Subclass it for an estimator of your
    own, and check it against enumeration as `tests/gradients` does.
    """

    name: ClassVar[str]
    follows_latents: ClassVar[bool] = True
    """Whether derivatives pass through the draws of latents, which then must not be discrete."""
    pilot: ClassVar[bool] = False
    """Whether the filter has to run once before, with the same key and without derivatives, for `rules` to see."""
    keep: ClassVar[Collection[Record]] = ()
    """The records that `surrogate` reads."""

    @property
    def num_filters(self) -> int:
        """Independent filters per sequence, whose copies are adjacent in a batch; their estimates are averaged."""
        return 1

    def check(self, pf: ParticleFilter) -> None:
        """Refuse a filter that this gradient cannot be used with.

        Args:
            pf: the filter.
        """
        refuse_differentiable(pf, self.name)

    def rules(self, pilot: FilterResult | None, lengths: Int[Array, " batch"]) -> Rules:
        """Say what derivatives of the filter follow.

        Args:
            pilot: the run before, if `pilot` asks for one.
            lengths: of the sequences [batch].

        Returns:
            The rules that the filter is run with.
        """
        return EVERY_PATH

    def surrogate(
        self, pf: ParticleFilter, result: FilterResult, lengths: Int[Array, " batch"]
    ) -> Float[Array, " batch"] | None:
        """A term whose derivative, not its value, is added to that of log p̂.

        Args:
            pf: the filter.
            result: what it found.
            lengths: of the sequences [batch].

        Returns:
            The term [batch], or None if nothing is added.
        """
        return None

    def learn(self, log_increments: Float[Array, "batch time"], lengths: Int[Array, " batch"]) -> "Gradient":
        """Take in a run, for estimators with a memory.

        Args:
            log_increments: log p̂_t of every step [batch, time].
            lengths: of the sequences [batch].

        Returns:
            The estimator for the next run; most learn nothing and return themselves.
        """
        return self


def refuse_differentiable(pf: ParticleFilter, name: str) -> None:
    """Differentiable schemes are a choice of gradient themselves."""
    if isinstance(pf.scheme, DifferentiableScheme):
        raise InputError(
            f"the {name} gradient must have a resampling scheme that derivatives do not pass through, got "
            f"{type(pf.scheme).__name__.lower()}; use it with gradient='pathwise', or multinomial resampling."
        )


def slope_only(term: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Zero, with the derivative of a term.

    Args:
        term: any array.

    Returns:
        Zeros of its shape, whose derivative is that of the term.
    """
    return term - lax.stop_gradient(term)


def hold(tree: PyTree) -> PyTree:
    """The same numbers, hidden from derivatives.

    Args:
        tree: any pytree.

    Returns:
        The pytree with `stop_gradient` applied to its float arrays.
    """
    return jax.tree.map(lambda leaf: lax.stop_gradient(leaf) if _moves(leaf) else leaf, tree)


def _moves(leaf: object) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.floating)


def undifferentiable(log_evidence: Float[Array, " batch"], name: str) -> Float[Array, " batch"]:
    """The same values; differentiating them raises a sentence that says why that is a mistake.

    Args:
        log_evidence: log p̂ of a model with discrete latents [batch].
        name: of the gradient that follows latents through their draws.

    Returns:
        The same values [batch].
    """

    @jax.custom_jvp
    def same(values: Float[Array, " batch"]) -> Float[Array, " batch"]:
        return values

    def refuse(primals: tuple, tangents: tuple) -> tuple:
        raise InputError(
            f"the {name} gradient must have continuous latents, whose draws it follows, but some of this model's are "
            "discrete; use gradient='score' ('latent-score' drops the resampling term), or 'mixed' for both kinds."
        )

    same.defjvp(refuse)
    return same(log_evidence)
