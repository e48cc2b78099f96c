"""Twists for tests."""

import jax
import jax.numpy as jnp

from fivo.models import Twist


class BadTwist(Twist):
    """A twist that prefers what the future does not: it reads the next frame, with the wrong sign."""

    strength: jax.Array

    def lookahead(self, model, sequence):
        x = jnp.asarray(sequence.observations, float)[:, 0]
        return jnp.concatenate([x[1:], x[:1]])

    def __call__(self, model, state, latent, future):
        return -self.strength * jnp.sin(jnp.sum(latent) * (1 + future) + 0.3)


def bad(strength: float = 0.4) -> BadTwist:
    return BadTwist(jnp.asarray(strength))
