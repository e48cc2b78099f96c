"""Which equations of a loop body must run inside the loop.

An equation that reads no carried value is *hoisted*: computed for all steps at once before the loop (random draws,
anything of the data alone), or once if it reads constants only. One that no carried value depends on is *sunk*:
computed for all steps at once after the loop. What must be stored for all steps in exchange is bounded.
"""

from collections import Counter
from dataclasses import dataclass

from jax.extend.core import JaxprEqn, Var

from fivo._fuse import settings
from fivo._fuse.program import Program, num_bytes, variables

ARRANGING = ("broadcast_in_dim", "concatenate", "random_wrap", "mul")


@dataclass
class Split:
    """The equations of a body by where they run."""

    once: list[JaxprEqn]
    before: list[JaxprEqn]
    inside: list[JaxprEqn]
    after: list[JaxprEqn]


def split(program: Program, num_carry: int, num_steps: int) -> Split:
    """Place every equation; the program's inputs are the carry and then one step's inputs."""
    carry, steps = set(program.inputs[:num_carry]), set(program.inputs[num_carry:])
    once, before, rest = [], [], []
    early = set(steps)
    looped = set(carry)
    for equation in program.equations:
        inputs = set(variables(equation.invars))
        if equation.effects or not inputs.isdisjoint(looped):
            rest.append(equation)
            looped.update(equation.outvars)
        elif inputs.isdisjoint(early):
            once.append(equation)
        elif all(fits(v, num_steps) for v in equation.outvars):
            before.append(equation)
            early.update(equation.outvars)
        else:
            rest.append(equation)
            looped.update(equation.outvars)
    arrangements = _arrangements(before, rest)
    looped.update(v for equation in arrangements for v in equation.outvars)
    before = _without(before, arrangements)
    rest = _without(program.equations, once + before)
    inside, after = _sink(rest, program, num_carry, looped, num_steps)
    return Split(once, before, inside, after)


def _arrangements(before: list[JaxprEqn], rest: list[JaxprEqn]) -> list[JaxprEqn]:
    """What only arranges or scales values for the loop: that costs little in there, where it joins what reads it.

    Reading its result of all steps costs more, and so does summing the gradient of a scale over all particles at once.
    """
    early = {v for equation in before for v in equation.outvars}
    readers = Counter(v for equation in before for v in set(variables(equation.invars)))
    wanted = {v for equation in rest for v in variables(equation.invars)}
    found = []
    for equation in reversed(before):
        made, inputs = set(equation.outvars), set(variables(equation.invars))
        alone = not any(readers[v] for v in made)
        if equation.primitive.name in ARRANGING and alone and not wanted.isdisjoint(made):
            found.append(equation)
            readers.subtract(inputs)
            wanted |= inputs & early
    return found


def _without(equations: list[JaxprEqn], others: list[JaxprEqn]) -> list[JaxprEqn]:
    excluded = {id(equation) for equation in others}
    return [equation for equation in equations if id(equation) not in excluded]


def fits(var: Var, num_steps: int) -> bool:
    """Whether a value of every step may be stored."""
    return num_steps * num_bytes(var) <= settings.MAX_STACK_BYTES


def _sink(
    equations: list[JaxprEqn], program: Program, num_carry: int, looped: set[Var], num_steps: int
) -> tuple[list[JaxprEqn], list[JaxprEqn]]:
    maker = {v: index for index, equation in enumerate(equations) for v in equation.outvars}
    stay: set[int] = set()

    def keep(indices: list[int]) -> None:
        while indices:
            index = indices.pop()
            if index not in stay:
                stay.add(index)
                indices.extend(maker[v] for v in variables(equations[index].invars) if v in maker)

    keep([maker[v] for v in variables(program.outputs[:num_carry]) if v in maker])
    keep([index for index, equation in enumerate(equations) if equation.effects])
    for index, equation in enumerate(equations):
        boundary = [v for v in variables(equation.invars) if v in looped and (v not in maker or maker[v] in stay)]
        if index not in stay and not all(fits(v, num_steps) for v in boundary):
            keep([index])
    return (
        [equation for index, equation in enumerate(equations) if index in stay],
        [equation for index, equation in enumerate(equations) if index not in stay],
    )
