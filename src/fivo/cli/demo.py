"""`fivo demo`: the main job in five minutes, with nothing to download."""

import json
import time
from pathlib import Path


def demo(*, out: Path = Path("build/demo"), steps: int = 2000, seed: int = 0) -> None:
    """Train the same VRNN on Bach's chorales with the ELBO, IWAE and FIVO at equal budgets, and listen to the result.

    Parameters
    ----------
    out
        Where runs, plot, table and music go.
    steps
        Optimiser steps of each run.
    seed
        Of everything random.
    """
    import jax
    import numpy as np

    from fivo.cli.caching import compilation_cache
    from fivo.cli.progress import TrainingProgress
    from fivo.data import load
    from fivo.evaluation import evaluate, open_run, sample
    from fivo.files import write_atomically
    from fivo.report import Line, Panel, panels, write_midi, write_pianoroll, write_wav
    from fivo.training import make_config, train

    compilation_cache()
    started = time.monotonic()
    data = load("bach")
    results, runs = {}, {}
    for bound in ("elbo", "iwae", "fivo"):
        config = make_config(
            {"dataset": "bach", "bound": bound, "particles": 4, "hidden": 32, "learning_rate": 1e-3, "steps": steps}
            | {"validate_every": max(steps // 8, 1), "log_every": max(steps // 40, 1), "seed": seed}
        )
        with TrainingProgress(steps, f"training with {bound.upper()}") as progress:
            train(config, out / bound, data, report=progress)
        runs[bound] = open_run(out / bound, dataset=data)
        results[bound] = evaluate(runs[bound], particles=32, repeats=2, seed=seed)

    rows = {bound: run.directory.metrics() for bound, run in runs.items()}
    panels(
        out / "bounds.svg",
        [
            Panel(
                [Line(b.upper(), [r["step"] for r in m], [r["bound"] for r in m]) for b, m in rows.items()],
                "Training: each run's own bound",
                "step",
                "nats per timestep",
            ),
            Panel(
                [
                    Line(
                        b.upper(),
                        [r["step"] for r in m if "validation" in r],
                        [r["validation"] for r in m if "validation" in r],
                    )
                    for b, m in rows.items()
                ],
                "Validation: each run's own bound",
                "step",
                "nats per timestep",
            ),
        ],
    )
    piece = np.asarray(sample(runs["fivo"].model, 64, key=jax.random.key(seed)), np.uint8)
    write_midi(out / "piece.mid", piece)
    write_wav(out / "piece.wav", piece)
    write_pianoroll(out / "piece.png", piece)
    write_atomically(out / "bounds.json", json.dumps(results, indent=2).encode())
    _print(results, out, time.monotonic() - started)


def _print(results: dict, out: Path, seconds: float) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(
        "trained with",
        "ELBO",
        "IWAE_32",
        "FIVO_32",
        "reported",
        title="bach, test, nats per timestep (higher is better)",
    )
    for bound, result in results.items():
        values = [f"{row['nats_per_step']:.3f} ± {row['standard_error']:.3f}" for row in result["bounds"].values()]
        table.add_row(bound.upper(), *values, f"{result['reported']['nats_per_step']:.3f}")
    console = Console()
    console.print(table)
    console.print(
        "reported: FIVO for the model trained with FIVO, the maximum over bounds for the others, as in the paper"
    )
    console.print(
        f"{seconds:.0f} s; plot {out / 'bounds.svg'}, music {out / 'piece.wav'} (.mid, .png), runs in {out}",
        soft_wrap=True,
    )
