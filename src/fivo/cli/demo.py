"""`fivo demo`: the main job in five minutes, with nothing to download."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fivo.data import Dataset

BOUNDS = ("elbo", "iwae", "fivo")
PARTICLES = 32
LENGTH = 64


def demo(*, out: Path = Path("build/demo"), steps: int = 2000, seed: int = 0) -> None:
    """Train the same VRNN on Bach's chorales with the ELBO, IWAE and FIVO at equal cost, and sample a piece of music.

    Parameters
    ----------
    out
        Where to put the runs, the plot, the table and the music.
    steps
        Optimizer steps of each run.
    seed
        Random seed.
    """
    from fivo.caching import compilation_cache
    from fivo.data import load

    compilation_cache()
    settings = {"hidden": 32, "particles": 4, "learning_rate": 1e-3, "steps": steps, "seed": seed}
    every = {"validate_every": max(steps // 8, 1), "log_every": max(steps // 40, 1)}
    compare(load("bach"), out, settings | every)


def compare(data: "Dataset", out: Path, settings: dict[str, Any]) -> None:
    """Train with each bound; print the test bounds, and leave a plot of the runs and a piece of music."""
    import jax

    from fivo.data import Music
    from fivo.evaluation import evaluate, open_run, sample
    from fivo.files import write_atomically
    from fivo.report import write_midi, write_pianoroll, write_wav

    started = time.monotonic()
    runs, results = {}, {}
    for bound in BOUNDS:
        _train(data, out / bound, settings | {"bound": bound})
        runs[bound] = open_run(out / bound, dataset=data)
        results[bound] = evaluate(runs[bound], particles=PARTICLES, repeats=2, seed=settings["seed"])
    _plot(out / "bounds.svg", {bound: run.directory.metrics() for bound, run in runs.items()})
    write_atomically(out / "bounds.json", json.dumps(results, indent=2).encode())
    piece = sample(runs["fivo"].model, LENGTH, key=jax.random.key(settings["seed"])).astype("uint8")
    steps_per_quarter = max(1, round(data.sound.steps_per_quarter)) if isinstance(data.sound, Music) else 1
    write_midi(out / "piece.mid", piece, steps_per_quarter=steps_per_quarter)
    write_wav(out / "piece.wav", piece, steps_per_quarter=steps_per_quarter)
    write_pianoroll(out / "piece.png", piece)
    _print(data.name, results, out, time.monotonic() - started)


def _train(data: "Dataset", out: Path, settings: dict[str, Any]) -> None:
    from fivo.cli.training import train_with_progress
    from fivo.training import make_config

    label = f"training with {settings['bound'].upper()}"
    train_with_progress(make_config({"dataset": data.name, **settings}), out, data, label=label)


def _plot(path: Path, metrics: dict[str, list[dict[str, Any]]]) -> None:
    from fivo.report import Line, Panel, panels

    def panel(title: str, field: str) -> Panel:
        lines = []
        for bound, rows in metrics.items():
            known = [row for row in rows if field in row]
            lines.append(Line(bound.upper(), [row["step"] for row in known], [row[field] for row in known]))
        return Panel(lines, title, "step", "nats per timestep")

    panels(path, [panel("Training: each run's own bound", "bound"), panel("Validation: the same", "validation")])


def _print(name: str, results: dict[str, dict[str, Any]], out: Path, seconds: float) -> None:
    from rich.table import Table

    from fivo.cli.output import console

    headings = ["trained with", "ELBO", f"IWAE_{PARTICLES}", f"FIVO_{PARTICLES}", "reported"]
    table = Table(*headings, title=f"{name}, test, nats per timestep (higher is better)")
    for bound, result in results.items():
        values = [f"{row['nats_per_step']:.3f} ± {row['standard_error']:.3f}" for row in result["bounds"].values()]
        table.add_row(bound.upper(), *values, f"{result['reported']['nats_per_step']:.3f}")
    screen = console()
    screen.print(table)
    screen.print("reported: FIVO for the model trained with FIVO, the maximum over bounds for the others")
    screen.print(
        f"{seconds:.0f} s; plot {out / 'bounds.svg'}, music {out / 'piece.wav'} (.mid, .png), runs in {out}",
        soft_wrap=True,
    )
