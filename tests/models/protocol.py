"""What every model owes the filter, as one list of checks.

`test_protocol.py` takes each case of `cases.py` through all of them, in double precision, and shows for each rule that
a model which breaks it is caught.
"""

import functools
from collections.abc import Callable, Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Bool, PyTree, Shaped

import fivo
from fivo.models import SequenceModel, simulate
from tests.fast import fast_jit
from tests.models.cases import Case
from tests.sentences import assert_one_sentence

TOLERANCE = 1e-9
LENGTHS = (6, 9, 4)
NUM_PARTICLES = 5


def check_encode_agrees_with_encode_next(case: Case) -> None:
    """Frame by frame gives what the whole sequence gives, with and without missing entries."""
    model = case.build(np.float64)
    encode, encode_next = fast_jit(model.encode), fast_jit(model.encode_next)
    for x, mask in _frames(case):
        context, evidence, history = encode(_sequence(x, mask))
        memory = model.begin()
        for t in range(len(x)):
            assert_close(model.context_next(memory, None), _at(context, t), f"context_{t + 1}")
            evidence_t, history_t, memory = encode_next(memory, x[t], None if mask is None else mask[t], None)
            assert_close(history_t, _at(history, t), f"history_{t + 1}")
            if model.causal:
                assert_close(evidence_t, _at(evidence, t), f"evidence_{t + 1}")


def check_causality(case: Case) -> None:
    """Other frames from t on leave the contexts up to t and the histories before t as they were.

    The evidence before t too, unless the proposal is a smoothing one.
    """
    model = case.build(np.float64)
    encode = fast_jit(model.encode)
    other = jnp.asarray(case.sequences(7, seed=5)[0])
    for x, mask in _frames(case):
        context, evidence, history = encode(_sequence(x, mask))
        for t in range(len(x)):
            later = jnp.arange(len(x))[:, None] >= t
            changed_mask = None if mask is None else jnp.where(later, ~mask, mask)
            changed = encode(_sequence(jnp.where(later, other, x), changed_mask))
            assert_close(_upto(changed[0], t + 1), _upto(context, t + 1), f"context before a change of x_{t + 1}")
            assert_close(_upto(changed[2], t), _upto(history, t), f"history before a change of x_{t + 1}")
            if model.causal:
                assert_close(_upto(changed[1], t), _upto(evidence, t), f"evidence before a change of x_{t + 1}")


def check_missing_entries_are_not_read(case: Case) -> None:
    """Whatever a missing entry or the padding holds, NaN included, neither the estimate nor its gradient sees it."""
    model, batch, keys = case.build(np.float64), _masked_batch(case), _keys()
    expected = _mapped_value_and_gradient(case)(model, batch, keys)
    junk = jnp.where(batch.mask, batch.observations, jnp.nan)
    got = _mapped_value_and_gradient(case)(model, fivo.Batch(junk, batch.lengths, batch.mask), keys)
    assert_close(got, expected, "with NaN in missing entries")
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(expected))


def check_transformations(case: Case) -> None:
    """`jit`, `vmap` and `grad` on top of each other: plain values key by key, and their slopes at fixed noise."""
    model, batch, keys = case.build(np.float64), _masked_batch(case), _keys()
    values, gradients = _mapped_value_and_gradient(case)(model, batch, keys)
    plain = fast_jit(_log_evidence)
    for i, key in enumerate(keys):
        np.testing.assert_allclose(values[i], plain(model, batch, key), rtol=TOLERANCE, err_msg=f"bound at key {i}")

    direction = _direction(gradients)
    step = 1e-6
    ahead, behind = (
        plain(eqx.apply_updates(model, _scaled(direction, scale)), batch, keys[0]) for scale in (step, -step)
    )
    slopes = jax.tree.map(lambda g, d: jnp.sum(g[0] * d), gradients, direction)
    measured = float(ahead - behind) / (2 * step)
    assert measured != 0
    assert float(sum(jax.tree.leaves(slopes))) == pytest.approx(measured, rel=1e-6, abs=1e-6)


def check_float_types(case: Case) -> None:
    """Results come in the float type of the parameters, whatever the observations have; both agree on log p(x, z)."""
    joints = {}
    drawn = fast_jit(lambda: simulate(case.build(np.float64), 6, key=jax.random.key(1)))()
    for dtype, other in ((np.float32, np.float64), (np.float64, np.float32)):
        model = case.build(dtype)
        batch = fivo.Batch.from_sequences([_as_type(x, other) for x in case.sequences(*LENGTHS)])
        result = jax.eval_shape(_filter_all, model, batch, jax.random.key(1))
        kinds = {leaf.dtype for leaf in jax.tree.leaves(result) if jnp.issubdtype(leaf.dtype, jnp.floating)}
        assert kinds == {np.dtype(dtype)}
        joints[dtype] = fast_jit(model.log_joint)(*_as_type(drawn, dtype))
        assert joints[dtype].dtype == dtype
    np.testing.assert_allclose(joints[np.float32], joints[np.float64], rtol=1e-4)


def check_bad_input(case: Case) -> None:
    """Frames of the wrong size are refused in one sentence, in a batch and one at a time."""
    model = case.build(np.float64)
    wide = [np.concatenate([x, x, x], axis=1) for x in case.sequences(*LENGTHS)]
    with pytest.raises(fivo.InputError) as refusal:
        fivo.ParticleFilter(5)(model, fivo.Batch.from_sequences(wide), key=jax.random.key(1))
    assert_one_sentence(refusal.value, str(wide[0].shape[1]))
    if model.causal:
        pf = fivo.ParticleFilter(5)
        state = pf.init(model, key=jax.random.key(1))
        with pytest.raises(fivo.InputError) as refusal:
            pf.step(model, state, jnp.asarray(wide[0][0]))
        assert_one_sentence(refusal.value, str(wide[0].shape[1]))


CHECKS: list[Callable[[Case], None]] = [
    check_encode_agrees_with_encode_next,
    check_causality,
    check_missing_entries_are_not_read,
    check_transformations,
    check_float_types,
    check_bad_input,
]


def assert_close(got: PyTree, expected: PyTree, what: str) -> None:
    """Equal structure, equal types, equal integers, and floats equal to 1e-9."""
    assert jax.tree.structure(got) == jax.tree.structure(expected), what
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype, what
        if jnp.issubdtype(a.dtype, jnp.floating):
            np.testing.assert_allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE, err_msg=what)
        else:
            np.testing.assert_array_equal(a, b, err_msg=what)


def _log_evidence(model: SequenceModel, batch: fivo.Batch, key: jax.Array) -> jax.Array:
    # The filter's own: a bound refuses this derivative for discrete latents.
    return jnp.sum(fivo.ParticleFilter(NUM_PARTICLES)(model, batch, key=key).log_evidence)


@functools.cache
def _mapped_value_and_gradient(
    case: Case,
) -> Callable[[SequenceModel, fivo.Batch, jax.Array], tuple[jax.Array, PyTree]]:
    """One compilation a case, for the checks that need it."""
    value_and_gradient = eqx.filter_value_and_grad(_log_evidence)
    return fast_jit(
        lambda model, batch, keys: jax.vmap(lambda key: value_and_gradient(model, batch, key))(keys),
    )


def _masked_batch(case: Case) -> fivo.Batch:
    """Symbols are stored as floats too, so that missing ones can hold NaN."""
    xs = [x.astype(np.float64) for x in case.sequences(*LENGTHS)]
    return fivo.Batch.from_sequences(xs, mask=case.masks(*LENGTHS))


def _keys() -> jax.Array:
    return jax.random.split(jax.random.key(2), 3)


def _filter_all(model: SequenceModel, batch: fivo.Batch, key: jax.Array) -> fivo.smc.FilterResult:
    keep = ("log_weights", "ancestors", "latents")
    return fivo.ParticleFilter(5)(model, batch, key=key, keep=keep)


def _frames(case: Case) -> Iterator[tuple[Shaped[Array, "time dim"], Bool[Array, "time dim"] | None]]:
    x, mask = jnp.asarray(case.sequences(7)[0]), jnp.asarray(case.masks(7)[0])
    yield x, None
    yield jnp.where(mask, x, 0), mask


def _sequence(x: Shaped[Array, "time dim"], mask: Bool[Array, "time dim"] | None) -> fivo.Sequence:
    return fivo.Sequence(x, jnp.asarray(len(x)), mask)


def _direction(gradients: PyTree) -> PyTree:
    """A random direction to move the parameters in, along which covariances stay symmetric."""
    rng = np.random.default_rng(3)

    def draw(gradient: jax.Array) -> jax.Array:
        noise = rng.standard_normal(gradient.shape[1:])
        square = noise.ndim == 2 and noise.shape[0] == noise.shape[1]
        symmetric = square and np.allclose(gradient[0].T, gradient[0], rtol=1e-6)
        return jnp.asarray(noise + noise.T if symmetric else noise)

    return jax.tree.map(draw, gradients)


def _scaled(direction: PyTree, scale: float) -> PyTree:
    return jax.tree.map(lambda leaf: scale * leaf, direction)


def _as_type(tree: PyTree, dtype: type) -> PyTree:
    return jax.tree.map(lambda a: a.astype(dtype) if np.issubdtype(a.dtype, np.floating) else a, tree)


def _at(tree: PyTree, t: int) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[t], tree)


def _upto(tree: PyTree, stop: int) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[:stop], tree)
