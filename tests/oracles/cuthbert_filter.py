"""Bootstrap particle filters run by `cuthbert` 0.1: an independent oracle for the mean and variance of log p̂.

Its conventions, read from its source, that matter when comparing:

- Resampling opens a step: resample by the weights of t - 1, propagate, weight. So nothing is resampled after the last
  observation, and a decision taken at t acts before t + 1, as in `fivo`.
- The criterion is ESS < fraction * N, strictly (`fivo.resampling.ESSBelow` has <=). They differ on a null set, except
  where all weights are equal: fraction 1 then keeps the particles here and resamples them there. A fraction above 1
  always resamples, 0 never does.
- Its time 0 has no observation: weights start equal, and the first step would resample and propagate like any other.
  Here time 0 is a placeholder and the first step draws z_1 afresh from the initial distribution, so that whatever
  resampling does before it changes nothing.
- That also avoids a reuse of keys: `init_prepare` and the first `filter_combine` split the same key, and
  `split(key, N)` is a prefix of `split(key, N + 1)`, so noise of time 0 would return at time 1 in another particle.
- log p̂ grows by logsumexp(new weights) - logsumexp(weights after resampling); weights are carried unnormalised.
- Multinomial resampling takes the logarithm of `uniform`, which is exactly 0 once in 2²³ float32 draws: all ancestors
  then collapse to the first particle (or the last). Use float64, or few particles.
- On a CPU ancestors are found in a NumPy callback, one run at a time under `vmap`, at about 0.4 ms each. This module
  swaps in the search that `cuthbert` has for other platforms: the same ancestors, several times faster here.
"""

from collections.abc import Mapping
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
from cuthbert import filter as run_filter
from cuthbert.smc import particle_filter
from cuthbertlib.resampling import ess_decorator, multinomial, systematic, utils
from jaxtyping import Array, ArrayLike, Float, Key

utils._inverse_cdf_cpu = utils._inverse_cdf_default

SCHEMES = {"multinomial": multinomial.resampling, "systematic": systematic.resampling}


def bootstrap_log_evidence(
    parameters: Mapping[str, ArrayLike],
    observations: Float[ArrayLike, "time observation"],
    num_particles: int,
    resampling: Literal["multinomial", "systematic"],
    ess_fraction: float,
    keys: Key[Array, " run"],
) -> Float[Array, " run"]:
    """One estimate log p̂(x_1:T) for each key, in JAX's default float type.

    `parameters` has the names that `LinearGaussian` takes: a case of `dynamax.json`, or `model.parameters._asdict()`.
    """
    parameters = {name: jnp.asarray(array, float) for name, array in parameters.items()}
    return _log_evidence(
        parameters, jnp.asarray(observations, float), keys, num_particles, resampling, float(ess_fraction)
    )


@partial(jax.jit, static_argnums=(3, 4, 5))
def _log_evidence(
    parameters: dict[str, Array],
    observations: Float[Array, "time observation"],
    keys: Key[Array, " run"],
    num_particles: int,
    resampling: str,
    ess_fraction: float,
) -> Float[Array, " run"]:
    initial_scale = jnp.linalg.cholesky(parameters["initial_covariance"])
    transition_scale = jnp.linalg.cholesky(parameters["transition_covariance"])
    emission_scale = jnp.linalg.cholesky(parameters["emission_covariance"])
    whiten = jnp.linalg.inv(emission_scale)

    def placeholder(key: Key[Array, ""]) -> Float[Array, " state"]:
        return jnp.zeros_like(parameters["initial_mean"])

    def propagate(key, latent, inputs) -> Float[Array, " state"]:
        _, is_first = inputs
        mean = jnp.where(is_first, parameters["initial_mean"], parameters["transition_matrix"] @ latent)
        scale = jnp.where(is_first, initial_scale, transition_scale)
        return mean + scale @ jax.random.normal(key, mean.shape)

    def log_emission(previous, latent, inputs) -> Float[Array, ""]:
        observation, _ = inputs
        residual = whiten @ (observation - parameters["emission_matrix"] @ latent)
        log_normaliser = jnp.log(2 * jnp.pi) * len(observation) / 2 + jnp.log(jnp.diagonal(emission_scale)).sum()
        return -(residual @ residual) / 2 - log_normaliser

    bootstrap = particle_filter.build_filter(
        placeholder, propagate, log_emission, num_particles, ess_decorator(SCHEMES[resampling], ess_fraction)
    )
    is_first = jnp.arange(len(observations)) == 0

    def run(key: Key[Array, ""]) -> Float[Array, ""]:
        first_key, later_key = jax.random.split(key)
        start = bootstrap.init_prepare(key=first_key)
        states = run_filter(bootstrap, (observations, is_first), start, key=later_key)
        return states.log_normalizing_constant[-1]

    return jax.vmap(run)(keys)
