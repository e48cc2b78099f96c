"""Several latent variables drawn together, discrete and continuous ones among them."""

# numpyro's own distributions override their base class like this.
# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Float, Key

from fivo.errors import InputError

Part = dist.Distribution | Callable[[dict[str, Any]], dist.Distribution]


class Joint(dist.Distribution):
    """p(a) p(b | a) …: named latents, drawn in the order given.

    Args:
        parts: for each name a distribution, or a function from the draws so far (a dictionary) to one.

    A draw is a dictionary of the parts' draws: `Joint(regime=Categorical(...), level=lambda z:
    Normal(mean[z["regime"]], 1))`. Gradients treat each part by its kind: paths through continuous draws, scores of
    discrete ones (`gradient="mixed"`).
    """

    def __init__(self, **parts: Part) -> None:
        if not parts:
            raise InputError("Joint must have at least one part, as in Joint(level=Normal(0, 1)), got none.")
        self.parts = parts
        super().__init__((), ())

    def sample(self, key: Key[Array, ""], sample_shape: tuple[int, ...] = ()) -> dict[str, Any]:
        """Draw every part, each given those before it.

        Args:
            key: a random key.
            sample_shape: how many to draw, as a shape; one by default.

        Returns:
            A dictionary with the draw of every part.
        """
        drawn: dict[str, Any] = {}
        for (name, part), part_key in zip(self.parts.items(), jax.random.split(key, len(self.parts)), strict=True):
            drawn[name] = _given(part, drawn).sample(part_key, sample_shape)
        return drawn

    def log_probs(self, value: dict[str, Any]) -> dict[str, Float[Array, ""]]:
        """log p of every part given those before it.

        Args:
            value: a dictionary with a value for every part.

        Returns:
            A dictionary with a scalar for every part.
        """
        seen: dict[str, Any] = {}
        scores = {}
        for name, part in self.parts.items():
            scores[name] = jnp.sum(_given(part, seen).log_prob(value[name]))
            seen[name] = value[name]
        return scores

    def log_prob(self, value: dict[str, Any], intermediates: None = None) -> Float[Array, ""]:
        """log p of all parts together.

        Args:
            value: a dictionary with a value for every part.
            intermediates: not used.

        Returns:
            The log-density, a scalar.
        """
        return sum(self.log_probs(value).values(), jnp.zeros(()))


def _given(part: Part, drawn: dict[str, Any]) -> dist.Distribution:
    return part if isinstance(part, dist.Distribution) else part(dict(drawn))


def is_discrete(leaf: Array | jax.ShapeDtypeStruct) -> bool:
    """Whether a drawn array holds whole numbers, which no derivative passes through."""
    return not jnp.issubdtype(leaf.dtype, jnp.floating)


def discrete_log_prob(distribution: dist.Distribution, value: Any) -> Float[Array, ""]:
    """log p of the discrete parts of a draw, given the continuous ones before them.

    Raises `InputError` for a distribution that draws both kinds together but is not a `Joint`, since its parts cannot
    be told apart.

    Args:
        distribution: what the value was drawn from.
        value: the draw.

    Returns:
        The log-probability, a scalar; zero if no part is discrete.
    """
    kinds = {is_discrete(leaf) for leaf in jax.tree.leaves(value)}
    if kinds == {True}:
        return jnp.sum(distribution.log_prob(value))
    if kinds == {False}:
        return jnp.zeros(())
    if not isinstance(distribution, Joint):
        raise InputError(
            "the proposal draws discrete and continuous latents together and must be a fivo.distributions.Joint, whose "
            f"parts can be told apart, got {type(distribution).__name__}."
        )
    total, seen = jnp.zeros(()), {}
    for name, part in distribution.parts.items():
        total = total + discrete_log_prob(_given(part, seen), value[name])
        seen[name] = value[name]
    return total
