"""Annealing against exact evidence: unbiased with every kernel, sharp at the posterior, tighter with more steps."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

import fivo
from fivo.bounds import (
    AIS,
    HMC,
    IWAE,
    Bound,
    Copy,
    Leapfrog,
    LearnedTemperatures,
    RandomWalk,
    SMCSampler,
    Temperatures,
    temperatures,
)
from fivo.resampling import Never
from fivo.weights import log_mean_exp
from tests.fast import fast_jit
from tests.helpers import hidden_markov, linear_gaussian, mean_within, one_sequence, repeated
from tests.sentences import assert_one_sentence

NUM_RUNS, NUM_STEPS = 10_000, 3


class Given(Temperatures):
    """Temperatures that are data: one compiled program for all of them."""

    values: Float[Array, " temperature"]

    def betas(self) -> Float[Array, " temperature"]:
        return self.values


def padded(batch: fivo.Batch) -> fivo.Batch:
    """With a step behind the end, where nobody may look."""
    behind = jnp.full_like(batch.observations[:, :1], jnp.nan)
    return fivo.Batch(jnp.concatenate([batch.observations, behind], axis=1), batch.lengths)


def case(proposal: str = "prior", noise: float = 2.0) -> tuple[fivo.models.LinearGaussian, fivo.Batch, float]:
    model = linear_gaussian(proposal, noise)
    batch = one_sequence(model, NUM_STEPS)
    return model, padded(batch), float(model.log_evidence(batch)[0])


@fast_jit
def log_evidence(bound: Bound, model, batch: fivo.Batch, key: jax.Array) -> jax.Array:
    return bound(model, batch, key=key).log_evidence


def log_ratios(bound: Bound, num_runs: int = NUM_RUNS, seed: int = 0, **settings) -> np.ndarray:
    """Draws of log p̂ - log p."""
    model, batch, exact = case(**settings)
    return np.asarray(log_evidence(bound, model, repeated(batch, num_runs), jax.random.key(seed))) - exact


KERNELS = {
    "hmc": (HMC(0.4, 3), temperatures.sigmoid(6)),
    "random-walk": (RandomWalk(0.5), temperatures.linear(20)),
    "leapfrog": (Leapfrog(0.3, 2), LearnedTemperatures(6)),
}


@pytest.mark.parametrize("name", KERNELS)
def test_the_annealed_estimate_is_unbiased_and_its_log_a_tighter_bound(x64, name):
    """p̂ is right on average; log p̂ is below log p, and above that of importance sampling with as many particles."""
    kernel, schedule = KERNELS[name]
    annealed = log_ratios(AIS(4, schedule, kernel))
    ratios = np.exp(annealed)
    assert ratios.var() < 1, "the case has too much variance for the check to have power"
    assert mean_within(ratios, 1)
    error = annealed.std() / np.sqrt(NUM_RUNS)
    assert annealed.mean() < -4 * error
    plain = log_ratios(IWAE(4))
    assert annealed.mean() - plain.mean() > 4 * np.hypot(error, plain.std() / np.sqrt(NUM_RUNS))


def test_an_smc_sampler_is_unbiased_and_resamples(x64):
    model, batch, exact = case(noise=0.3)
    bound = SMCSampler(8, temperatures.linear(6), HMC(0.5, 2))
    result = fast_jit(lambda m, b, k: bound(m, b, key=k))(model, repeated(batch, NUM_RUNS), jax.random.key(0))
    ratios = np.exp(np.asarray(result.log_evidence) - exact)
    assert ratios.var() < 1
    assert mean_within(ratios, 1)
    assert 0.1 < np.asarray(result.info.resampled)[:, :-1].mean() < 0.9, "an adaptive criterion, used"


def test_more_temperatures_come_closer_to_the_evidence(x64):
    """Jumps of 1, 1/4 and 1/32; kernels also move where the temperature stays, so that one program does all."""
    gaps = []
    for jumps in (1, 4, 32):
        betas = np.floor(np.linspace(0, 1, 33) * jumps) / jumps
        annealed = log_ratios(AIS(1, Given(jnp.asarray(betas)), HMC(0.35, 4)), 2_000)
        error = annealed.std() / np.sqrt(2_000)
        assert annealed.mean() < -4 * error
        gaps.append(-annealed.mean())
    assert gaps[0] > 3 * gaps[1] > 9 * gaps[2], gaps
    assert gaps[2] < 0.2


@pytest.mark.parametrize("kernel", [Copy(), HMC(0.5, 2)])
def test_annealing_is_sharp_at_the_posterior(x64, kernel):
    """With q the posterior every weight is p(x), wherever a kernel goes that leaves the posterior invariant."""
    ratios = log_ratios(AIS(1, temperatures.linear(3), kernel), 20, proposal="smoothing")
    np.testing.assert_allclose(ratios, 0, atol=1e-9)


def test_copying_is_importance_sampling(x64):
    """Temperatures then cancel, and each weight is p(x, z) / q(z | x) of the first draw."""
    model, batch, _ = case()
    result = fast_jit(
        lambda m, b, k: fivo.smc.anneal(
            fivo.ParticleFilter(5, criterion=Never()),
            m,
            b,
            betas=jnp.asarray([0.0, 0.1, 0.7, 1.0]),
            kernel=Copy(),
            key=k,
            keep=("latents",),
        )
    )(model, batch, jax.random.key(0))
    first, last = (jax.tree.map(lambda leaf, t=t: leaf[0, t], result.latents) for t in (0, -1))
    np.testing.assert_array_equal(first.latents, last.latents)
    np.testing.assert_allclose(result.log_evidence[0], log_mean_exp(first.log_ratio), rtol=1e-12)
    z = first.latents[:, :NUM_STEPS]
    x = batch.observations[0, :NUM_STEPS]
    residuals = np.asarray(x[None] - z @ model.emission_matrix.T)[..., 0]
    noise = float(model.emission_covariance[0, 0])
    likelihoods = -0.5 * (residuals**2 / noise + np.log(2 * np.pi * noise)).sum(axis=1)
    np.testing.assert_allclose(first.log_ratio, likelihoods, rtol=1e-9)


def test_adapted_temperatures_go_slowly_where_the_weights_vary_most(x64):
    """A pilot with its own key; behind it the schedule is fixed, so unbiasedness holds, and the bound is tighter."""
    model, batch, _ = case(noise=0.05)
    kernel = HMC(0.15, 3)
    schedule = temperatures.adapted(model, batch, 8, kernel, key=jax.random.key(9))
    steps = np.diff(schedule.values)
    assert (steps > 0).all()
    assert steps[0] < 0.3 * steps[-1], "the prior is far wider than the posterior: most changes at small β"
    adapted, equal = (
        log_ratios(AIS(8, Given(jnp.asarray(values)), kernel), 4_000, noise=0.05)
        for values in (schedule.values, temperatures.linear(8).values)
    )
    assert mean_within(np.exp(adapted), 1)
    error = np.hypot(adapted.std(), equal.std()) / np.sqrt(4_000)
    assert adapted.mean() - equal.mean() > 4 * error


def test_the_gradient_of_leapfrog_is_that_of_the_estimate(x64):
    """At fixed noise log p̂ is smooth in everything that can be trained: model, temperatures and step size."""
    model, batch, _ = case("learned")
    bound = AIS(2, LearnedTemperatures(3), Leapfrog(0.3, 2))
    trained, fixed = eqx.partition((model, bound), eqx.is_inexact_array)
    flat, unravel = jax.flatten_util.ravel_pytree(trained)

    def objective(flat: jax.Array) -> jax.Array:
        model, bound = eqx.combine(unravel(flat), fixed)
        return bound(model, batch, key=jax.random.key(2)).log_evidence[0]

    rng = np.random.default_rng(0)
    direction = jnp.asarray(rng.normal(size=flat.shape)) / 10
    value_and_slope = fast_jit(lambda at: (objective(at), jax.grad(objective)(at) @ direction))
    step = 1e-5
    numeric = (value_and_slope(flat + step * direction)[0] - value_and_slope(flat - step * direction)[0]) / (2 * step)
    np.testing.assert_allclose(value_and_slope(flat)[1], numeric, rtol=1e-6)


def test_bad_settings():
    for make, part in (
        (lambda: HMC(0.0, 2), "step_size must be a positive number, got 0.0"),
        (lambda: Leapfrog(0.1, 0), "num_steps must be a positive integer, got 0"),
        (lambda: temperatures.linear(0), "num_steps must be a positive integer, got 0"),
        (lambda: temperatures.sigmoid(3, -1.0), "sharpness must be a positive number, got -1.0"),
        (lambda: fivo.bounds.FixedTemperatures((0.0, 0.5)), "0.5"),
        (lambda: AIS(0, temperatures.linear(2), Copy()), "num_particles must be a positive integer, got 0"),
        (
            lambda: AIS(2, temperatures.linear(2), HMC(0.1, 1))(
                hidden_markov(), one_sequence(hidden_markov(), 2), key=jax.random.key(0)
            ),
            "Copy",
        ),
    ):
        with pytest.raises(fivo.InputError) as refusal:
            make()
        assert_one_sentence(refusal.value, part)
