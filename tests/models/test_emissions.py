"""How frames enter the networks and what their outputs stand for."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import fivo
from fivo.bounds import FIVO
from fivo.distributions import observation_log_prob
from fivo.errors import InputError
from fivo.models import (
    VRNN,
    BernoulliEmission,
    CategoricalEmission,
    Emission,
    MixedEmission,
    NegativeBinomialEmission,
    NormalEmission,
    PoissonEmission,
    StudentTEmission,
)
from tests.helpers import mean_within
from tests.sentences import assert_one_sentence

MEAN = np.array([0.25, 0.5, 0.125], np.float32)
RATES = np.array([[0.5, 0.25, 0.25], [0.0, 0.75, 0.25]], np.float32)


@pytest.mark.parametrize("emission", [BernoulliEmission(MEAN), NormalEmission(MEAN)])
def test_inputs_are_centred_and_missing_entries_are_zero(emission):
    x = np.array([[1.0, 0.0, 1.0], [0.25, 0.5, 0.125]], np.float32)
    mask = np.array([[True, True, False], [True, False, True]])
    np.testing.assert_array_equal(emission.features(jnp.asarray(x), None), x - MEAN)
    np.testing.assert_array_equal(emission.features(jnp.asarray(x), jnp.asarray(mask)), np.where(mask, x - MEAN, 0))
    assert emission.num_features == 3


def test_bernoulli_scores_raw_frames_with_the_training_mean_as_offset():
    emission = BernoulliEmission(MEAN)
    x, outputs = np.array([1.0, 0.0, 0.0]), np.array([0.3, -0.2, 0.0])
    p = 1 / (1 + np.exp(-(outputs + np.log(MEAN / (1 - MEAN)))))
    expected = stats.bernoulli(p).logpmf(x)
    np.testing.assert_allclose(emission(jnp.asarray(outputs, jnp.float32)).log_prob(x), expected, rtol=1e-5)


def test_a_note_that_training_never_or_always_plays_keeps_some_probability():
    scores = BernoulliEmission(np.array([0.0, 1.0], np.float32))(jnp.zeros(2)).log_prob(jnp.array([1.0, 0.0]))
    np.testing.assert_allclose(scores, np.log([1e-4, 1e-4]), rtol=1e-3)


def test_normal_has_a_scale_of_its_own_and_a_floor():
    emission = NormalEmission(MEAN)
    assert emission.num_outputs == 6
    outputs = np.array([1.0, 0.0, -1.0, 0.5, 0.0, -200.0])
    scale = np.log1p(np.exp(outputs[3:] + 0.25)) + 1e-4
    x = np.array([0.5, 0.5, -1.0])
    got = emission(jnp.asarray(outputs, jnp.float32)).log_prob(x)
    np.testing.assert_allclose(got, stats.norm(outputs[:3], scale).logpdf(x), rtol=1e-4)


def test_categorical_reads_symbols_as_one_hot_vectors():
    emission = CategoricalEmission(RATES)
    assert emission.num_features == emission.num_outputs == 6
    features = emission.features(jnp.array([[2, 1]]), jnp.array([[True, False]]))
    np.testing.assert_allclose(features, [[-0.5, -0.25, 0.75, 0, 0, 0]])


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_categorical_scores_symbols_of_any_number_type(dtype):
    emission = CategoricalEmission(RATES)
    outputs = np.array([0.1, 0.2, 0.3, -0.1, 0.0, 0.4])
    logits = outputs.reshape(2, 3) + np.log(np.clip(RATES, 1e-4, 1))
    expected = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    got = emission(jnp.asarray(outputs, jnp.float32)).log_prob(jnp.asarray([2, 0], dtype))
    np.testing.assert_allclose(got, expected[[0, 1], [2, 0]], rtol=1e-5)


def test_what_is_no_symbol_is_impossible():
    emission = CategoricalEmission(RATES)
    assert np.isneginf(emission(jnp.zeros(6)).log_prob(jnp.array([0.5, 3.0]))).all()


COUNTS = np.array([0.5, 4.0, 0.0], np.float32)
SCALE = np.array([2.0, 0.5, 1.5], np.float32)
OUTPUTS = np.array([0.3, -0.8, 2.0, 0.5, 0.0, 1.0, 8.0, 9.0, 10.0])
"""The first entries are locations or rates, the next scales or concentrations, the last degrees of freedom."""


def softplus(x):
    return np.log1p(np.exp(x))


def rate(raw, mean=COUNTS):
    return np.maximum(mean, 1e-4) * softplus(raw) / np.log(2) + 1e-4


def over_dispersed(mean, raw):
    concentration = softplus(raw + 1) + 1e-4
    return stats.nbinom(concentration, concentration / (concentration + mean))


KINDS = {
    "Poisson": (PoissonEmission(COUNTS), [stats.poisson(r) for r in rate(OUTPUTS[:3])]),
    "negative binomial": (
        NegativeBinomialEmission(COUNTS),
        [over_dispersed(m, raw) for m, raw in zip(rate(OUTPUTS[:3]), OUTPUTS[3:6], strict=True)],
    ),
    "Student t": (
        StudentTEmission(MEAN, SCALE),
        [
            stats.t(2 + softplus(df + 3), m + s * loc, s * (softplus(raw + 0.25) + 1e-4))
            for loc, raw, df, m, s in zip(OUTPUTS[:3], OUTPUTS[3:6], OUTPUTS[6:], MEAN, SCALE, strict=True)
        ],
    ),
    "Student t of standardised data": (
        StudentTEmission(MEAN),
        [
            stats.t(2 + softplus(df + 3), loc, softplus(raw + 0.25) + 1e-4)
            for loc, raw, df in zip(OUTPUTS[:3], OUTPUTS[3:6], OUTPUTS[6:], strict=True)
        ],
    ),
    "normal in units of the data": (
        NormalEmission(MEAN, SCALE),
        [
            stats.norm(m + s * loc, s * (softplus(raw + 0.25) + 1e-4))
            for loc, raw, m, s in zip(OUTPUTS[:3], OUTPUTS[3:6], MEAN, SCALE, strict=True)
        ],
    ),
}


def mixed() -> tuple[MixedEmission, np.ndarray, list]:
    """Groups whose columns do not stand in order: a note, two counts, two levels and a symbol."""
    emission = MixedEmission(
        (PoissonEmission(COUNTS[:2]), (4, 1)),
        (NormalEmission(MEAN[:2], SCALE[:2]), (0, 5)),
        (BernoulliEmission(MEAN[2:]), 3),
        (CategoricalEmission(RATES[1:]), [2]),
    )
    counts, levels, note, symbol = OUTPUTS[:2], OUTPUTS[2:6], OUTPUTS[6] - 8, OUTPUTS[6:9] - 8
    outputs = np.concatenate([counts, levels, [note], symbol])
    logits = symbol + np.log(np.clip(RATES[1], 1e-4, 1))
    of_levels = [
        stats.norm(MEAN[i] + SCALE[i] * levels[i], SCALE[i] * (softplus(levels[2 + i] + 0.25) + 1e-4)) for i in (0, 1)
    ]
    of_counts = [stats.poisson(r) for r in rate(counts, COUNTS[:2])]
    of_note = stats.bernoulli(1 / (1 + np.exp(-(note + np.log(MEAN[2] / (1 - MEAN[2]))))))
    of_symbol = stats.rv_discrete(values=(np.arange(3), np.exp(logits) / np.exp(logits).sum()))
    return emission, outputs, [of_levels[0], of_counts[1], of_symbol, of_note, of_counts[0], of_levels[1]]


def case(name: str) -> tuple[Emission, np.ndarray, list]:
    """An emission, outputs of its network, and the distribution of every entry that they stand for."""
    if name == "mixed":
        return mixed()
    emission, entries = KINDS[name]
    return emission, OUTPUTS[: emission.num_outputs], entries


every_kind = pytest.mark.parametrize("name", [*KINDS, "mixed"])


def draws(entries: list, num: int, seed: int = 0) -> np.ndarray:
    return np.stack([entry.rvs(size=num, random_state=seed + i) for i, entry in enumerate(entries)], axis=1).astype(
        float
    )


def log_prob_of(entry, x: np.ndarray) -> np.ndarray:
    return entry.logpmf(x) if hasattr(entry, "pmf") or isinstance(entry, stats.rv_discrete) else entry.logpdf(x)


@every_kind
def test_scores_are_those_of_scipy(x64, name):
    emission, outputs, entries = case(name)
    assert emission.num_outputs == len(outputs)
    x = draws(entries, 50)
    exact = np.stack([log_prob_of(entry, x[:, i]) for i, entry in enumerate(entries)], axis=1)
    got = jax.vmap(emission(jnp.asarray(outputs)).log_prob)(jnp.asarray(x))
    # Statistics of the training data are kept in single precision.
    np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-6)


@every_kind
def test_single_entries_can_be_missing(x64, name):
    emission, outputs, entries = case(name)
    x, rng = draws(entries, 1)[0], np.random.default_rng(1)
    exact = np.array([log_prob_of(entry, value) for entry, value in zip(entries, x, strict=True)])
    for mask in (rng.random(len(x)) < 0.5, np.zeros(len(x), bool), np.arange(len(x)) == 1):
        shown = jnp.asarray(np.where(mask, x, 0))
        got = observation_log_prob(emission(jnp.asarray(outputs)), shown, jnp.asarray(mask))
        np.testing.assert_allclose(got, exact[mask].sum(), rtol=1e-5, atol=1e-6)


@every_kind
def test_draws_have_the_moments(name):
    emission, outputs, entries = case(name)
    distribution = emission(jnp.asarray(outputs, jnp.float32))
    drawn = np.asarray(jax.vmap(distribution.sample)(jax.random.split(jax.random.key(0), 20_000)))
    assert drawn.shape == (20_000, emission.dim)
    mean = np.array([entry.mean() for entry in entries])
    assert mean_within(drawn, mean)
    assert mean_within((drawn - mean) ** 2, np.array([entry.var() for entry in entries]))
    assert np.isfinite(jax.vmap(distribution.log_prob)(jnp.asarray(drawn[:100]))).all()


OUTSIDE = {
    "Poisson": np.array([-1.0, 1.5, -0.5]),
    "negative binomial": np.array([-2.0, 0.5, 1e-3]),
    "mixed": np.array([0.0, -1.0, 3.0, 0.5, 2.5, 0.0]),
}


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_cannot_be_drawn_has_probability_zero_and_a_finite_slope(x64, name, dtype):
    emission, outputs, entries = case(name)
    x = jnp.asarray(OUTSIDE[name], dtype)
    outputs = jnp.asarray(outputs, dtype)
    scores = emission(outputs).log_prob(x)
    impossible = np.array([np.isneginf(log_prob_of(e, v)) for e, v in zip(entries, OUTSIDE[name], strict=True)])
    np.testing.assert_array_equal(np.isneginf(scores), impossible)
    assert np.isfinite(np.asarray(scores)[~impossible]).all()
    assert impossible.sum() >= 3
    slope = jax.grad(lambda o: jnp.sum(emission(o).log_prob(x)))(outputs)
    assert np.isfinite(slope).all()


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
@pytest.mark.parametrize("name", ["Poisson", "negative binomial"])
def test_counts_may_be_stored_as_any_number_type(name, dtype):
    emission, outputs, entries = case(name)
    x = np.array([0, 3, 1])
    got = emission(jnp.asarray(outputs, jnp.float32)).log_prob(jnp.asarray(x, dtype))
    np.testing.assert_allclose(got, [e.logpmf(v) for e, v in zip(entries, x, strict=True)], rtol=1e-4)
    features = emission.features(jnp.asarray(x[None], dtype), jnp.asarray([[True, False, True]]))
    np.testing.assert_allclose(features[0], [np.log(1 / 1.5), 0, np.log(2)], rtol=1e-5)


def test_frames_are_read_in_units_of_the_data():
    x, mask = np.array([[1.0, 0.0, 1.0]], np.float32), np.array([[True, True, False]])
    for emission in (NormalEmission(MEAN, SCALE), StudentTEmission(MEAN, SCALE)):
        np.testing.assert_allclose(emission.features(jnp.asarray(x), None), (x - MEAN) / SCALE, rtol=1e-6)
        got = emission.features(jnp.asarray(x), jnp.asarray(mask))
        np.testing.assert_allclose(got, np.where(mask, (x - MEAN) / SCALE, 0), rtol=1e-6)


def test_every_column_of_a_mixed_frame_is_read_by_its_own_kind():
    emission, _, _ = mixed()
    x = jnp.asarray([1.0, 3.0, 2.0, 1.0, 0.0, -1.0])
    mask = jnp.asarray([True, False, True, True, True, True])
    counts = [np.log1p(0.0) - np.log1p(COUNTS[0]), 0.0]
    levels = [(1 - MEAN[0]) / SCALE[0], (-1 - MEAN[1]) / SCALE[1]]
    symbol = np.array([0, 0, 1]) - RATES[1]
    expected = np.concatenate([counts, levels, [1 - MEAN[2]], symbol])
    np.testing.assert_allclose(emission.features(x, mask), expected, rtol=1e-5)
    assert emission.num_features == len(expected)


@every_kind
def test_a_model_of_it_can_be_filtered_and_trained(name):
    """With missing entries; log p̂ and its gradient are finite and not zero."""
    emission, _, entries = case(name)
    model = VRNN(emission, 3, key=jax.random.key(0))
    rng = np.random.default_rng(0)
    xs = [draws(entries, length, seed=length).astype(np.float32) for length in (5, 3)]
    batch = fivo.Batch.from_sequences(xs, mask=[rng.random(x.shape) < 0.8 for x in xs])

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def run(model):
        return jnp.sum(FIVO(3)(model, batch, key=jax.random.key(1)).log_evidence)

    value, gradient = run(model)
    assert np.isfinite(value)
    slopes = jax.tree.leaves(gradient)
    assert all(np.isfinite(slope).all() for slope in slopes)
    assert np.any(gradient.emission_network.output.bias != 0)
    if name == "mixed":  # which has most of the others in it
        report = fivo.models.check_model(model, batch)
        assert report.ok, str(report)


BAD = {
    "means above one": (lambda: BernoulliEmission(np.array([0.5, 1.5], np.float32)), "between 0 and 1"),
    "a matrix of means": (lambda: BernoulliEmission(RATES), "(2, 3)"),
    "a NaN": (lambda: NormalEmission(np.array([0.5, np.nan], np.float32)), "finite"),
    "a spread of zero": (lambda: NormalEmission(MEAN, 0 * MEAN), "positive"),
    "a spread of another size": (lambda: StudentTEmission(MEAN, SCALE[:2]), "one positive number per entry"),
    "negative counts": (lambda: PoissonEmission(-COUNTS), "not negative"),
    "no parts": (MixedEmission, "must cover the columns"),
    "a column twice": (lambda: MixedEmission((PoissonEmission(COUNTS[:2]), (0, 0))), "once", "[(0, 0)]"),
    "a column left out": (lambda: MixedEmission((PoissonEmission(COUNTS[:2]), (0, 2))), "once"),
    "a part of another width": (lambda: MixedEmission((PoissonEmission(COUNTS), (0, 1))), "widths [3]"),
    "a vector of rates": (lambda: CategoricalEmission(MEAN), "(3,)"),
    "negative rates": (lambda: CategoricalEmission(-RATES), "negative"),
    "wide frames": (
        lambda: CategoricalEmission(RATES).features(jnp.zeros((4, 3)), None),
        "2 entries per frame, as the model has, got 3",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    build, *parts = BAD[name]
    with pytest.raises(InputError) as refusal:
        build()
    assert_one_sentence(refusal.value, *parts)
