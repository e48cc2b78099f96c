"""A traced loop body as a flat list of equations: calls inlined, repeated work shared, dead work dropped."""

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import jax
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Literal, Var, jaxpr_as_fun

Atom = Var | Literal

_CALLS = {"jit", "pjit", "closed_call", "core_call"}


@dataclass
class Program:
    """Equations from inputs and constants to outputs."""

    constants: dict[Var, Any]
    inputs: list[Var]
    equations: list[JaxprEqn]
    outputs: list[Atom]


def trace(function: Callable, *arguments: Any) -> tuple[Program, Any]:
    """The program of a function of flat arrays, and the structure of its output."""
    closed, shape = jax.make_jaxpr(function, return_shape=True)(*arguments)
    builder = _Builder()
    inputs = [Var(v.aval) for v in closed.jaxpr.invars]
    outputs = builder.inline(closed, inputs)
    equations = live(builder.equations, outputs)
    return Program(builder.constants, inputs, equations, outputs), shape


def evaluate(equations: Sequence[JaxprEqn], environment: dict[Var, Any]) -> None:
    """Run equations, reading and writing the environment."""
    if not equations:
        return
    made = [v for equation in equations for v in equation.outvars]
    free = dict.fromkeys(v for equation in equations for v in variables(equation.invars))
    inputs = [v for v in free if v not in set(made)]
    effects = frozenset().union(*(equation.effects for equation in equations))
    jaxpr = Jaxpr((), inputs, made, equations, effects, _nameless())
    results = jaxpr_as_fun(ClosedJaxpr(jaxpr, ()))(*(environment[v] for v in inputs))
    environment.update(zip(made, results, strict=True))


@functools.cache
def _nameless() -> DebugInfo:
    return jax.make_jaxpr(lambda: ())().jaxpr.debug_info.with_unknown_names()


def read(environment: dict[Var, Any], atom: Atom) -> Any:
    """The value of a variable or literal."""
    return atom.val if isinstance(atom, Literal) else environment[atom]


def variables(atoms: Iterable[Atom]) -> list[Var]:
    """The variables among some atoms."""
    return [atom for atom in atoms if not isinstance(atom, Literal)]


def live(equations: Sequence[JaxprEqn], outputs: Iterable[Atom]) -> list[JaxprEqn]:
    """The equations that the outputs need, and those with side effects."""
    needed = set(variables(outputs))
    kept = []
    for equation in reversed(equations):
        if equation.effects or not needed.isdisjoint(equation.outvars):
            needed.update(variables(equation.invars))
            kept.append(equation)
    return kept[::-1]


class _Builder:
    def __init__(self) -> None:
        self.constants: dict[Var, Any] = {}
        self.equations: list[JaxprEqn] = []
        self._known: dict[Any, list[Var]] = {}
        self._constant_of: dict[int, Var] = {}

    def inline(self, closed: ClosedJaxpr, inputs: Sequence[Atom]) -> list[Atom]:
        jaxpr: Jaxpr = closed.jaxpr
        names: dict[Var, Atom] = dict(zip(jaxpr.invars, inputs, strict=True))
        names.update({v: self._constant(v, c) for v, c in zip(jaxpr.constvars, closed.consts, strict=True)})

        def rename(atom: Atom) -> Atom:
            return atom if isinstance(atom, Literal) else names[atom]

        for equation in jaxpr.eqns:
            arguments = [rename(atom) for atom in equation.invars]
            if equation.primitive.name in _CALLS and not equation.effects:
                results = self.inline(equation.params["jaxpr"], arguments)
            else:
                results = self._emit(equation, arguments)
            names.update(zip(equation.outvars, results, strict=True))
        return [rename(atom) for atom in jaxpr.outvars]

    def _constant(self, var: Var, value: Any) -> Var:
        known = self._constant_of.get(id(value))
        if known is None:
            known = self._constant_of[id(value)] = Var(var.aval)
            self.constants[known] = value
        return known

    def _emit(self, equation: JaxprEqn, arguments: list[Atom]) -> Sequence[Atom]:
        key = _identity(equation, arguments)
        if key is not None and key in self._known:
            return self._known[key]
        results = [Var(v.aval) for v in equation.outvars]
        self.equations.append(equation.replace(invars=arguments, outvars=results))
        if key is not None:
            self._known[key] = results
        return results


def _identity(equation: JaxprEqn, arguments: list[Atom]) -> Any:
    """What two equations share if they compute the same; None where that cannot be told."""
    if equation.effects:
        return None
    try:
        inputs = tuple(
            ("literal", str(a.aval), a.val.item() if hasattr(a.val, "item") else a.val) if isinstance(a, Literal) else a
            for a in arguments
        )
        key = (equation.primitive, inputs, tuple(sorted(equation.params.items(), key=lambda item: item[0])))
        hash(key)
    except (TypeError, ValueError):
        return None
    return key


def array_type(value: Atom) -> ShapedArray:
    """Shape and element type: every value of these programs is an array."""
    return cast(ShapedArray, value.aval)


def num_bytes(value: Atom) -> int:
    """The size of an array; keys, which do not tell theirs, have eight bytes each."""
    kind = array_type(value)
    return math.prod(kind.shape) * getattr(kind.dtype, "itemsize", 8)
