"""The Gaussian drift diffusion: FIVO and SIXO learn drift, proposal and twist from one observation per series.

    python benchmarks/sixo_drift.py [--steps 3000] [--out results/sixo-drift.json]

The exact answers stand beside every figure. The setting is that of Lawson et al. (2022): T = 10, 1,000 series of drift
1, N = 10, batches of 32; bounds are computed with 128 particles. Their Adam has a rate of 1e-3, ours one of 1e-2 that
falls along a cosine, with gradients clipped to a norm of 10, which takes fewer steps. Twists that follow the score of
the ancestors are resampled at every step: when a criterion resamples depends on the twist too, and has no score.
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
from fivo.gradients import get_gradient
from fivo.models import DriftDiffusion, DriftTwist, SequenceModel, Twisted
from fivo.resampling import Always
from fivo.settings import Adam
from fivo.training import Trainer, Update, adam, density_ratio

NUM_STEPS, NUM_SERIES, DRIFT, BATCH, PARTICLES, EVALUATED = 10, 1000, 1.0, 32, 10, 128
PUBLISHED = "Lawson et al. (2022): SIXO recovers the drift and closes the gap, FIVO does neither"


def objectives(optimizer: optax.GradientTransformation) -> dict[str, tuple[Bound, tuple[Update, ...]]]:
    """What is compared: a bound to ascend, and what trains the twist beside it."""
    score = get_gradient("resampling-score", "particles")
    return {
        "FIVO": (FIVO(PARTICLES), ()),
        "FIVO, resampling score": (FIVO(PARTICLES, gradient=score), ()),
        "SIXO-u": (SIXO(PARTICLES), ()),
        "SIXO-u, resampling score": (SIXO(PARTICLES, criterion=Always(), gradient=score), ()),
        "SIXO-DRE": (SIXO(PARTICLES), (density_ratio(optimizer),)),
    }


def learn(
    model: SequenceModel, x: jax.Array, bound: Bound, updates: tuple[Update, ...], *, steps: int, seed: int
) -> SequenceModel:
    """The model after training on observations x [series]."""
    schedule = Adam(learning_rate=1e-2, schedule="cosine", clip=10.0)
    trainer = Trainer(model, bound, adam(schedule, steps), updates=updates)
    state, key, rng = trainer.start(), jax.random.key(seed), np.random.default_rng(seed)
    data = model.batch(x)  # pyright: ignore[reportAttributeAccessIssue]
    for step in range(steps):
        chosen = rng.choice(len(x), BATCH, replace=False)
        batch = jax.tree.map(lambda leaf, chosen=chosen: leaf[chosen], data)
        state, _ = trainer(state, [batch], jax.random.fold_in(key, step), step)
    return trainer.model(state)


def figures(model: SequenceModel, x: jax.Array, bound: Bound) -> dict[str, float]:
    """The learned drift, the bound and the exact evidence of the learned model and of the best drift, per series."""
    batch = model.batch(x)  # pyright: ignore[reportAttributeAccessIssue]
    kind = SIXO if isinstance(bound, SIXO) else FIVO
    many = jnp.repeat(jax.random.split(jax.random.key(7), 4), 1)
    found = eqx.filter_jit(lambda m, k: kind(EVALUATED)(m, batch, key=k).log_evidence)
    values = np.stack([np.asarray(found(model, key), np.float64) for key in many])
    best = DriftDiffusion(NUM_STEPS, jnp.mean(x) / (NUM_STEPS + 1))
    return {
        "drift": float(model.drift),  # pyright: ignore[reportAttributeAccessIssue]
        "bound": float(values.mean()),
        "standard_error": float(values.mean(axis=1).std(ddof=1) / np.sqrt(len(values))),
        "evidence": float(jnp.mean(model.log_evidence(batch))),  # pyright: ignore[reportAttributeAccessIssue]
        "best_drift": float(best.drift),
        "best_evidence": float(jnp.mean(best.log_evidence(batch))),
    }


def main() -> None:
    """Train every objective, print a table, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", default="", help="names of objectives, separated by semicolons")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    true = DriftDiffusion(NUM_STEPS, DRIFT)
    noise = jax.random.normal(jax.random.key(0), (NUM_SERIES,))
    x = (NUM_STEPS + 1) * true.drift + jnp.sqrt(NUM_STEPS + 1.0) * noise
    rows = []
    print(f"{'objective':26s} seed     drift     bound  evidence      best       gap  seconds")
    for name, (bound, updates) in objectives(optax.adam(optax.cosine_decay_schedule(3e-2, options.steps))).items():
        if options.only and name not in options.only.split(";"):
            continue
        for seed in range(options.seeds):
            model = Twisted(DriftDiffusion(NUM_STEPS, 0.0, proposal="learned"), DriftTwist(NUM_STEPS))
            started = time.monotonic()
            row = figures(learn(model, x, bound, updates, steps=options.steps, seed=seed), x, bound)
            row |= {"objective": name, "seed": seed, "gap": row["best_evidence"] - row["bound"]}
            row["seconds"] = round(time.monotonic() - started, 1)
            rows.append(row)
            columns = ("drift", "bound", "evidence", "best_evidence", "gap")
            shown = " ".join(f"{row[column]:9.4f}" for column in columns)
            print(f"{name:26s} {seed:4d} {shown} {row['seconds']:8.1f}", flush=True)
    if options.out is not None:
        setting = {
            "steps": options.steps,
            "num_steps": NUM_STEPS,
            "series": NUM_SERIES,
            "drift": DRIFT,
            "batch": BATCH,
            "particles": PARTICLES,
            "evaluated_with": EVALUATED,
        }
        command = f"python benchmarks/sixo_drift.py --steps {options.steps} --seeds {options.seeds}"
        content = {"command": command, "published": PUBLISHED, "setting": setting, "rows": rows}
        options.out.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
