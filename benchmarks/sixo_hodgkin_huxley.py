"""The Hodgkin–Huxley neuron: FIVO and SIXO learn the current from a voltage seen every 50 steps.

    python benchmarks/sixo_hodgkin_huxley.py [--steps 200] [--out results/sixo-hodgkin-huxley.json]

The model, its noise and the length (2,001 steps of 0.02 ms, 41 observations) are those of Lawson et al. (2022), and so
are bounds: nats per sequence with voltages in units of 10 mV, of a bootstrap filter with 256 particles. Updates of the
twist follow the bound's, as `fivo.training.density_ratio`.
"""

import argparse
import json
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from fivo.bounds import FIVO, SIXO, Bound
from fivo.models import HodgkinHuxley, NextObservationTwist, SequenceModel, Twisted, simulate
from fivo.settings import Adam
from fivo.training import Trainer, Update, adam, density_ratio

CURRENT, NUM_STEPS, EVERY, SERIES, TESTED, EVALUATED = 13.0, 2001, 50, 400, 20, 256
NEURON = HodgkinHuxley(CURRENT)
UNIT = 10.0
"""Millivolts in which voltages are measured where bounds are compared."""
PUBLISHED = {
    "FIVO": {"bound": -50.06, "standard_error": 0.55, "relative_error": 0.43},
    "SIXO": {"bound": -48.68, "standard_error": 0.26, "relative_error": 0.011},
    "true model": {"bound": -48.30},
}


def objective(name: str, particles: int, optimizer: optax.GradientTransformation) -> tuple[Bound, tuple[Update, ...]]:
    """A bound to ascend, and what trains the twist beside it."""
    if name == "FIVO":
        return FIVO(particles, "systematic"), ()
    if name == "FIVO, Fisher's identity":
        return FIVO(particles, "systematic", gradient="stop-gradient"), ()
    return SIXO(particles, "systematic", gradient="stop-gradient"), (density_ratio(optimizer, copies=2),)


def start(name: str, current: float) -> SequenceModel:
    """The model before training."""
    neuron = HodgkinHuxley(current, proposal="prior" if name == "FIVO" else "held")
    if not name.startswith("SIXO"):
        return neuron
    spread = ((-60.0, 0.0, -1.5, -0.5), (25.0, 1.0, 2.5, 1.5))
    return Twisted(neuron, NextObservationTwist(spread, ((-60.0,), (25.0,)), 32, longest=EVERY, key=jax.random.key(0)))


def voltages(count: int, seed: int) -> np.ndarray:
    """What is seen of simulated neurons, [count, 41]."""
    drawn = jax.jit(jax.vmap(lambda key: simulate(NEURON, NUM_STEPS, key=key).observations))
    return np.asarray(drawn(jax.random.split(jax.random.key(seed), count)))[:, ::EVERY, 0]


def learn(name: str, model: SequenceModel, x: np.ndarray, options: argparse.Namespace) -> tuple[float, list[float]]:
    """The current that is learned from voltages, and the way there."""
    schedule = optax.cosine_decay_schedule(options.twist_rate, options.steps)
    bound, updates = objective(name, options.particles, optax.adam(schedule))
    rate = Adam(learning_rate=options.rate, schedule="cosine")
    trainer = Trainer(model, bound, adam(rate, options.steps), updates=updates)
    state = trainer.start()
    way = []
    for step in range(options.steps):
        rng = np.random.default_rng([options.seed, step])
        batch = NEURON.batch(x[rng.choice(len(x), options.batch, replace=False)], EVERY)
        state, measured = trainer(state, [batch], jax.random.fold_in(jax.random.key(options.seed), step), step)
        way.append(float(trainer.model(state).bare.current))  # pyright: ignore[reportAttributeAccessIssue]
        if step % 10 == 9:
            shown = {key: round(float(value), 3) for key, value in measured.items() if key != "kl"}
            print(f"  {step + 1:5d} {way[-1]:8.3f} {shown}", flush=True)
    return way[-1], way


def bound_of(current: float, x: np.ndarray) -> tuple[float, float]:
    """The bound of the bootstrap filter per sequence, and its standard error over repeats of the filter."""
    batch = NEURON.batch(x, EVERY)
    run = eqx.filter_jit(lambda c, key: FIVO(EVALUATED)(HodgkinHuxley(c), batch, key=key).log_evidence)
    scale = x.shape[1] * np.log(UNIT)
    values = [float(jnp.mean(run(jnp.float32(current), jax.random.key(100 + k)))) + scale for k in range(4)]
    return float(np.mean(values)), float(np.std(values, ddof=1) / 2)


def main() -> None:
    """Train every objective, print a table, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--particles", type=int, default=16)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rate", type=float, default=0.3)
    parser.add_argument("--twist-rate", type=float, default=5e-3)
    parser.add_argument("--start", type=float, default=26.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="names of objectives, separated by semicolons")
    parser.add_argument("--out", type=Path, help="a file of results; rows of other objectives in it stay")
    options = parser.parse_args()
    train, test = voltages(SERIES, 0), voltages(TESTED, 1)
    names = ["FIVO", "FIVO, Fisher's identity", "SIXO-DRE", "true model"]
    for name in [name for name in names if not options.only or name in options.only.split(";")]:
        started, busy = time.monotonic(), time.process_time()
        current, way = (
            (CURRENT, []) if name == "true model" else learn(name, start(name, options.start), train, options)
        )
        row = {"objective": name, "current": current, "relative_error": abs(current / CURRENT - 1)}
        row |= {"steps": len(way), "particles": options.particles, "batch": options.batch, "start": options.start}
        row |= {"seconds": round(time.monotonic() - started, 1), "cpu_seconds": round(time.process_time() - busy, 1)}
        row["bound"], row["standard_error"] = bound_of(current, test)
        row["way"] = [round(value, 3) for value in way[:: max(1, len(way) // 20)]]
        print(row, flush=True)
        if options.out is not None:
            found = json.loads(options.out.read_text()) if options.out.exists() else {"rows": []}
            rows = [other for other in found["rows"] if other["objective"] != name] + [row]
            rows.sort(key=lambda row: names.index(row["objective"]))
            setting = {"num_steps": NUM_STEPS, "every": EVERY, "series": SERIES, "tested": TESTED}
            setting |= {"evaluated_with": EVALUATED, "current": CURRENT, "unit_mv": UNIT}
            content = {"command": "python benchmarks/sixo_hodgkin_huxley.py", "published": PUBLISHED}
            options.out.write_text(json.dumps(content | {"setting": setting, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
