"""The currencies of `fivo sweep sixo-forex` without particles: exact likelihoods, and what the best models come to.

    python benchmarks/forex_exact.py --data-dir DIR [--out results/forex-exact.json]

Q and the emission are diagonal, so that the model is 22 independent ones with three parameters each: φ, σ and the level
log β + μ / 2 (β and μ say the same). The evidence of one is a sum over a grid of z, exact to rounding but for its
spacing, and Nelder-Mead finds its maximum from two starts. No bound of a model can be above its exact evidence on
average: train bounds lie below the maximum over train, and test bounds below that model's evidence on test. The
model fitted to train is also scored as the published ones are, by a bootstrap filter with 2,048 particles.
"""

import argparse
import json
import os
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import numpy as np
from scipy.optimize import minimize

from fivo import Batch
from fivo.benchmarks import forex
from fivo.bounds import FIVO
from fivo.models import StochasticVolatility

STARTS = ((0.95, 0.2, 0.0), (0.1, 0.8, -0.2))
"""φ, σ, and by how much the level begins below that of a constant volatility."""
WIDTH, EVALUATIONS = 6.0, 160


def log_evidence(parameters: np.ndarray, x: np.ndarray, points: int = 120) -> float:
    """log p(x) of one series, with z_1 ~ N(0, σ²), z_t ~ N(φ z_t-1, σ²) and x_t ~ N(0, exp(2 level + z_t))."""
    level, free, log_scale = parameters
    persistence, scale = np.tanh(free), np.exp(log_scale)
    spread = np.sqrt(np.sum(persistence ** (2 * np.arange(len(x))))) * scale
    grid = np.linspace(-WIDTH, WIDTH, points) * spread
    transition = np.exp(-0.5 * ((grid[None, :] - persistence * grid[:, None]) / scale) ** 2)
    transition /= transition.sum(axis=1, keepdims=True)
    density = np.exp(-0.5 * (grid / scale) ** 2)
    density /= density.sum()
    total = 0.0
    for value in x:
        log_weight = -0.5 * np.log(2 * np.pi) - (level + grid / 2) - 0.5 * value**2 * np.exp(-2 * level - grid)
        highest = log_weight.max()
        weighed = density * np.exp(log_weight - highest)
        total += highest + np.log(weighed.sum())
        density = (weighed / weighed.sum()) @ transition
    return float(total)


def best(x: np.ndarray) -> np.ndarray:
    """The parameters that are likeliest for one series."""

    def loss(parameters: np.ndarray) -> float:
        return -log_evidence(parameters, x) if np.all(np.abs(parameters[1:]) < 8) else 1e6

    found = []
    for persistence, scale, shift in STARTS:
        start = np.array([np.log(x.std()) + shift, np.arctanh(persistence), np.log(scale)])
        options = {"maxfev": EVALUATIONS, "xatol": 1e-3, "fatol": 1e-4}
        found.append(minimize(loss, start, method="Nelder-Mead", options=options))
    return min(found, key=lambda result: result.fun).x


def bootstrap(parameters: list[np.ndarray], x: np.ndarray, repeats: int = 64) -> tuple[float, float]:
    """The published kind of score, of the exact fits: its mean over filters with 2,048 particles, and its error."""
    level, free, log_scale = np.array(parameters).T
    model = StochasticVolatility(
        mean=np.zeros_like(level),
        persistence=np.tanh(free),
        scale=np.exp(log_scale),
        emission_scale=np.exp(level),
        stationary=False,
    )
    batch = Batch.from_sequences([x.astype(np.float32)] * repeats)
    values = np.asarray(FIVO(forex.PARTICLES)(model, batch, key=jax.random.key(0)).log_evidence)
    return round(float(values.mean()), 1), round(float(values.std() / repeats**0.5), 1)


def main() -> None:
    """Fit every currency to train and to test, print the sums, and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    data = forex.data(options.data_dir)
    train, longer = (np.asarray(data.split(split)[0], float) for split in ("train", "test"))
    series = {"train": train, "test": longer[1:]}
    names = [column.name for column in data.columns]
    rows, found = [], []
    for fitted in ("train", "test"):
        for place, name in enumerate(names):
            parameters = best(series[fitted][:, place])
            found += [parameters] if fitted == "train" else []
            scores = {split: log_evidence(parameters, x[:, place]) for split, x in series.items()}
            finer = log_evidence(parameters, series["test"][:, place], points=800)
            scores |= {
                "test_on_a_finer_grid": finer,
                "test_from_a_month_earlier": log_evidence(parameters, longer[:, place]),
            }
            rows.append({"fitted_to": fitted, "currency": name, **scores})
    sums = {
        fitted: {
            split: round(sum(row[split] for row in rows if row["fitted_to"] == fitted), 2)
            for split in ("train", "test", "test_on_a_finer_grid", "test_from_a_month_earlier")
        }
        for fitted in ("train", "test")
    }
    for fitted, values in sums.items():
        print(f"fitted to {fitted}: " + ", ".join(f"{split} {value:.2f}" for split, value in values.items()))
    filtered = {"test": bootstrap(found, series["test"]), "test_from_a_month_earlier": bootstrap(found, longer)}
    for split, (mean, error) in filtered.items():
        print(f"bootstrap filter of the model fitted to train, {split}: {mean:.1f} ± {error:.1f}")
    if options.out is not None:
        content = {"command": "python benchmarks/forex_exact.py --data-dir DIR", "sums": sums, "bootstrap": filtered}
        options.out.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
