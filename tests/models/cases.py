"""Every model with every proposal, small and without symmetries, for the tests that all models must pass.

A new model is added to `CASES` and thereby goes through the protocol, the invariance and the streaming tests.
"""

from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from fivo.models import (
    DMM,
    SRNN,
    VAE,
    VRNN,
    BernoulliEmission,
    CategoricalEmission,
    DiscreteHMM,
    Emission,
    LinearGaussian,
    NormalEmission,
    ProductProposal,
    Proposed,
    ResidualProposal,
    SequenceModel,
    StochasticVolatility,
)


@dataclass(frozen=True)
class Case:
    """A model with its proposal, and observations for it."""

    name: str
    build: Callable[[type], SequenceModel]
    """The model with parameters of a float type."""
    draw: Callable[[np.random.Generator, int], np.ndarray]
    """Some observations [time, dim] with positive probability."""
    factorised: bool = True
    """Whether single entries of a frame can be missing."""

    def __str__(self) -> str:
        return self.name

    def sequences(self, *lengths: int, seed: int = 0) -> list[np.ndarray]:
        rng = np.random.default_rng(seed)
        return [self.draw(rng, length) for length in lengths]

    def masks(self, *lengths: int, seed: int = 1) -> list[np.ndarray]:
        """About a third of the entries missing, among them the whole second frame."""
        rng = np.random.default_rng(seed)
        masks = [rng.random(x.shape) > 0.35 for x in self.sequences(*lengths)]
        for mask in masks:
            mask[1:2] = False
        return masks


def linear_gaussian(dtype: type, proposal: str = "prior") -> LinearGaussian:
    """Three latents, two correlated observations, no matrix diagonal."""
    model = LinearGaussian(
        transition_matrix=np.array([[0.8, 0.3, 0.0], [-0.2, 0.7, 0.1], [0.1, 0.0, 0.5]], dtype),
        transition_covariance=np.array([[0.5, 0.1, 0.0], [0.1, 0.4, -0.1], [0.0, -0.1, 0.3]], dtype),
        emission_matrix=np.array([[1.0, 0.4, -0.3], [0.2, -0.6, 0.9]], dtype),
        emission_covariance=np.array([[0.6, 0.35], [0.35, 0.5]], dtype),
        initial_mean=np.array([0.5, -0.3, 0.1], dtype),
        initial_covariance=np.array([[1.0, 0.2, 0.1], [0.2, 0.8, 0.0], [0.1, 0.0, 0.6]], dtype),
        proposal=proposal,
    )
    if proposal != "learned":
        return model
    gain = np.array([[0.4, 0.1], [0.0, -0.2], [-0.1, 0.3]], dtype)
    return eqx.tree_at(
        lambda m: (m.learned.gain, m.learned.bias, m.learned.scale_tril),
        model,
        (jnp.asarray(gain), jnp.full((3,), 0.1, dtype), 1.2 * model.learned.scale_tril),
    )


def discrete_hmm(dtype: type, proposal: str = "prior") -> DiscreteHMM:
    return DiscreteHMM(
        initial_probs=np.array([0.5, 0.3, 0.2], dtype),
        transition_probs=np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]], dtype),
        emission_probs=np.array([[0.6, 0.2, 0.1, 0.1], [0.1, 0.5, 0.2, 0.2], [0.1, 0.1, 0.3, 0.5]], dtype),
        proposal=proposal,
    )


def stochastic_volatility(dtype: type, proposal: str = "prior") -> StochasticVolatility:
    model = StochasticVolatility(
        mean=np.array([-0.5, 0.2], dtype),
        persistence=np.array([0.9, 0.7], dtype),
        scale=np.array([0.4, 0.6], dtype),
        proposal=proposal,
    )
    if proposal != "learned":
        return model
    learned = np.array([[0.1, -0.1], [0.15, 0.1], [0.05, -0.1]], dtype)
    return eqx.tree_at(lambda m: m.learned, model, jnp.asarray(learned))


def with_factors(dtype: type) -> Proposed:
    """Fewer steps than some sequences have."""
    rng = np.random.default_rng(2)
    product = ProductProposal(5, 3, mean=rng.standard_normal((5, 3)), scale=0.5 + rng.random((5, 3)))
    return away_from_zero(Proposed(linear_gaussian(dtype, "optimal"), product), dtype)


def with_residuals(dtype: type) -> Proposed:
    residual = ResidualProposal(2, SAMPLES, 3, smoothing=True, key=jax.random.key(4))
    return away_from_zero(Proposed(stochastic_volatility(dtype, "learned"), residual), dtype)


class Plain(SequenceModel):
    """Only what must be written: everything else is the contract's default."""

    log_scale: jax.Array

    def initial_state(self, context):
        return jnp.zeros_like(self.log_scale)

    def prior(self, state, context):
        return dist.Normal(0.8 * state, jnp.exp(self.log_scale))

    def emission(self, state, latent, context):
        return dist.Normal(jnp.stack([latent, 0.5 - latent]), 1.0)


def neural(dtype: type, kind: Callable[..., SequenceModel], output: Emission, smoothing: bool) -> SequenceModel:
    """Two units."""
    return away_from_zero(kind(output, 2, smoothing=smoothing, key=jax.random.key(4)), dtype)


def away_from_zero(model: SequenceModel, dtype: type) -> SequenceModel:
    """Biases other than the zero they start at."""
    arrays, rest = eqx.partition(model, eqx.is_inexact_array)
    rng = np.random.default_rng(5)
    moved = jax.tree.map(lambda leaf: jnp.asarray(leaf + 0.1 * rng.random(leaf.shape), dtype), arrays)
    return eqx.combine(moved, rest)


def _normal(dim: int) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, length: rng.standard_normal((length, dim))


def _symbols(count: int) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, length: rng.integers(0, count, (length, 1)).astype(np.int32)


def _notes(rng: np.random.Generator, length: int) -> np.ndarray:
    return (rng.random((length, 3)) < 0.3).astype(np.float64)


NOTES = BernoulliEmission(np.array([0.2, 0.3, 0.1], np.float32))
SAMPLES = NormalEmission(np.array([0.1, -0.2], np.float32))
SYMBOLS = CategoricalEmission(np.array([[0.2, 0.3, 0.1, 0.4]], np.float32))


def _neural(name: str, kind: Callable[..., SequenceModel], output: Emission, draw: Callable, smoothing: bool) -> Case:
    return Case(name, lambda dtype: neural(dtype, kind, output, smoothing), draw)


def _case(family: str, build: Callable[[type, str], SequenceModel], draw: Callable, proposal: str) -> Case:
    return Case(f"{family}-{proposal}", lambda dtype: build(dtype, proposal), draw)


CASES = [
    *(_case("linear_gaussian", linear_gaussian, _normal(2), p) for p in ("prior", "optimal", "smoothing", "learned")),
    *(_case("discrete_hmm", discrete_hmm, _symbols(4), p) for p in ("prior", "optimal")),
    *(_case("stochastic_volatility", stochastic_volatility, _normal(2), p) for p in ("prior", "learned")),
    Case("linear_gaussian-product", with_factors, _normal(2)),
    Case("stochastic_volatility-residual", with_residuals, _normal(2)),
    Case("vae", lambda dtype: away_from_zero(VAE(NOTES, 1, 2, key=jax.random.key(4)), dtype), _notes),
    Case("plain", lambda dtype: Plain(jnp.asarray(-0.5, dtype)), _normal(2)),
    _neural("vrnn-notes", VRNN, NOTES, _notes, False),
    _neural("vrnn-samples-smoothing", VRNN, SAMPLES, _normal(2), True),
    _neural("srnn-symbols", SRNN, SYMBOLS, _symbols(4), False),
    _neural("srnn-notes-smoothing", SRNN, NOTES, _notes, True),
    _neural("dmm-samples", DMM, SAMPLES, _normal(2), False),
    _neural("dmm-notes-smoothing", DMM, NOTES, _notes, True),
]
FAMILIES = [
    case
    for case in CASES
    if case.name
    in (
        "linear_gaussian-smoothing",
        "discrete_hmm-optimal",
        "stochastic_volatility-learned",
        "vae",
        "plain",
        "vrnn-notes",
        "srnn-symbols",
        "dmm-notes-smoothing",
    )
]
"""One case of every kind of model, for checks in which proposals play little part."""
CAUSAL_CASES = [case for case in CASES if case.build(np.float32).causal]
