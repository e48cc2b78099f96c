"""Statistics of the data are values of a model, not parameters: no optimizer reaches them."""

import copy
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import fivo
from fivo.bounds import FIVO
from fivo.models import (
    SRNN,
    VAE,
    VRNN,
    BernoulliEmission,
    CategoricalEmission,
    Constant,
    Emission,
    MixedEmission,
    NormalEmission,
    PoissonEmission,
    SequenceModel,
)
from tests.fast import fast_jit
from tests.sentences import assert_one_sentence

A = np.array([[0.5, 0.25], [0.0, 1.0]], np.float32)


def test_equal_content_is_one_constant():
    assert Constant(A) == Constant(A.copy())
    assert hash(Constant(A)) == hash(Constant(A.copy()))
    assert Constant(jnp.asarray(A)) == Constant(A)
    assert len({Constant(A), Constant(A.copy()), Constant(2 * A)}) == 2


@pytest.mark.parametrize(
    "other",
    [A + 1e-7, A.astype(np.float64), A.reshape(-1), A.T, A[:1], A.tolist()],
    ids=lambda value: str(np.shape(value)),
)
def test_another_content_shape_or_type_is_another_constant(other):
    assert Constant(other) != Constant(A)


def test_it_is_no_array_and_nothing_else():
    assert Constant(A) != A.tolist()
    assert Constant(A) is not None
    assert Constant(A).shape == (2, 2)
    assert repr(Constant(A)) == "Constant(float32[2, 2])"


def test_it_cannot_be_changed():
    given = A.copy()
    constant = Constant(given)
    given[0, 0] = 7
    np.testing.assert_array_equal(constant.value, A)
    with pytest.raises(ValueError, match="read-only"):
        constant.value[0, 0] = 7
    with pytest.raises(AttributeError):
        constant.value = given


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))])  # noqa: S301
def test_copies_are_equal(copied):
    assert copied(Constant(A)) == Constant(A)


class Holder(eqx.Module):
    """A model of a user's own, with a statistic."""

    weight: jax.Array
    mean: Constant = eqx.field(static=True)


def test_it_is_not_a_leaf_and_equal_ones_share_a_program():
    holder = Holder(jnp.ones(2), Constant(A))
    assert [leaf.shape for leaf in jax.tree.leaves(holder)] == [(2,)]
    traced = []

    @eqx.filter_jit
    def total(holder):
        traced.append(holder)
        return jnp.sum(holder.weight) + jnp.sum(jnp.asarray(holder.mean.value))

    assert total(holder) == total(Holder(jnp.ones(2), Constant(A.copy()))) == 3.75
    assert len(traced) == 1
    assert total(Holder(jnp.ones(2), Constant(2 * A))) == 5.5
    assert len(traced) == 2


MEAN = np.array([0.2, 0.6, 0.4], np.float32)
EMISSIONS = {
    "notes": (BernoulliEmission(MEAN), lambda rng, shape: rng.random(shape) < 0.4),
    "levels": (NormalEmission(MEAN, 1 + MEAN), lambda rng, shape: rng.standard_normal(shape)),
    "columns": (
        MixedEmission((CategoricalEmission(np.full((1, 2), 0.5)), 0), (PoissonEmission(MEAN[1:]), (2, 1))),
        lambda rng, shape: rng.integers(0, 2, shape),
    ),
}
MODELS = {
    "VRNN": lambda output: VRNN(output, 2, key=jax.random.key(0)),
    "SRNN": lambda output: SRNN(output, 2, smoothing=True, key=jax.random.key(0)),
    "VAE": lambda output: VAE(output, 2, 2, key=jax.random.key(0)),
}


def data(kind: str) -> fivo.Batch:
    draw = EMISSIONS[kind][1]
    rng = np.random.default_rng(0)
    return fivo.Batch.from_sequences([np.asarray(draw(rng, (4, 3)), np.float32) for _ in range(3)])


def loss(model: SequenceModel, batch: fivo.Batch) -> jax.Array:
    return -jnp.mean(FIVO(2)(model, batch, key=jax.random.key(1)).log_evidence)


def partitioned(model: SequenceModel, batch: fivo.Batch) -> SequenceModel:
    """What Equinox's documentation does: parameters are the inexact arrays."""
    optimizer = optax.adamw(0.1, weight_decay=0.5)
    parameters, static = eqx.partition(model, eqx.is_inexact_array)

    @fast_jit
    def step(parameters, state):
        gradient = jax.grad(lambda p: loss(eqx.combine(p, static), batch))(parameters)
        updates, state = optimizer.update(gradient, state, parameters)
        return eqx.apply_updates(parameters, updates), state

    state = optimizer.init(parameters)
    for _ in range(3):
        parameters, state = step(parameters, state)
    return eqx.combine(parameters, static)


def whole(model: SequenceModel, batch: fivo.Batch) -> SequenceModel:
    """Plain JAX: the model is the tree of parameters, decayed by `adamw` where it gets no gradient too."""
    optimizer = optax.adamw(0.1, weight_decay=0.5)

    @fast_jit
    def step(model, state):
        updates, state = optimizer.update(jax.grad(loss)(model, batch), state, model)
        return optax.apply_updates(model, updates), state

    state = optimizer.init(model)
    for _ in range(3):
        model, state = step(model, state)
    return model


def statistics(emission: Emission) -> list[Constant | None]:
    parts = emission.parts if isinstance(emission, MixedEmission) else [emission]
    return [getattr(part, name) for part in parts for name in ("mean", "scale", "rates") if hasattr(part, name)]


@pytest.mark.parametrize("train", [partitioned, whole])
@pytest.mark.parametrize(("model", "kind"), [("VRNN", "notes"), ("SRNN", "columns"), ("VAE", "levels")])
def test_an_optimizer_leaves_the_statistics_as_they_are(model, kind, train):
    """Weight decay too, which changes every parameter, with or without a gradient."""
    emission, batch = EMISSIONS[kind][0], data(kind)
    before = MODELS[model](emission)
    after = train(before, batch)
    assert statistics(after.output) == statistics(emission)
    assert [c for c in statistics(emission) if c is not None]
    assert jax.tree.structure(after) == jax.tree.structure(before)
    for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        assert np.isfinite(new).all()
        assert np.any(old) <= np.any(old != new)
    assert loss(after, batch) < loss(before, batch)


def test_a_file_holds_the_statistics_and_is_read_only_into_equal_ones(tmp_path):
    """Or a model would go on with another dataset's."""
    path = tmp_path / "model.safetensors"
    saved = VRNN(EMISSIONS["columns"][0], 2, key=jax.random.key(0))
    fivo.save(path, {"model": saved, "steps": [jnp.zeros(())]})
    again = {"model": VRNN(EMISSIONS["columns"][0], 2, key=jax.random.key(1)), "steps": [jnp.ones(())]}
    loaded = fivo.load(path, like=again)
    assert jax.tree.all(jax.tree.map(np.array_equal, loaded["model"], saved))
    other = MixedEmission((CategoricalEmission(np.full((1, 2), 0.5)), 0), (PoissonEmission(2 * MEAN[1:]), (2, 1)))
    with pytest.raises(fivo.InputError) as refusal:
        fivo.load(path, like={**again, "model": VRNN(other, 2, key=jax.random.key(0))})
    assert_one_sentence(refusal.value, str(path), "['model'].output.parts[1].mean", "constant")
    wider = VRNN(BernoulliEmission(MEAN), 2, key=jax.random.key(0))
    with pytest.raises(fivo.InputError) as refusal:
        fivo.load(path, like={**again, "model": wider})
    assert_one_sentence(refusal.value, "['model'].output")
