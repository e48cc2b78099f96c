"""Rows per second of a stream, one row after the other, on one core: `taskset -c 0 python benchmarks/stream.py`.

Processor time, not time by the clock, so that what else runs on the machine counts for nothing.
"""

import argparse
import json
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import jax  # noqa: E402
import numpy as np  # noqa: E402

from fivo.data import SplitRule, TableColumn, TableSchema, TimeRule  # noqa: E402
from fivo.inference import Calibration, RowStream  # noqa: E402
from fivo.models import VRNN, LinearGaussian, NormalEmission, SequenceModel  # noqa: E402

DIM, LATENTS, HIDDEN, PARTICLES = 3, 4, 32, 100


def linear_gaussian() -> SequenceModel:
    """Three values that four latents drive."""
    rng = np.random.default_rng(0)
    return LinearGaussian(
        transition_matrix=np.float32(0.9 * np.eye(LATENTS)),
        transition_covariance=np.float32(0.19 * np.eye(LATENTS)),
        emission_matrix=np.float32(rng.normal(size=(DIM, LATENTS)) / 2),
        emission_covariance=np.float32(0.5 * np.eye(DIM)),
        initial_mean=np.zeros(LATENTS, np.float32),
        initial_covariance=np.eye(LATENTS, dtype=np.float32),
        proposal="optimal",
    )


def vrnn() -> SequenceModel:
    """Three values, 32 units."""
    return VRNN(NormalEmission(np.zeros(DIM, np.float32)), HIDDEN, key=jax.random.key(0))


def rows_per_second(model: SequenceModel, rows: int, repetitions: int, calibrated: bool) -> float:
    """The best of some repetitions, over 10 series in turn; `calibrated` rows have p-values too."""
    names = [f"y{i}" for i in range(DIM)]
    schema = TableSchema(
        tuple(TableColumn(name, "real", 10.0, 2.0, mean=10.0, deviation=2.0) for name in names),
        time=TimeRule("number"),
        split=SplitRule("series"),
        id="id",
        time_column="t",
    )
    calibration = Calibration(np.linspace(0, 1, 1001)) if calibrated else None
    scorer = RowStream(model, schema, num_particles=PARTICLES, calibration=calibration)
    values = np.random.default_rng(1).normal(10.0, 2.0, size=(repetitions + 1, rows, DIM)).tolist()
    best = np.inf
    for repetition, block in enumerate(values):
        given = [
            {"id": i % 10, "t": (repetition * rows + i) // 10, **dict(zip(names, row, strict=True))}
            for i, row in enumerate(block)
        ]
        started = time.process_time()
        for row in given:
            result = scorer(row)
            result.mean, result.quantile(0.1), result.quantile(0.9)
        if repetition:  # the first compiles
            best = min(best, time.process_time() - started)
    return rows / best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--repetitions", type=int, default=3)
    chosen = parser.parse_args()
    for name, make in {"linear-gaussian": linear_gaussian, "vrnn": vrnn}.items():
        for calibrated in (False, True):
            speed = rows_per_second(make(), chosen.rows, chosen.repetitions, calibrated)
            facts = {"model": name, "particles": PARTICLES, "p_values": calibrated, "rows_per_second": round(speed)}
            print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
