"""A twist for observations that are rare: a normal forecast of the next one from the latent now."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key, PyTree

from fivo.batch import Sequence
from fivo.constants import Constant
from fivo.errors import InputError
from fivo.models._contract import SequenceModel
from fivo.models._reading import check_sizes
from fivo.models._twisted import Twist


class NextObservation(NamedTuple):
    """The next frame that was observed, as every step sees it.

    Args:
        x: its entries.
        seen: whether there is one and they were observed.
        wait: how many steps it is away, at most `longest`, in parts of `longest`.
        alone: a guess of its log-density without the latent, which is the same for all particles.
        context: the model's own, of this step.
    """

    x: Float[Array, "*time dim"]
    seen: Bool[Array, "*time dim"]
    wait: Float[Array, "*time one"]
    alone: Float[Array, "*time dim"]
    context: PyTree


class NextObservationTwist(Twist):
    """log r_t = log N(x_s; μ(z_t, s - t), σ(z_t, s - t)²) - c(x_s, s - t), with s the next step that was observed.

    Args:
        latent: two arrays shaped like z_t, by which networks centre and scale it: typical values and deviations.
        frame: the same for a frame.
        hidden: units of each of two layers of every network.
        longest: the most steps from one observation to the next.
        key: a random key for the initial weights.

    For Markov models whose emission has a mean for every entry of a frame. Networks say how far the mean is from what
    would be seen now, and the deviation. c is the same for all particles: filters do not see it, and density-ratio
    estimation learns log p(x_s) with it. Frames after the next are not looked at.
    """

    forecast: eqx.nn.MLP
    alone: eqx.nn.MLP
    latent: tuple[Constant, Constant] = eqx.field(static=True)
    frame: tuple[Constant, Constant] = eqx.field(static=True)
    longest: int = eqx.field(static=True)

    def __init__(
        self, latent: tuple[Any, Any], frame: tuple[Any, Any], hidden: int, *, longest: int, key: Key[Array, ""]
    ) -> None:
        check_sizes(hidden, 0)
        if not isinstance(longest, int) or isinstance(longest, bool) or longest < 1:
            raise InputError(f"longest must be a positive integer, got {longest!r:.60}.")
        self.latent, self.frame = (
            (Constant(np.asarray(mean, np.float32)), Constant(np.asarray(deviation, np.float32)))
            for mean, deviation in (latent, frame)
        )
        self.longest = longest
        keys = jax.random.split(key)
        size, dim = np.size(latent[0]), np.size(frame[0])
        self.forecast = eqx.nn.MLP(size + 1, 2 * dim, hidden, 2, jnp.tanh, key=keys[0])
        self.alone = eqx.nn.MLP(dim + 1, dim, hidden, 2, jnp.tanh, key=keys[1])

    def check(self, model: SequenceModel) -> None:
        if not model.markov:
            raise InputError(
                f"the latents of {type(model).__name__} must be a Markov chain for a forecast from z_t; use a "
                "RecurrentTwist."
            )

    def lookahead(self, model: SequenceModel, sequence: Sequence) -> NextObservation:
        x, time = sequence.observations, jnp.arange(sequence.observations.shape[0])
        observed = jnp.ones(x.shape, bool) if sequence.mask is None else sequence.mask
        observed = observed & (time < sequence.length)[:, None]
        never = x.shape[0]
        from_here_on = jax.lax.cummin(jnp.where(jnp.any(observed, axis=1), time, never), reverse=True)
        place = jnp.concatenate([from_here_on[1:], jnp.asarray([never])])
        found, place = place < never, jnp.minimum(place, never - 1)
        wait = jnp.minimum((place - time) / self.longest, 1).astype(x.dtype)[:, None]
        seen = observed[place] & found[:, None]
        following = jnp.where(seen, x[place], 0)

        def alone(x: Float[Array, " dim"], wait: Float[Array, " one"]) -> Float[Array, " dim"]:
            return self.alone(jnp.concatenate([_standardised(x, self.frame), wait]))

        return NextObservation(following, seen, wait, jax.vmap(alone)(following, wait), model.encode(sequence)[0])

    def __call__(self, model: SequenceModel, state: PyTree, latent: PyTree, future: NextObservation) -> Any:
        read = jnp.concatenate([_standardised(latent, self.latent), future.wait])
        shift, log_deviation = jnp.split(self.forecast(read), 2)
        now: Any = model.emission(state, latent, future.context)
        deviation = jnp.asarray(self.frame[1].value, read.dtype)
        error = (future.x - now.mean) / deviation - shift
        score = -0.5 * (error * jnp.exp(-log_deviation)) ** 2 - log_deviation - future.alone
        return jnp.sum(jnp.where(future.seen, score, 0))


def _standardised(values: Float[Array, "*shape"], by: tuple[Constant, Constant]) -> Float[Array, "*shape"]:
    mean, deviation = (jnp.asarray(constant.value, values.dtype) for constant in by)
    return (values - mean) / deviation
