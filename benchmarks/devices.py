"""Several devices and processes: what is exchanged, what memory it takes, and how the work scales.

`python -m benchmarks.devices exchange` compiles a training step over two simulated devices and counts the bytes of its
collectives; `particles` filters ten million particles on two simulated devices and reports memory per device; `scaling`
times training steps (64 units, N = 16, T = 250) of one process and of two processes on loopback, one thread each, with
equal work per process (weak) and equal work together (strong); `filters` times filters of equally many particles per
device on one device with one core and on two simulated devices with a core each. Both also time two processes that know
nothing of each other, which is the best that sharing the machine's caches and memory allows. Run them on an idle
machine with two cores.
"""

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import time
from typing import Any

from fivo.memory import keeping_memory

HIDDEN, PARTICLES, STEPS, SEQUENCES, DIM = 64, 16, 250, 4, 88
REPEATS = 10
FILTER_STEPS, ROUNDS = 20, 5
SIZES = {"f64": 8, "f32": 4, "s32": 4, "u32": 4, "pred": 1}
COLLECTIVES = "all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter"


def trainer_and_batch(sequences: int, mesh: Any) -> tuple[Any, Any]:
    """A training step of a VRNN on random piano rolls, and its batch."""
    import jax
    import numpy as np

    from fivo._scoring import device_batch
    from fivo.bounds import FIVO
    from fivo.models import VRNN, BernoulliEmission
    from fivo.settings import Adam
    from fivo.training import Trainer, adam

    model = VRNN(BernoulliEmission(np.full(DIM, 0.05, np.float32)), HIDDEN, key=jax.random.key(0))
    rng = np.random.default_rng(0)
    rolls = [(rng.random((STEPS, DIM)) < 0.05).astype(np.float32) for _ in range(sequences)]
    trainer = Trainer(model, FIVO(PARTICLES), adam(Adam(), 1000), mesh=mesh)
    return trainer, device_batch(rolls, np.arange(sequences), STEPS, np.float32, mesh)


def collective_bytes(program: str) -> int:
    """Bytes of the results of all collectives in a compiled program's text."""
    total = 0
    for made in re.findall(rf"= (.*?) (?:{COLLECTIVES})(?:-start)?\(", program):
        for kind, shape in re.findall(r"(\w+)\[([\d,]*)\]", made):
            count = 1
            for size in filter(None, shape.split(",")):
                count *= int(size)
            total += count * SIZES[kind]
    return total


def exchange() -> dict[str, Any]:
    """Collective bytes of a step beside the size of the parameters."""
    import jax
    import jax.numpy as jnp

    from fivo.devices import data_mesh
    from fivo.devices.mesh import replicated

    mesh = data_mesh(2)
    trainer, batch = trainer_and_batch(SEQUENCES, mesh)
    state = trainer.start()
    given = replicated(mesh, (jax.random.key(1), jnp.float32(1e-3)))
    compiled = trainer._whole_step.lower(state, batch, *given).compile()
    parameters = sum(leaf.nbytes for leaf in jax.tree.leaves(state.parameters))
    moved = collective_bytes(compiled.as_text())
    return {"parameter_bytes": parameters, "collective_bytes": moved, "ratio": moved / parameters}


def linear_gaussian(steps: int) -> tuple[Any, Any]:
    """A one-dimensional linear-Gaussian model and one sequence."""
    import numpy as np

    from fivo import Batch
    from fivo.models import LinearGaussian

    one = np.eye(1, dtype=np.float32)
    model = LinearGaussian(
        transition_matrix=0.9 * one,
        transition_covariance=0.2 * one,
        emission_matrix=one,
        emission_covariance=0.5 * one,
        initial_mean=np.zeros(1, np.float32),
        initial_covariance=one,
    )
    x = np.cumsum(np.random.default_rng(0).normal(size=(steps, 1)), axis=0).astype(np.float32) / 2
    return model, Batch.from_sequences([x])


def particles(count: int = 10_000_000) -> dict[str, Any]:
    """Memory per device of a filter on one and on two devices, and the estimates of both exchanges beside the truth."""
    import jax

    from fivo import ParticleFilter
    from fivo.devices import data_mesh
    from fivo.smc._over_devices import run_over_devices

    (model, batch), keys = linear_gaussian(5), jax.random.split(jax.random.key(0), 1)
    found: dict[str, Any] = {"particles": count, "kalman": float(model.log_evidence(batch)[0])}
    for exchange, devices in (("exact", 1), ("exact", 2), ("islands", 1), ("islands", 2)):
        pf = ParticleFilter(count, "systematic", mesh=data_mesh(devices), exchange=exchange)
        memory = run_over_devices.lower(pf, model, batch, keys, frozenset()).compile().compiled.memory_analysis()
        entry = {"temporary_megabytes_per_device": memory.temp_size_in_bytes / 1e6}
        if devices == 2:
            started = time.monotonic()
            entry["log_evidence"] = float(pf(model, batch, key=keys).log_evidence[0])
            entry["seconds_with_compilation"] = time.monotonic() - started
        found[f"{exchange} on {devices}"] = entry
    return found


def step_seconds(process: int, processes: int, port: int, sequences: int) -> float:
    """Median seconds of a step; with several processes, `sequences` are those of all of them."""
    import jax
    import numpy as np

    from fivo.devices import data_mesh, join_processes

    if processes > 1:
        join_processes(f"127.0.0.1:{port}", processes, process)
    trainer, batch = trainer_and_batch(sequences, data_mesh() if processes > 1 else None)
    state, taken = trainer.start(), []
    for step in range(REPEATS + 2):
        started = time.monotonic()
        state, metrics = trainer(state, [batch], jax.random.key(step), step)
        jax.block_until_ready(metrics)
        taken.append(time.monotonic() - started)
    return float(np.median(taken[2:]))


def scaling() -> dict[str, float]:
    """Efficiencies of two processes of one thread each."""
    alone, apart = timed(1, SEQUENCES), timed(2, SEQUENCES, apart=True)
    weak, strong = timed(2, 2 * SEQUENCES), timed(2, SEQUENCES)
    return {"one": alone, "two apart": apart, "two, twice the work": weak, "two, the same work": strong} | {
        "efficiency of two apart": alone / apart,
        "weak efficiency": alone / weak,
        "strong efficiency": alone / (2 * strong),
    }


def filter_seconds(devices: int, count: int, exchange: str) -> float:
    """Median seconds of a filter with `count` particles per device; `none` is the plain filter of one device."""
    import jax
    import numpy as np

    from fivo import ParticleFilter
    from fivo.devices import data_mesh

    model, batch = linear_gaussian(FILTER_STEPS)
    shared = {} if exchange == "none" else {"mesh": data_mesh(devices), "exchange": exchange}
    pf = ParticleFilter(devices * count, "systematic", **shared)
    run = jax.jit(lambda key: pf(model, batch, key=key).log_evidence)
    taken = []
    for repeat in range(REPEATS + 1):
        started = time.monotonic()
        jax.block_until_ready(run(jax.random.key(repeat)))
        taken.append(time.monotonic() - started)
    return float(np.median(taken[1:]))


def filters() -> dict[str, float]:
    """Seconds of filters with equally many particles per device, and two devices' as multiples of one device's.

    Medians over rounds, in which all of them take turns.
    """
    import numpy as np

    found: dict[str, float] = {}
    for count in (10_000, 100_000, 1_000_000):
        taken: dict[str, list[float]] = {}
        for _ in range(ROUNDS):
            (alone,) = filter_times(["0"], 1, count, "none")
            taken.setdefault(f"one device, {count} particles", []).append(alone)
            apart = max(filter_times(["0", "1"], 1, count, "none"))
            taken.setdefault(f"ratio, {count}, two apart", []).append(apart / alone)
            for exchange in ("exact", "islands"):
                (both,) = filter_times(["0,1"], 2, count, exchange)
                taken.setdefault(f"ratio, {count}, {exchange}", []).append(both / alone)
        found |= {name: float(np.median(values)) for name, values in taken.items()}
    return found


def filter_times(cores: list[str], devices: int, count: int, exchange: str) -> list[float]:
    """`filter_seconds` in processes that run at the same time, each with its cores and one thread per device."""
    # XLA would split every loop over all cores, though the other device computes on one of them.
    flags = (
        f"--xla_force_host_platform_device_count={devices} --xla_cpu_multi_thread_eigen=false "
        "--xla_disable_hlo_passes=cpu-parallel-task-assigner"
    )
    return at_once([(core, ["filter", devices, count, exchange]) for core in cores], flags)


def timed(processes: int, sequences: int, *, apart: bool = False) -> float:
    """Seconds of a step of so many processes, each on a core of its own; apart, they know nothing of each other."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    places = [(0, 1) if apart else (i, processes) for i in range(processes)]
    commands = [(str(core), ["step", *place, port, sequences]) for core, place in enumerate(places)]
    return max(at_once(commands, "--xla_cpu_multi_thread_eigen=false"))


def at_once(commands: list[tuple[str, list[Any]]], flags: str) -> list[float]:
    """What this module's commands print last when they run at the same time, each on its cores."""
    started = [
        subprocess.Popen(
            ["taskset", "-c", cores, sys.executable, "-m", "benchmarks.devices", *map(str, command)],
            env=keeping_memory({**os.environ, "XLA_FLAGS": flags}),
            stdout=subprocess.PIPE,
            text=True,
        )
        for cores, command in commands
    ]
    return [float(process.communicate()[0].splitlines()[-1]) for process in started]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["exchange", "particles", "scaling", "filters", "step", "filter"])
    parser.add_argument("rest", nargs="*")
    given = parser.parse_args()
    if given.what in ("exchange", "particles"):
        os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
    if given.what == "step":
        print(step_seconds(*map(int, given.rest)), flush=True)
        os._exit(0)  # as the command does: JAX aborts a process that outlives the first at its end
    elif given.what == "filter":
        print(filter_seconds(int(given.rest[0]), int(given.rest[1]), given.rest[2]))
    else:
        measures = {"exchange": exchange, "particles": particles, "scaling": scaling, "filters": filters}
        print(json.dumps(measures[given.what](), indent=1))
