"""Propositions 1 and 2 of the paper, measured."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from jaxtyping import Array, Float

import fivo
from fivo.bounds import ELBO, FIVO, IWAE, Bound
from fivo.models import SequenceModel, simulate
from fivo.resampling import Always, ESSBelow
from tests.fast import fast_jit
from tests.helpers import hidden_markov, linear_gaussian, log_evidence_of, one_sequence, relative_evidence, repeated
from tests.oracles.moments import DenseGaussian, average_moments, hmm_filter_variance

LADDER = {4: 20_000, 16: 20_000, 64: 10_000, 256: 3_000}
"""Numbers of particles, and of runs: fewer where a run is expensive and varies little."""


def measured_gap(bound: Bound, model, batch: fivo.Batch, num_runs: int) -> tuple[float, float]:
    """log p - E[log p̂] and its standard error, with p̂/p - 1 as control variate: E[R - 1 - log R], R = p̂/p."""
    ratios = relative_evidence(bound, model, batch, num_runs)
    samples = ratios - 1 - np.log(ratios)
    return samples.mean(), samples.std() / np.sqrt(num_runs)


def test_the_gap_of_iwae_is_half_its_relative_variance_and_falls_to_zero(x64):
    """Proposition 1 (b) and (c). What is left after V/2 is E[Δ⁴]/4 - E[Δ³]/3, of order 1/N², which is the tolerance."""
    model = linear_gaussian(noise=4.0)
    batch = one_sequence(model, 8)
    joint, x = DenseGaussian(model, 8), np.asarray(batch.observations[0])
    moments = [joint.weight_moment(x, k) for k in (2, 3, 4)]
    gaps = []
    for n, num_runs in LADDER.items():
        gap, error = measured_gap(IWAE(n), model, batch, num_runs)
        half_variance = (moments[0] - 1) / (2 * n)
        third, fourth = average_moments(moments, n)
        assert abs(gap - half_variance) < abs(third) / 3 + fourth / 4 + 4 * error, n
        gaps.append(gap)
    assert all(after < before / 3 for before, after in pairwise(gaps)), gaps
    assert abs(gaps[-1] / half_variance - 1) < 0.15


def test_the_gap_of_fivo_is_half_its_relative_variance_and_falls_to_zero(x64):
    """Proposition 1 (b) and (c), with the exact variance V of the filter; E[Δ³] and E[Δ⁴] are of the order of V²."""
    model = hidden_markov()
    batch = one_sequence(model, 8)
    x = np.asarray(batch.observations[0])
    gaps = []
    for n, num_runs in LADDER.items():
        gap, error = measured_gap(FIVO(n, "multinomial", Always()), model, batch, num_runs)
        variance = hmm_filter_variance(model, x, n)
        assert abs(gap - variance / 2) < variance**2 + 4 * error, n
        gaps.append(gap)
    assert all(after < before / 3 for before, after in pairwise(gaps)), gaps
    assert abs(gaps[-1] / (variance / 2) - 1) < 0.15


class Autoregressive(SequenceModel):
    """z_t ~ N(a x_{t-1} + c z_{t-1}, s²), x_t ~ N(z_t + b x_{t-1}, r²), with q_t = p(z_t | z_{t-1}, x_1:t).

    With c = 0 the latents say nothing about each other once x is known: Proposition 2's condition
    p(z_1:t-1 | x_1:t) = p(z_1:t-1 | x_1:t-1) holds. With any other c it does not.
    """

    coupling: Float[Array, ""]
    a: float = 0.7
    b: float = -0.4
    s: float = 0.8
    r: float = 0.5

    def encode(self, sequence):
        x = sequence.observations
        previous = jnp.concatenate([jnp.zeros_like(x[:1]), x[:-1]])
        return previous, (x, previous), None

    def begin(self):
        return jnp.zeros((1,))

    def context_next(self, memory, inputs):
        return memory

    def encode_next(self, memory, x, mask, inputs):
        return (x, memory), None, x

    def initial_state(self, context):
        return jnp.zeros_like(context)

    def prior(self, state, context):
        return dist.Normal(self.a * context + self.coupling * state, self.s)

    def proposal(self, state, evidence, prior):
        x, previous = evidence
        gain = self.s**2 / (self.s**2 + self.r**2)
        return dist.Normal(prior.loc + gain * (x - self.b * previous - prior.loc), self.r * gain**0.5)

    def emission(self, state, latent, context):
        return dist.Normal(latent + self.b * context, self.r)

    def log_evidence(self, batch: fivo.Batch) -> np.ndarray:
        """A scalar Kalman filter with x_{t-1} as input."""
        total, mean, variance, previous = 0.0, 0.0, 0.0, 0.0
        for x in np.ravel(batch.observations):
            mean = self.a * previous + float(self.coupling) * mean
            variance = float(self.coupling) ** 2 * variance + self.s**2
            spread = variance + self.r**2
            residual = x - self.b * previous - mean
            total += -0.5 * (np.log(2 * np.pi * spread) + residual**2 / spread)
            mean, variance = mean + variance / spread * residual, variance * self.r**2 / spread
            previous = x
        return np.array([total])


def autoregressive(coupling: float) -> tuple[Autoregressive, fivo.Batch]:
    model = Autoregressive(jnp.asarray(coupling))
    x = simulate(model, 10, key=jax.random.key(4)).observations
    return model, fivo.Batch.from_sequences([np.asarray(x)])


@pytest.mark.parametrize(("num_particles", "criterion"), [(1, Always()), (2, ESSBelow(1.0)), (7, Always())])
def test_proposition_2_constant_weights_make_fivo_exact(x64, num_particles, criterion):
    model, batch = autoregressive(coupling=0.0)
    pf = fivo.ParticleFilter(num_particles, criterion=criterion)
    run = fast_jit(lambda model, batch: pf(model, batch, key=jax.random.key(0), keep=("log_weights",)))
    result = run(model, repeated(batch, 20))
    assert result.resampled.all()
    np.testing.assert_allclose(result.log_weights, -np.log(num_particles), rtol=0, atol=1e-12)
    np.testing.assert_allclose(result.log_evidence, np.repeat(model.log_evidence(batch), 20), rtol=0, atol=1e-9)


def test_proposition_2_needs_its_condition(x64):
    """Where x_t tells something about z_t-1, weights vary and FIVO stays below log p."""
    model, batch = autoregressive(coupling=0.9)
    exact = model.log_evidence(batch)[0]
    for bound in (ELBO(), FIVO(4, criterion=Always())):
        drawn = np.asarray(log_evidence_of(bound, model, repeated(batch, 4_000), jax.random.key(0)))
        assert drawn.std() > 0.1
        assert exact - drawn.mean() > 4 * drawn.std() / np.sqrt(drawn.size)
    # The evidence itself is right: the filter is unbiased for it.
    ratios = relative_evidence(FIVO(4, criterion=Always()), model, batch, 4_000)
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(ratios.size)
