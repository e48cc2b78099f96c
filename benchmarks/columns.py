"""What it gains to say what columns are: one-step forecasts of a VRNN and an SRNN with an emission for each kind of
column, beside a VRNN that is told that all of them are normal.

`python -m benchmarks.columns` prints a table of means over seeds, of data and training, with standard errors of the
differences; `--json FILE` writes the scores of every seed. A few minutes a seed.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import lax
from rich.console import Console
from rich.table import Table

import fivo
from fivo.data import Dataset
from fivo.distributions import sample
from fivo.files import write_atomically
from fivo.inference import crps
from fivo.smc import FilterState

COLUMNS = ("temperature", "load", "hits", "open", "level")
KINDS = ("real", "real", "count", "binary", "category")
DISCRETE = ("hits", "open", "level")
MODELS = {"VRNN": ("vrnn", KINDS), "SRNN": ("srnn", KINDS), "VRNN, all normal": ("vrnn", ("real",) * 5)}
MISSING = 0.1
SETTINGS = {"hidden": 16, "particles": 4, "batch_size": 8, "learning_rate": 3e-3, "validate_every": 200, "patience": 0}


def series(rng: np.random.Generator) -> np.ndarray:
    """Five columns that one autoregressive activity and one switching level drive, a tenth of the cells missing."""
    steps = int(rng.integers(24, 41))
    activity, level, rows = rng.normal(), int(rng.integers(3)), []
    for _ in range(steps):
        activity = 0.9 * activity + np.sqrt(1 - 0.9**2) * rng.normal()
        level = level if rng.random() < 0.9 else int(rng.integers(3))
        shown = level if rng.random() < 0.95 else int(rng.integers(3))
        hits = rng.poisson(np.exp(-0.3 + 0.8 * activity + 0.4 * (level - 1)))
        opened = rng.random() < 1 / (1 + np.exp(-3 * activity))
        rows.append((20 + 4 * activity + rng.normal(), 2 * level - activity + 0.5 * rng.normal(), hits, opened, shown))
    x = np.array(rows, float)
    x[rng.random(x.shape) < MISSING] = np.nan
    return x


def dataset(kinds: tuple[str, ...], seed: int = 0) -> Dataset:
    """Ragged series; the numbers are the same whatever the columns are said to be."""
    rng = np.random.default_rng(seed)
    splits: dict[str, Any] = {
        name: [series(rng) for _ in range(count)] for name, count in (("train", 160), ("valid", 40), ("test", 60))
    }
    return Dataset.from_arrays(**splits, name="columns", columns=COLUMNS, kinds=list(kinds))


@eqx.filter_jit
def forecasts(model: Any, batch: fivo.Batch, key: jax.Array, num_particles: int) -> tuple[jax.Array, jax.Array]:
    """Draws of every row before it is seen [batch, time, draw, dim], and the log-mass or log-density of its cells.

    A normal is integrated over k ± 1/2: its probability of the whole number k.
    """
    pf = fivo.ParticleFilter(num_particles, "systematic")

    def one(x: jax.Array, mask: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        def step(state: FilterState, now: tuple) -> tuple[FilterState, tuple]:
            x, mask, key = now
            context = model.context_next(state.memory, None)
            choice, draws = jax.random.split(key)
            chosen = jax.random.categorical(choice, state.particles.log_weights, shape=(num_particles,))

            def row(h: Any, key: jax.Array) -> tuple[jax.Array, jax.Array]:
                first, second = jax.random.split(key)
                emission = model.emission(h, sample(model.prior(h, context), first, x.dtype), context)
                return sample(emission, second, x.dtype), log_mass(emission, x)

            states = jax.tree.map(lambda leaf: leaf[chosen], state.particles.state)
            drawn, scores = jax.vmap(row)(states, jax.random.split(draws, num_particles))
            following, _ = pf.step(model, state, x, mask=mask)
            return following, (drawn, jax.nn.logsumexp(scores, axis=0) - jnp.log(num_particles))

        first, second = jax.random.split(key)
        inputs = (x, mask, jax.random.split(second, x.shape[0]))
        return lax.scan(step, pf.init(model, key=first), inputs)[1]

    return jax.vmap(one)(batch.observations, jnp.asarray(batch.mask), jax.random.split(key, batch.lengths.shape[0]))


def log_mass(emission: Any, x: jax.Array) -> jax.Array:
    """log P(x) of every cell, where the emission is discrete, or of k ± 1/2 where it is normal."""
    if not isinstance(emission, dist.Normal):
        return emission.log_prob(x)
    loc, scale = jnp.asarray(emission.loc), jnp.asarray(emission.scale)
    above, below = (jax.scipy.stats.norm.cdf(x + d, loc, scale) for d in (0.5, -0.5))
    return jnp.log(jnp.maximum(above - below, 1e-12))


Scores = dict[str, dict[str, float]]
"""By score and column."""


def scores(run: fivo.Run, num_particles: int, seed: int) -> Scores:
    """Averages over the observed cells of the test split, by column."""
    test = run.dataset.split("test")
    batch = fivo.Batch.from_sequences(list(test), mask=list(test.masks or ()))
    drawn, mass = (np.asarray(part) for part in forecasts(run.model, batch, jax.random.key(seed + 1), num_particles))
    active = np.arange(drawn.shape[1]) < np.asarray(batch.lengths)[:, None]
    seen = np.asarray(batch.mask) & active[..., None]
    errors = crps(np.moveaxis(drawn, 2, 0).astype(float), np.asarray(batch.observations, float))
    made: Scores = {"crps": {}, "log_mass": {}}
    for place, name in enumerate(COLUMNS):
        made["crps"][name] = float(errors[..., place][seen[..., place]].mean())
        if name in DISCRETE:
            made["log_mass"][name] = float(mass[..., place][seen[..., place]].mean())
    return made


def compare(steps: int, num_particles: int, seed: int = 0, *, progress: bool = True) -> dict[str, Scores]:
    """Train and score every model."""
    results = {}
    for name, (kind, kinds) in MODELS.items():
        run = fivo.fit(kind, dataset(kinds, seed), steps=steps, seed=seed, progress=progress, **SETTINGS)
        results[name] = scores(run, num_particles, seed)
    return results


def rows(results: list[dict[str, Scores]]) -> list[list[str]]:
    """A line for each score: means over seeds, and how much a VRNN gains that is told the kinds, ± standard error."""
    typed, _, normal = MODELS
    found = []
    for score, columns in (("crps", COLUMNS), ("log_mass", DISCRETE)):
        for column in columns:
            values = {name: np.array([result[name][score][column] for result in results]) for name in MODELS}
            gain = values[typed] - values[normal] if score == "log_mass" else values[normal] - values[typed]
            error = f" ± {gain.std(ddof=1) / len(gain) ** 0.5:.3f}" if len(gain) > 1 else ""
            kind = KINDS[COLUMNS.index(column)]
            called = f"CRPS of {column} ({kind})" if score == "crps" else f"log-mass of {column}"
            found.append([called, *(f"{value.mean():.3f}" for value in values.values()), f"{gain.mean():+.3f}{error}"])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=800, help="optimizer steps of each model")
    parser.add_argument("--particles", type=int, default=200, help="particles and draws of each forecast")
    parser.add_argument("--seeds", type=int, default=4, help="how many")
    parser.add_argument("--json", type=Path, help="where to write the scores")
    given = parser.parse_args()
    results = [compare(given.steps, given.particles, seed) for seed in range(given.seeds)]
    if given.json is not None:
        write_atomically(given.json, (json.dumps({"seeds": results}, indent=1) + "\n").encode())
    table = Table("one-step forecasts", *MODELS, "gain of the first over the last")
    for row in rows(results):
        table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    main()
