"""Estimates and gradients at fixed keys, for comparison across redesigns: the same numbers under any names.

`python -m tests.frozen.cases` writes them anew; do that only when a change of the numbers is meant.
"""

import json
from collections.abc import Callable
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import fivo
from fivo.bounds import (
    AIS,
    ELBO,
    FIVO,
    HMC,
    IWAE,
    MIS,
    AffineGate,
    AffineProposal,
    OwnProposal,
    SMCSampler,
    temperatures,
)
from fivo.gradients import LatentScore, MovingAverage, OtherFilters, OtherParticles, ResamplingScore, Score
from fivo.models import (
    SRNN,
    VRNN,
    BernoulliEmission,
    CategoricalLatent,
    DiscreteHMM,
    LinearGaussian,
    NormalEmission,
    StochasticVolatility,
    simulate,
)
from fivo.resampling import Always, ESSBelow, Schedule, Soft

FILE = Path(__file__).parent / "estimates.json"
KEY = jax.random.key(42)


def gaussian(proposal: str = "prior") -> LinearGaussian:
    return LinearGaussian(
        transition_matrix=np.array([[0.8, 0.2], [-0.3, 0.6]]),
        transition_covariance=np.array([[0.5, 0.1], [0.1, 0.3]]),
        emission_matrix=np.array([[1.0, 0.5], [0.2, -0.4]]),
        emission_covariance=np.array([[0.7, 0.1], [0.1, 0.9]]),
        initial_mean=np.array([0.3, -0.2]),
        initial_covariance=np.array([[1.0, 0.2], [0.2, 0.7]]),
        proposal=proposal,
    )


def hidden_markov(proposal: str = "prior") -> DiscreteHMM:
    return DiscreteHMM(
        initial_probs=np.array([0.5, 0.3, 0.2]),
        transition_probs=np.array([[0.6, 0.3, 0.1], [0.15, 0.7, 0.15], [0.25, 0.3, 0.45]]),
        emission_probs=np.array([[0.5, 0.3, 0.2], [0.25, 0.45, 0.3], [0.15, 0.25, 0.6]]),
        proposal=proposal,
    )


def volatility(proposal: str = "prior") -> StochasticVolatility:
    return StochasticVolatility(
        mean=np.array([0.0, -1.0]), persistence=np.array([0.9, 0.5]), scale=np.array([0.3, 0.6]), proposal=proposal
    )


def vrnn(**options) -> VRNN:
    return VRNN(BernoulliEmission(np.linspace(0.1, 0.6, 5)), 4, key=jax.random.key(1), **options)


def srnn(**options) -> SRNN:
    return SRNN(NormalEmission(np.linspace(-0.1, 0.6, 5)), 4, key=jax.random.key(1), **options)


def data(dim: int, kind: str = "real", missing: bool = True, seed: int = 3) -> fivo.Batch:
    """Three sequences of 7, 4 and 9 steps, an eighth of the entries missing."""
    rng = np.random.default_rng(seed)
    draw = {
        "real": lambda shape: rng.normal(size=shape),
        "binary": lambda shape: (rng.random(shape) < 0.4).astype(np.float64),
        "symbol": lambda shape: rng.integers(0, 3, shape).astype(np.float64),
    }[kind]
    sequences = [draw((length, dim)) for length in (7, 4, 9)]
    mask = [rng.random(x.shape) < 0.875 for x in sequences] if missing else None
    return fivo.Batch.from_sequences(sequences, mask=mask)


def value_and_gradient(bound: Callable, model: eqx.Module, batch: fivo.Batch) -> dict[str, list[float]]:
    """log p̂ of every sequence and the norms of the gradient's arrays, sorted; both jitted."""

    @eqx.filter_jit
    def run(model, bound):
        def total(both):
            found = both[0](both[1], batch, key=KEY).log_evidence
            return jnp.sum(found * jnp.array([1.0, 0.7, -0.4])), found

        parts, static = eqx.partition((bound, model), eqx.is_inexact_array)
        return jax.grad(lambda p: total(eqx.combine(p, static)), has_aux=True)(parts)

    gradient, values = run(model, bound)
    norms = sorted(float(jnp.linalg.norm(jnp.ravel(leaf))) for leaf in jax.tree.leaves(gradient))
    return {"values": values.tolist(), "gradient": [norm for norm in norms if norm > 0]}


def bounds() -> dict[str, Callable[[], dict]]:
    """A case for every bound, scheme and gradient, on some model."""
    real, symbols, bits = data(2), data(1, "symbol"), data(5, "binary")
    return {
        "linear-gaussian, prior, ELBO": lambda: value_and_gradient(ELBO(2), gaussian(), real),
        "linear-gaussian, optimal, IWAE": lambda: value_and_gradient(IWAE(4), gaussian("optimal"), real),
        "linear-gaussian, smoothing, FIVO": lambda: value_and_gradient(FIVO(4), gaussian("smoothing"), real),
        "linear-gaussian, learned, FIVO": lambda: value_and_gradient(FIVO(4), gaussian("learned"), real),
        "linear-gaussian, many particles": lambda: value_and_gradient(FIVO(300), gaussian(), real),
        "HMM, prior, score": lambda: value_and_gradient(FIVO(4, gradient="score"), hidden_markov(), symbols),
        "HMM, optimal, particles": lambda: value_and_gradient(
            FIVO(4, gradient=Score(OtherParticles())), hidden_markov("optimal"), symbols
        ),
        "volatility, systematic": lambda: value_and_gradient(FIVO(4, "systematic"), volatility(), real),
        "volatility, stratified": lambda: value_and_gradient(FIVO(4, "stratified"), volatility("learned"), real),
        "volatility, residual": lambda: value_and_gradient(FIVO(4, "residual", Always()), volatility(), real),
        "VRNN, FIVO": lambda: value_and_gradient(FIVO(4), vrnn(), bits),
        "VRNN, whole frames": lambda: value_and_gradient(FIVO(4), vrnn(), data(5, "binary", missing=False)),
        "VRNN, smoothing, IWAE": lambda: value_and_gradient(IWAE(4), vrnn(smoothing=True), bits),
        "VRNN, categorical": lambda: value_and_gradient(
            FIVO(4, gradient=LatentScore(OtherFilters(2))), vrnn(latent=CategoricalLatent(4)), bits
        ),
        "VRNN, resampling score": lambda: value_and_gradient(
            FIVO(4, criterion=Schedule((2, 5)), gradient=ResamplingScore(MovingAverage(0.5))), vrnn(), bits
        ),
        "VRNN, doubly reparameterized": lambda: value_and_gradient(FIVO(4, gradient=DOUBLY), vrnn(), bits),
        "VRNN, sticking the landing": lambda: value_and_gradient(
            IWAE(4, gradient="sticking-the-landing"), vrnn(), bits
        ),
        "VRNN, stop-gradient": lambda: value_and_gradient(FIVO(4, gradient="stop-gradient"), vrnn(), bits),
        "SRNN, FIVO": lambda: value_and_gradient(FIVO(4), srnn(), data(5)),
        "SRNN, smoothing, soft": lambda: value_and_gradient(
            FIVO(4, Soft(0.3), ESSBelow(0.9)), srnn(smoothing=True), data(5)
        ),
        "SRNN, transport": lambda: value_and_gradient(FIVO(4, "transport"), srnn(), data(5)),
        "SRNN, relaxed": lambda: value_and_gradient(FIVO(4, "relaxed", Always()), srnn(), data(5)),
        "annealing": lambda: value_and_gradient(AIS(4, temperatures.linear(4), HMC(0.1, 2)), gaussian("optimal"), real),
        "SMC sampler": lambda: value_and_gradient(
            SMCSampler(4, temperatures.linear(4), HMC(0.1, 2), criterion=Always()), gaussian("optimal"), real
        ),
        "multiple importance sampling": lambda: value_and_gradient(
            MIS(
                (OwnProposal(), AffineProposal(jnp.eye(2), jnp.zeros(2), jnp.zeros(2))),
                AffineGate(jnp.ones((2, 2)), jnp.zeros(2)),
                3,
            ),
            gaussian(),
            real,
        ),
    }


DOUBLY, STICKING = "doubly-reparameterized", "sticking-the-landing"


def others() -> dict[str, Callable[[], dict]]:
    """Everything else that is built on the filter."""
    real = data(2)

    def numbers(tree) -> list[float]:
        return [
            float(jnp.sum(leaf * jnp.arange(1, leaf.size + 1).reshape(leaf.shape))) for leaf in jax.tree.leaves(tree)
        ]

    def filtered(model, keep=("log_weights", "ancestors", "latents")):
        return fivo.ParticleFilter(5, "systematic")(model, real, key=KEY, keep=keep)

    def stream(model):
        pf = fivo.ParticleFilter(5, "systematic")
        state = pf.init(model, key=jax.random.split(KEY, 3)[2])
        for x, seen in zip(real.observations[2], real.mask[2], strict=True):
            state, _ = pf.step(model, state, x, mask=seen)
        return pf.finish(state)

    def reference():
        return jax.vmap(lambda key: simulate(gaussian(), 9, key=key).latents)(jax.random.split(KEY, 3))

    return {
        "filter": lambda: {
            "values": numbers(
                (lambda r: (r.log_increments, r.ess, r.kl, r.ancestors, r.latents))(filtered(gaussian("optimal")))
            )
        },
        "stream": lambda: {"values": numbers(stream(gaussian("optimal")).log_evidence)},
        "trajectories": lambda: {"values": numbers(fivo.smc.trajectories(filtered(volatility())))},
        "backward simulation": lambda: {
            "values": numbers(
                fivo.smc.backward_simulate(gaussian(), real, filtered(gaussian()), num_trajectories=3, key=KEY)
            )
        },
        "fixed lag": lambda: {"values": numbers(fivo.smc.fixed_lag(gaussian(), real, filtered(gaussian()), lag=2))},
        "conditional": lambda: {
            "values": numbers(
                fivo.smc.conditional_filter(
                    fivo.ParticleFilter(4, "stratified"), gaussian(), real, reference(), key=KEY
                ).log_evidence
            )
        },
        "particle Gibbs": lambda: {
            "values": numbers(
                fivo.smc.particle_gibbs(fivo.ParticleFilter(4), gaussian("optimal"), real, num_sweeps=3, key=KEY)
            )
        },
        "particle Gibbs, not Markov": lambda: {
            "values": numbers(
                fivo.smc.particle_gibbs(fivo.ParticleFilter(3), vrnn(), data(5, "binary"), num_sweeps=2, key=KEY)
            )
        },
        "sandwich": lambda: {
            "values": numbers(fivo.bounds.sandwich(fivo.ParticleFilter(4), gaussian(), real, reference(), key=KEY))
        },
        "simulations": lambda: {
            "values": numbers(
                [simulate(m, 6, key=KEY) for m in (gaussian(), hidden_markov(), volatility(), vrnn(), srnn())]
            )
        },
        "log joint": lambda: {
            "values": [float(gaussian().log_joint(z, x)) for z, x in zip(reference(), real.observations, strict=True)]
        },
        "Kalman": lambda: {"values": numbers((gaussian().log_evidence(real), gaussian().smoothed(real)))},
    }


def all_cases() -> dict[str, Callable[[], dict]]:
    """Every case by name."""
    return bounds() | others()


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    found = {}
    for name, case in all_cases().items():
        found[name] = case()
        print(name, [round(v, 4) for v in found[name]["values"][:4]], flush=True)
    FILE.write_text(json.dumps(found, indent=1) + "\n")
