"""A function with some of its operations done another way."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

from fivo._fuse.program import evaluate, read

Rule = Callable[..., Any]
"""(equation, *its inputs) -> its output, or None to leave it as it is."""

_CHECKPOINTS = ("checkpoint", "remat2")


def rewrite(function: Callable, rule: Rule) -> Callable:
    """The same function with every operation that the rule knows done the rule's way, but for those of inner loops."""

    def rewritten(*arguments: Any) -> Any:
        flat, structure = jax.tree.flatten(arguments)
        closed, shape = jax.make_jaxpr(lambda *leaves: function(*structure.unflatten(leaves)), return_shape=True)(*flat)
        return jax.tree.structure(shape).unflatten(_run(rule, closed.jaxpr, closed.consts, *flat))

    return rewritten


def _run(rule: Rule, jaxpr: Jaxpr, constants: Sequence[Any], *arguments: Any) -> list[Any]:
    environment = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *arguments], strict=True))
    for equation in jaxpr.eqns:
        values = [read(environment, atom) for atom in equation.invars]
        if equation.primitive.name in ("jit", "pjit", *_CHECKPOINTS):
            environment.update(zip(equation.outvars, _call(rule, equation, values), strict=True))
            continue
        output = rule(equation, *values)
        if output is None:
            evaluate([equation], environment)
        else:
            environment[equation.outvars[0]] = output
    return [read(environment, atom) for atom in jaxpr.outvars]


def _call(rule: Rule, equation: JaxprEqn, values: list[Any]) -> list[Any]:
    called = equation.params["jaxpr"]
    jaxpr, constants = (called.jaxpr, called.consts) if isinstance(called, ClosedJaxpr) else (called, ())

    def run(*arguments: Any) -> list[Any]:
        return _run(rule, jaxpr, constants, *arguments)

    if equation.primitive.name in _CHECKPOINTS:
        run = jax.checkpoint(run, prevent_cse=equation.params["prevent_cse"], policy=equation.params["policy"])
    return run(*values)
