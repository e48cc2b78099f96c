"""Run any model through the checks that ours pass."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree

from fivo.batch import Sequence, as_batch
from fivo.distributions import weight_dtype
from fivo.errors import InputError
from fivo.models._contract import SequenceModel, check_streams
from fivo.models._extend import Frame, inspect_step
from fivo.models._simulate import Simulation, simulate
from fivo.models._trajectories import densities, draw, read


@dataclass(frozen=True)
class Finding:
    """The outcome of one check.

    Args:
        name: what must hold.
        ok: whether it does.
        detail: what was found where it does not hold, or why the check was left out.
    """

    name: str
    ok: bool
    detail: str = ""


@dataclass(frozen=True)
class CheckReport:
    """What `check_model` found; print it to read it.

    Args:
        findings: the outcome of every check.
    """

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether every check passed."""
        return all(finding.ok for finding in self.findings)

    def __str__(self) -> str:
        lines = [
            f"{'ok  ' if finding.ok else 'FAIL'}  {finding.name}{f': {finding.detail}' if finding.detail else ''}"
            for finding in self.findings
        ]
        return "\n".join(lines)

    __repr__ = __str__


class _Broken(Exception):
    """A check that found something, said in one sentence."""


def check_model(model: SequenceModel, example: Any, *, key: Key[Array, ""] | None = None) -> CheckReport:
    """Check that a model keeps the contract, on an example of its data.

    Args:
        model: the model.
        example: a `Batch`, an array [time, dim] or [batch, time, dim], or a list of [time, dim] arrays; its first
            sequence is used, up to 8 steps of it.
        key: a random key; a fixed one by default.

    Returns:
        A report: `report.ok` says whether all is well, and `print(report)` shows every check with what was found. In
        double precision (`jax_enable_x64` and float64 parameters) the checks are the strictest.
    """
    if not isinstance(model, SequenceModel):
        raise InputError(f"the model must be an instance of a SequenceModel, got {type(model).__name__}.")
    batch = as_batch(example)
    steps = min(8, int(batch.lengths[0]))
    if steps < 1:
        raise InputError("the example must have at least one step, but its first sequence has none.")
    first = jax.tree.map(lambda leaf: leaf[0], batch)
    sequence = Sequence(
        jnp.asarray(first.observations[:steps]),
        jnp.asarray(steps, jnp.int32),
        None if first.mask is None else first.mask[:steps],
        None if first.inputs is None else first.inputs[:steps],
    )
    key = jax.random.key(0) if key is None else key
    findings = []
    for name, check in CHECKS.items():
        try:
            found = check(model, sequence, key)
            findings.append(Finding(name, True, found or ""))
        except (_Broken, InputError) as error:
            findings.append(Finding(name, False, str(error)))
        except Exception as error:  # a user's model may raise anything
            findings.append(Finding(name, False, f"raised {type(error).__name__}: {str(error).splitlines()[0]:.200}"))
    return CheckReport(tuple(findings))


def _shapes(model: SequenceModel, sequence: Sequence, key: Key[Array, ""]) -> str | None:
    frames = jax.eval_shape(lambda s: read(model, s).frames, sequence)
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), frames)
    inspect_step(model, one)
    return None


def _values(model: SequenceModel, sequence: Sequence, key: Key[Array, ""]) -> str | None:
    value = _log_weight(model, sequence, key)
    if not bool(jnp.isfinite(value)):
        raise _Broken(f"log p(x, z) - log q(z | x) must be finite for a draw from q, got {value}.")
    if value.dtype != weight_dtype(model):
        raise _Broken(f"results must have the type of the parameters, {weight_dtype(model)}, got {value.dtype}.")
    return None


def _one_frame_at_a_time(model: SequenceModel, sequence: Sequence, key: Key[Array, ""]) -> str | None:
    check_streams(model)
    for shown in _with_and_without_gaps(model, sequence):
        frames = _frames(model, shown)
        memory = model.begin()
        for t in range(shown.observations.shape[0]):
            u = None if shown.inputs is None else shown.inputs[t]
            mask = None if shown.mask is None else shown.mask[t]
            context, (evidence, history, memory) = _next(model, memory, frames.x[t], mask, u)
            _agree(context, _at(frames.context, t), f"context_next and encode, step {t + 1}")
            _agree(history, _at(frames.history, t), f"the history of encode_next and encode, step {t + 1}")
            if model.causal:
                _agree(evidence, _at(frames.evidence, t), f"the evidence of encode_next and encode, step {t + 1}")
    return None


def _causality(model: SequenceModel, sequence: Sequence, key: Key[Array, ""]) -> str | None:
    time = sequence.observations.shape[0]
    if time < 2:
        return "left out: the example has one step"
    frames = _frames(model, sequence)
    x = sequence.observations
    other = jnp.where(x > 0, x - 1, x + 1)  # differs in every entry; ones and zeros stay ones and zeros
    for t in range(time):
        later = jnp.arange(time)[:, None] >= t
        inputs = sequence.inputs
        after = None if inputs is None else jnp.where(jnp.arange(time)[:, None] > t, inputs + 1, inputs)
        mask = None if sequence.mask is None else jnp.where(later, ~sequence.mask, sequence.mask)
        now = _frames(model, Sequence(jnp.where(later, other, x), sequence.length, mask, after))
        said = f"changing x from step {t + 1} on must leave the {{}} of earlier steps as they are"
        _agree(_upto(now.context, t + 1), _upto(frames.context, t + 1), said.format("contexts"))
        _agree(_upto(now.history, t), _upto(frames.history, t), said.format("histories"))
        if model.causal:
            _agree(_upto(now.evidence, t), _upto(frames.evidence, t), said.format("evidence"))
    return None


def _missing(model: SequenceModel, sequence: Sequence, key: Key[Array, ""]) -> str | None:
    x = sequence.observations
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return "left out: the observations are whole numbers"
    mask = jnp.broadcast_to((jnp.arange(x.shape[0]) != 0)[:, None], x.shape)  # the first frame is missing
    slopes = []
    for junk in (0.0, jnp.nan):
        shown = Sequence(jnp.where(mask, x, junk), sequence.length, mask, sequence.inputs)
        slopes.append(_value_and_gradient(model, shown, key))
    _agree(slopes[1], slopes[0], "values at missing entries must not be read, NaN included")
    return None


def _gradient(model: SequenceModel, sequence: Sequence, key: Key[Array, ""]) -> str | None:
    _, gradient = _value_and_gradient(model, sequence, key)
    leaves = [leaf for leaf in jax.tree.leaves(gradient) if leaf.size]
    if not leaves:
        return "left out: the model has no parameters"
    if not all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in leaves):
        raise _Broken("the gradient of log p(x, z) - log q(z | x) must be finite, but holds NaN or infinite values.")
    if not any(bool(jnp.any(leaf != 0)) for leaf in leaves):
        raise _Broken("the gradient is zero for every parameter; does something stop it?")
    if weight_dtype(model) != np.float64:
        return "only that it is finite: its slope is checked in double precision"
    rng = np.random.default_rng(0)
    direction = jax.tree.map(lambda leaf: jnp.asarray(rng.standard_normal(leaf.shape)), gradient)
    step = 1e-6
    ends = [
        _log_weight(eqx.apply_updates(model, jax.tree.map(lambda d, s=s: s * d, direction)), sequence, key)
        for s in (step, -step)
    ]
    measured = float(ends[0] - ends[1]) / (2 * step)
    claimed = float(sum(jnp.sum(g * d) for g, d in zip(leaves, jax.tree.leaves(direction), strict=True)))
    if not np.isclose(claimed, measured, rtol=1e-4, atol=1e-5):
        raise _Broken(f"the gradient must be the slope of the value {measured:.6g}, got {claimed:.6g}.")
    return None


def _simulations(model: SequenceModel, sequence: Sequence, key: Key[Array, ""]) -> str | None:
    drawn = _simulate(model, sequence.observations.shape[0], sequence.inputs, key)
    if drawn.observations.shape != sequence.observations.shape:
        wanted, got = sequence.observations.shape, drawn.observations.shape
        raise _Broken(f"what is drawn must be shaped like the example, {wanted}, got {got}.")
    score = _log_joint(model, drawn.latents, drawn.observations, sequence.inputs)
    if not bool(jnp.isfinite(score)):
        raise _Broken(f"what the model draws must have a finite log p(x, z) under it, got {score}.")
    return None


CHECKS: dict[str, Callable[[SequenceModel, Sequence, Key[Array, ""]], str | None]] = {
    "encode returns one entry per step, and the state keeps its shape": _shapes,
    "values are finite and of the parameters' type": _values,
    "one frame at a time agrees with encode": _one_frame_at_a_time,
    "nothing looks into the future": _causality,
    "missing entries are not read": _missing,
    "the gradient is right": _gradient,
    "it can be simulated": _simulations,
}


# Compiled once for every kind of model and shape, not once for every step and check.


@eqx.filter_jit
def _frames(model: SequenceModel, sequence: Sequence) -> Frame:
    return read(model, sequence).frames


@eqx.filter_jit
def _next(model: SequenceModel, memory: PyTree, x: Array, mask: Array | None, inputs: Array | None) -> PyTree:
    """context_t, then what `encode_next` makes of x_t."""
    return model.context_next(memory, inputs), model.encode_next(memory, x, mask, inputs)


@eqx.filter_jit
def _log_weight(model: SequenceModel, sequence: Sequence, key: Key[Array, ""]) -> Float[Array, ""]:
    """log p(x, z) - log q(z | x) of one draw from q."""
    reading = read(model, sequence)
    return densities(model, reading, draw(model, reading, key=key)).log_weight


_value_and_gradient = eqx.filter_jit(eqx.filter_value_and_grad(_log_weight))


@eqx.filter_jit
def _simulate(model: SequenceModel, num_steps: int, inputs: Array | None, key: Key[Array, ""]) -> Simulation:
    return simulate(model, num_steps, key=key, inputs=inputs)


@eqx.filter_jit
def _log_joint(model: SequenceModel, latents: PyTree, x: Array, inputs: Array | None) -> Float[Array, ""]:
    return model.log_joint(latents, x, inputs=inputs)


def _with_and_without_gaps(model: SequenceModel, sequence: Sequence) -> Iterator[Sequence]:
    x, inputs = sequence.observations.astype(weight_dtype(model)), sequence.inputs
    if sequence.mask is None:
        yield Sequence(x, sequence.length, None, inputs)
    mask = jnp.broadcast_to((jnp.arange(x.shape[0]) != 1)[:, None], x.shape)  # the second frame is missing
    yield Sequence(jnp.where(mask, x, 0), sequence.length, mask, inputs)


def _agree(got: PyTree, expected: PyTree, what: str) -> None:
    if jax.tree.structure(got) != jax.tree.structure(expected):
        raise _Broken(f"{what}: the structures differ, {jax.tree.structure(got)} and {jax.tree.structure(expected)}.")
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        tolerance = 1e-9 if jnp.result_type(a) == np.float64 else 1e-4
        if jnp.shape(a) != jnp.shape(b):
            raise _Broken(f"{what}: the shapes differ, {jnp.shape(a)} and {jnp.shape(b)}.")
        if not np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=False):
            largest = float(np.max(np.abs(np.asarray(a) - np.asarray(b))))
            raise _Broken(f"{what}: the numbers differ by up to {largest:.3g}.")


def _at(tree: PyTree, t: int) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[t], tree)


def _upto(tree: PyTree, stop: int) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[:stop], tree)
