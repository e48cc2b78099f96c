"""From the columns of a dataset to the emission of a model, and from its sequences to batches."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fivo._building import build_emission, build_model
from fivo._scoring import device_batch, score, scoring_plan, weights_dtype
from fivo.bounds import ELBO, FIVO, IWAE
from fivo.data import Column, Dataset, Slots, Split
from fivo.models import (
    SRNN,
    VRNN,
    BernoulliEmission,
    CategoricalEmission,
    MixedEmission,
    NegativeBinomialEmission,
    NormalEmission,
)
from fivo.settings import make_settings
from tests.data.test_arrays import mixed

RNG = np.random.default_rng(0)


def five_columns(**options):
    lengths = {"train": (12, 9, 7), "valid": (6,), "test": (5,)}
    inputs = {split: [RNG.normal(size=(n, 2)) for n in sizes] for split, sizes in lengths.items()}
    raw = {split: mixed(*sizes) for split, sizes in lengths.items()}
    return Dataset.from_arrays(**raw, inputs=inputs, kinds={4: "category"}, **options)


def test_the_emission_follows_from_the_columns():
    dataset = five_columns(standardize=True)
    emission = build_emission(dataset)
    assert isinstance(emission, MixedEmission)
    kinds = [NormalEmission, NegativeBinomialEmission, BernoulliEmission, CategoricalEmission]
    assert [type(part) for part in emission.parts] == kinds
    assert emission.columns == ((0, 1), (2,), (3,), (4,))
    assert emission.parts[0].scale is None
    np.testing.assert_allclose(emission.parts[1].mean.value, dataset.train_mean[2:3], rtol=1e-6)
    np.testing.assert_allclose(emission.parts[3].rates.value[0], dataset.train_rates(4), rtol=1e-6)


def test_numbers_that_are_not_standardised_are_read_in_units_of_their_spread():
    x = [RNG.normal([5.0, -100.0], [2.0, 30.0], (400, 2))]
    emission = build_emission(Dataset.from_arrays(x, x))
    assert isinstance(emission, NormalEmission)
    np.testing.assert_allclose(emission.scale.value, x[0].std(axis=0), rtol=1e-5)
    assert build_emission(Dataset.from_arrays(x, x, standardize=True)).scale is None


def test_emissions_of_one_kind():
    counts = [RNG.poisson(3.0, (30, 2))]
    assert isinstance(build_emission(Dataset.from_arrays(counts, counts)), NegativeBinomialEmission)
    symbols = [RNG.integers(0, 4, (90, 2))]
    emission = build_emission(Dataset.from_arrays(symbols, symbols, kinds="category"))
    assert isinstance(emission, CategoricalEmission)
    assert emission.rates.shape == (2, 4)
    few = tuple(Column(name, "category", categories=tuple("abcdefg"[:k])) for name, k in (("a", 4), ("b", 5)))
    parts = build_emission(Dataset.from_arrays(symbols, symbols, columns=few)).parts
    assert [part.rates.shape for part in parts] == [(1, 4), (1, 5)]


def test_a_batch_has_the_masks_and_inputs_of_its_sequences():
    part = five_columns().splits["train"]
    batch = device_batch(part, np.array([2, -1, 0]), 14)
    assert batch.lengths.tolist() == [7, 0, 12]
    assert batch.observations.dtype == batch.inputs.dtype == jnp.float32
    for slot, index in ((0, 2), (2, 0)):
        length = len(part[index])
        np.testing.assert_array_equal(batch.observations[slot, :length], part[index])
        np.testing.assert_array_equal(batch.mask[slot, :length], part.masks[index])
        np.testing.assert_array_equal(batch.inputs[slot, :length], part.inputs[index])
        assert not batch.mask[slot, length:].any()
    assert not batch.mask[1].any()
    plain = device_batch([np.ones((3, 2))], np.array([0]), 3)
    assert plain.mask is None
    assert plain.inputs is None


@pytest.mark.parametrize("kind", ["vrnn", "srnn"])
def test_five_columns_are_scored(kind):
    dataset = five_columns(standardize=True)
    model = build_model(make_settings({"model": kind, "hidden": 4}), dataset, key=jax.random.key(0))
    assert isinstance(model, VRNN if kind == "vrnn" else SRNN)
    assert model.num_inputs == 2
    part = dataset.split("train")
    values = score(model, FIVO(2), part, scoring_plan(part.lengths, 2), key=jax.random.key(1))
    assert np.isfinite(values).all()


def test_batches_have_the_type_of_the_weights(x64):
    dataset = five_columns(standardize=True)
    model = build_model(make_settings({"hidden": 2}), dataset, key=jax.random.key(0))
    wide = jax.tree.map(lambda leaf: leaf.astype(jnp.float64) if hasattr(leaf, "astype") else leaf, model)
    assert weights_dtype(wide) == np.float64
    batch = device_batch(dataset.splits["train"], np.array([0]), 12, weights_dtype(wide))
    assert batch.observations.dtype == batch.inputs.dtype == jnp.float64


@pytest.mark.parametrize("bound", [FIVO(3), IWAE(3), ELBO(3)], ids=["FIVO", "IWAE", "ELBO"])
def test_context_is_not_scored(bound):
    """log p(x_s:T | x_<s) is what the whole sequence has beyond its beginning."""
    dataset = five_columns(standardize=True)
    model = build_model(make_settings({"hidden": 3}), dataset, key=jax.random.key(0))
    whole = dataset.splits["train"]
    starts = (4, 0, 6)
    late = dataclasses.replace(whole, starts=starts)
    cuts = [start or len(x) for start, x in zip(starts, whole, strict=True)]
    parts = (whole.sequences, whole.masks, whole.inputs)
    early = Split(*(tuple(x[:cut] for x, cut in zip(part, cuts, strict=True)) for part in parts))

    def scored(split):
        return score(model, bound, split, [Slots(np.arange(3), 12)], key=jax.random.key(1))

    expected = scored(whole) - np.where(np.array(starts) > 0, scored(early), 0)
    np.testing.assert_allclose(scored(late), expected, rtol=1e-4)
    np.testing.assert_allclose(scored(dataclasses.replace(whole, starts=(0, 0, 0))), scored(whole), rtol=1e-5)
