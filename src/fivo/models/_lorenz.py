"""Lorenz's convection equations (1963) with noise: chaos to be filtered."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Float

from fivo.errors import InputError
from fivo.models._contract import SequenceModel


class Lorenz63(SequenceModel):
    """dz_1 = σ (z_2 - z_1) dt, dz_2 = (z_1 (ρ - z_3) - z_2) dt, dz_3 = (z_1 z_2 - β z_3) dt, each with noise, and
    observations of all or some of the three, x_t ~ N(z_t, s²).

    A step is one of the classical Runge–Kutta method of order four, and then noise is added. Trajectories start near
    the attractor's middle.

    Args:
        prandtl: σ.
        rayleigh: ρ.
        aspect: β.
        dt: time between frames.
        process_noise: deviation per unit of √time.
        observation_noise: s.
        observed: which of the coordinates 0, 1 and 2 are seen.

    The first three are trained.
    """

    prandtl: Float[Array, ""]
    rayleigh: Float[Array, ""]
    aspect: Float[Array, ""]
    dt: float = eqx.field(static=True)
    process_noise: float = eqx.field(static=True)
    observation_noise: float = eqx.field(static=True)
    observed: tuple[int, ...] = eqx.field(static=True)

    markov: ClassVar[bool] = True

    def __init__(
        self,
        *,
        prandtl: Any = 10.0,
        rayleigh: Any = 28.0,
        aspect: Any = 8 / 3,
        dt: float = 0.02,
        process_noise: float = 1.0,
        observation_noise: float = 1.0,
        observed: tuple[int, ...] = (0, 1, 2),
    ) -> None:
        for name, value in (("dt", dt), ("process_noise", process_noise), ("observation_noise", observation_noise)):
            if not value > 0:
                raise InputError(f"{name} must be positive, got {value!r:.60}.")
        if not observed or any(index not in (0, 1, 2) for index in observed) or len(set(observed)) < len(observed):
            raise InputError(f"observed must name some of the coordinates 0, 1 and 2, got {observed!r:.60}.")
        values = [jnp.asarray(value) for value in (prandtl, rayleigh, aspect)]
        dtype = jnp.result_type(*values, jnp.float32)
        self.prandtl, self.rayleigh, self.aspect = (value.astype(dtype) for value in values)
        self.dt, self.process_noise, self.observation_noise = dt, process_noise, observation_noise
        self.observed = tuple(observed)

    def initial_prior(self, state, context):
        mean = jnp.asarray([0.0, 0.0, 25.0], self.rayleigh.dtype)
        return dist.Normal(mean, jnp.full_like(mean, 8))

    def prior(self, state, context):
        return dist.Normal(self.following(state), jnp.full_like(state, self.dt**0.5 * self.process_noise))

    def emission(self, state, latent, context):
        mean = latent[jnp.asarray(self.observed)]
        return dist.Normal(mean, jnp.full_like(mean, self.observation_noise))

    def slope(self, latent: Float[Array, " three"]) -> Float[Array, " three"]:
        """dz/dt without noise.

        Args:
            latent: z.

        Returns:
            Its derivative.
        """
        x, y, z = latent
        return jnp.stack([self.prandtl * (y - x), x * (self.rayleigh - z) - y, x * y - self.aspect * z])

    def following(self, latent: Float[Array, " three"]) -> Float[Array, " three"]:
        """The next state without noise.

        Args:
            latent: z.

        Returns:
            The same, dt later.
        """
        first = self.slope(latent)
        second = self.slope(latent + self.dt / 2 * first)
        third = self.slope(latent + self.dt / 2 * second)
        fourth = self.slope(latent + self.dt * third)
        return latent + self.dt / 6 * (first + 2 * second + 2 * third + fourth)
