"""`lax.scan` for filters: the same meaning, less work inside the loop.

What a step computes from data and random keys alone is hoisted out of the loop, what only its outputs need is sunk
behind it, matrix products of one input are joined and their weight gradients deferred (see `placement` and `products`).
Long sequences run in chunks, rematerialised backwards where storing everything would take too much memory.
`lax.scan` remains the definition: tests demand equal values and gradients.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import SymbolicZero
from jaxtyping import PyTree

from fivo._fuse import settings
from fivo._fuse.placement import Split, split
from fivo._fuse.products import find_products, flatten_products, multiply
from fivo._fuse.program import Program, array_type, evaluate, num_bytes, read, trace, variables
from fivo._fuse.sharding import varying_alike


def scan(
    body: Callable[[PyTree, PyTree], tuple[PyTree, PyTree]], start: PyTree, inputs: PyTree
) -> tuple[PyTree, PyTree]:
    """(last carry, outputs of all steps) of `body(carry, input) -> (carry, output)`."""
    start = varying_alike(start, inputs)
    if not settings.enabled():
        return lax.scan(body, start, inputs)
    flat_start, carry_tree = jax.tree.flatten(start)
    flat_inputs, input_tree = jax.tree.flatten(inputs)
    num_steps = flat_inputs[0].shape[0]

    def flat_body(*arguments: Any) -> tuple[PyTree, PyTree]:
        carry = jax.tree.unflatten(carry_tree, arguments[: len(flat_start)])
        step = jax.tree.unflatten(input_tree, arguments[len(flat_start) :])
        return body(carry, step)

    sample = [jax.typeof(leaf) for leaf in flat_start] + [_step_type(leaf) for leaf in flat_inputs]
    program, shapes = trace(flat_body, *sample)
    output_tree = jax.tree.structure(shapes[1])
    num_chunks = math.ceil(num_steps / settings.CHUNK)
    length = math.ceil(num_steps / max(num_chunks, 1))
    loop = Loop(program, len(flat_start), length)
    if num_chunks <= 1:
        carry, outputs = loop(flat_start, flat_inputs)
    else:
        carry, outputs = _in_chunks(loop, flat_start, flat_inputs, num_steps, num_chunks, length)
    return jax.tree.unflatten(carry_tree, carry), jax.tree.unflatten(output_tree, outputs)


def _step_type(leaf: jax.Array) -> jax.ShapeDtypeStruct:
    """One step's part of an input; under `jax.shard_map` it varies over the same axes of the mesh as the whole."""
    return jax.eval_shape(lambda whole: whole[0], leaf)


def _in_chunks(
    loop: "Loop", start: list, inputs: list, num_steps: int, num_chunks: int, length: int
) -> tuple[list, list]:
    whole = num_steps // length * length
    run = jax.checkpoint(loop) if loop.residual_bytes * num_steps > settings.MAX_RESIDUAL_BYTES else loop
    chunked = [leaf[:whole].reshape(whole // length, length, *leaf.shape[1:]) for leaf in inputs]
    carry, outputs = lax.scan(run, start, chunked)
    outputs = [leaf.reshape(whole, *leaf.shape[2:]) for leaf in outputs]
    if whole < num_steps:
        rest = Loop(loop.program, loop.num_carry, num_steps - whole)
        carry, last = rest(carry, [leaf[whole:] for leaf in inputs])
        outputs = [jnp.concatenate(pair) for pair in zip(outputs, last, strict=True)]
    return carry, outputs


class Loop:
    """A compiled-for-speed loop of a fixed number of steps."""

    def __init__(self, program: Program, num_carry: int, num_steps: int) -> None:
        self.program, self.num_carry, self.num_steps = program, num_carry, num_steps
        self.parts: Split = split(program, num_carry, num_steps)
        self.carry_inputs, self.step_inputs = program.inputs[:num_carry], program.inputs[num_carry:]
        produced_inside = set(self.carry_inputs) | {v for e in self.parts.inside for v in e.outvars}
        stepwise = set(self.step_inputs) | {v for e in self.parts.before for v in e.outvars}
        invariant = set(program.constants) | {v for e in self.parts.once for v in e.outvars}
        self.products = find_products(self.parts.inside, invariant)
        wanted_after = {v for e in self.parts.after for v in variables(e.invars)}
        wanted_after |= set(variables(program.outputs[num_carry:]))
        wanted_inside = {v for e in self.parts.inside for v in variables(e.invars)}
        wanted_inside |= set(variables(program.outputs[:num_carry]))
        self.entering = [v for v in _ordered(stepwise, program, self.parts) if v in wanted_inside]
        self.leaving = [v for v in _ordered(produced_inside, program, self.parts) if v in wanted_after]
        self.residual_bytes = sum(num_bytes(v) for e in self.parts.inside for v in e.outvars)

    def __call__(self, start: list, inputs: list) -> tuple[list, list]:
        environment = dict(self.program.constants)
        evaluate(self.parts.once, environment)
        stepwise = self._before(environment, inputs)
        entering = [stepwise[v] for v in self.entering]
        carry, leaving = self._loop(environment, start, entering)
        stepwise.update(zip(self.leaving, leaving, strict=True))
        return carry, self._after(environment, stepwise)

    def _before(self, environment: dict, inputs: list) -> dict:
        made = [v for e in self.parts.before for v in e.outvars]

        def one(inputs: list) -> list:
            local = environment | dict(zip(self.step_inputs, inputs, strict=True))
            evaluate(self.parts.before, local)
            return [local[v] for v in made]

        values = flatten_products(jax.vmap(one))(inputs) if made else []
        return dict(zip([*self.step_inputs, *made], [*inputs, *values], strict=True))

    def _after(self, environment: dict, stepwise: dict) -> list:
        outputs = self.program.outputs[self.num_carry :]
        known = list(stepwise)

        def one(values: list) -> list:
            local = environment | dict(zip(known, values, strict=True))
            evaluate(self.parts.after, local)
            return [read(local, atom) for atom in outputs]

        return flatten_products(jax.vmap(one, axis_size=self.num_steps))([stepwise[v] for v in known])

    def _loop(self, environment: dict, start: list, entering: list) -> tuple[list, list]:
        """The part that remains a loop, with weight gradients deferred."""
        used = {v for e in self.parts.inside for v in variables(e.invars)}
        used |= set(variables(self.program.outputs[: self.num_carry]))
        names = [v for v in environment if v in used]
        constants = [environment[v] for v in names]
        weights = [product.weight(environment) for product in self.products.values()]

        def run(weights: list, values: tuple, slots: list, record: bool):
            start, entering, constants = values
            both_ways = [(weight, weight.T) for weight in weights]
            local_constants = dict(zip(names, constants, strict=True))

            def step(carry: list, inputs: tuple):
                values, slot = inputs
                local = local_constants | dict(zip(self.carry_inputs, carry, strict=True))
                local |= dict(zip(self.entering, values, strict=True))
                operands = self._evaluate_inside(local, both_ways, slot)
                following = [read(local, atom) for atom in self.program.outputs[: self.num_carry]]
                return following, ([local[v] for v in self.leaving], operands if record else None)

            carry, (leaving, operands) = lax.scan(step, start, (entering, slots), length=self.num_steps)
            return (carry, leaving), operands

        @jax.custom_jvp
        def deferred(weights: list, values: tuple):
            return run(weights, values, [None] * len(weights), False)[0]

        def tangent(primals: tuple, tangents: tuple):
            """Weights move the loop through slots: their part of each step's product is added from outside.

            The transpose of that is the deferred gradient: the loop backwards leaves the cotangents of the products of
            all steps in the slots, and one product with the operands of all steps follows.
            """
            weights, values = primals
            leaves, structure = jax.tree.flatten(values)
            by_weights, by_leaves = tangents[0], jax.tree.leaves(tangents[1], is_leaf=_is_still)
            moved = [not _is_still(slope) for slope in by_leaves]
            shifted = [not _is_still(slope) for slope in by_weights]
            slots = [
                jnp.zeros((self.num_steps, *shape), dtype) for shape, dtype in _chosen(self._slot_types(), shifted)
            ]
            slots = varying_alike(slots, values)

            def of_moving(moving: list, slots: list):
                whole = _filled(moving, moved, leaves)
                every_slot = _filled(slots, shifted, [None] * len(weights))
                return run(weights, jax.tree.unflatten(structure, whole), every_slot, True)

            outputs, push, operands = jax.linearize(of_moving, _chosen(leaves, moved), slots, has_aux=True)
            slopes = list(zip(self.products.values(), operands, by_weights, strict=True))
            by_slots = [product.apply_to_all(operand, slope) for product, operand, slope in _chosen(slopes, shifted)]
            return outputs, push(_chosen(by_leaves, moved), by_slots)

        deferred.defjvp(tangent, symbolic_zeros=True)
        return deferred(weights, (start, entering, constants))

    def _evaluate_inside(self, local: dict, weights: list[tuple[jax.Array, jax.Array]], slots: list) -> list:
        """Run the loop's equations with joint products, whose weights come both ways around; returns their inputs."""
        joined = {id(e) for product in self.products.values() for e in product.equations}
        operands, position = [], 0
        for index, equation in enumerate(self.parts.inside):
            if index in self.products:
                product = self.products[index]
                x = read(local, product.operand)
                weight, transposed = weights[position]
                parts = multiply(product, x, weight, transposed, slots[position])
                local.update({e.outvars[0]: part for e, part in zip(product.equations, parts, strict=True)})
                operands.append(x)
                position += 1
            elif id(equation) not in joined:
                evaluate([equation], local)
        return operands

    def _slot_types(self) -> list[tuple[tuple[int, ...], Any]]:
        types = []
        for product in self.products.values():
            aval = array_type(product.equations[0].outvars[0])
            types.append(((*aval.shape[:-1], sum(product.sizes)), aval.dtype))
        return types


def _ordered(chosen: set, program: Program, parts: Split) -> list:
    """Members of a set in the program's order, so that tracing is repeatable."""
    everything = [*program.inputs, *(v for e in [*parts.before, *parts.inside] for v in e.outvars)]
    return [v for v in everything if v in chosen]


def _is_still(tangent: Any) -> bool:
    """Whether a tangent is known to be zero."""
    return isinstance(tangent, SymbolicZero)


def _chosen(values: list, flags: list[bool]) -> list:
    """Those of the values whose flag is set."""
    return [value for value, flag in zip(values, flags, strict=True) if flag]


def _filled(values: list, flags: list[bool], others: list) -> list:
    """One of `values` wherever the flag is set, else one of `others`."""
    rest = iter(values)
    return [next(rest) if flag else other for flag, other in zip(flags, others, strict=True)]
