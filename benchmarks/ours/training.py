"""Tasks of fivo's own training step, and its parameters for the peers."""

import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import fivo
from benchmarks.harness.task import Task, all_threads
from benchmarks.problems import observations, train_mean
from fivo.bounds import ELBO, FIVO, IWAE, Bound
from fivo.models import VRNN, BernoulliEmission, NormalEmission
from fivo.settings import Adam
from fivo.training import Trainer, adam

LEARNING_RATE = 3e-4


def step(
    batch: int,
    particles: int,
    hidden: int,
    steps: int,
    bound: str,
    learning_rate: float = LEARNING_RATE,
    data: str = "music",
) -> Task:
    """One optimiser step a run; gives the bound per timestep and the gradient's norm."""
    trainer = Trainer(_model(hidden, data), make_bound(bound, particles), adam(Adam(learning_rate=learning_rate), 1))
    state, sequences = trainer.start(), _batch(batch, steps, data)

    def call(index: int) -> jax.Array:
        nonlocal state
        state, metrics = trainer(state, [sequences], jax.random.key(index), 0)
        return jnp.stack([metrics["bound"], metrics["gradient_norm"]])

    jax.block_until_ready(call(0))  # compiles
    return Task(call, all_threads())


def compiled_step(batch: int, particles: int, hidden: int, steps: int, bound: str) -> Task:
    """The same step compiled ahead; the facts are the times of tracing and compiling and the bytes it works in."""
    trainer = Trainer(_model(hidden), make_bound(bound, particles), adam(Adam(), 1))
    rate = jnp.float32(LEARNING_RATE)
    state, data = trainer.start(), _batch(batch, steps)
    started = time.perf_counter()
    lowered = trainer._whole_step.lower(state, data, jax.random.key(0), rate)
    traced = time.perf_counter()
    program = lowered.compile()
    compiled = time.perf_counter()
    memory = program.memory_analysis()
    facts = {"trace": traced - started, "compile": compiled - traced, "bytes": int(memory.temp_size_in_bytes)}

    def call(index: int) -> jax.Array:
        nonlocal state
        state, metrics = program(state, data, jax.random.key(index), rate)
        return metrics["bound"]

    return Task(call, all_threads(), facts)


def evaluation(batch: int, particles: int, hidden: int, steps: int) -> Task:
    """FIVO's bound without gradient; gives its mean per timestep."""
    model, data = _model(hidden), _batch(batch, steps)
    bound = FIVO(particles)
    run = jax.jit(lambda model, data, key: jnp.mean(bound(model, data, key=key).log_evidence / data.lengths))
    run(model, data, jax.random.key(0)).block_until_ready()  # compiles
    return Task(lambda index: run(model, data, jax.random.key(index)).block_until_ready(), all_threads())


def export(hidden: int, path: str, data: str = "music") -> Task:
    """Writes the initial parameters where the peers read them."""
    np.savez(Path(path), **vrnn_arrays(_model(hidden, data)))
    return Task(lambda index: 0.0, "1")


def vrnn_arrays(model: Any) -> dict[str, np.ndarray]:
    """A VRNN's parameters under plain names: one matrix per layer, its inputs in the order that the names say.

    `lstm` reads [phi_x, phi_z, h], `proposal` [h, phi_x], `emission` [phi_z, h]; gates are input, candidate, forget
    (without its fixed bias of 1), output.
    """
    networks = {
        "phi_x": model.data_encoder.network,
        "phi_z": model.latent_encoder,
        "prior": model.prior_network,
        "proposal": model.proposal_network,
        "emission": model.emission_network,
    }
    layers: dict[str, Any] = {"lstm": model.recurrence.gates}
    for name, network in networks.items():
        layers |= _layers(name, network)
    arrays = {"mean": model.output.mean.value}
    for name, layer in layers.items():
        arrays[f"{name}.weight"] = np.concatenate([np.asarray(weight) for weight in layer.weights])
        arrays[f"{name}.bias"] = np.asarray(layer.bias)
    return arrays


def _layers(name: str, network: Any) -> dict[str, Any]:
    return {f"{name}.hidden": network.hidden, f"{name}.output": network.output}


def make_bound(name: str, particles: int) -> Bound:
    """A bound by name."""
    return {"fivo": FIVO, "iwae": IWAE, "elbo": ELBO}[name](particles)


def _model(hidden: int, data: str = "music") -> VRNN:
    emission = BernoulliEmission if data == "music" else NormalEmission
    return VRNN(emission(train_mean(data)), hidden, key=jax.random.key(0))


def _batch(batch: int, steps: int, data: str = "music") -> fivo.Batch:
    return fivo.Batch(jnp.asarray(observations(data, batch, steps)), jnp.full((batch,), steps, jnp.int32))
