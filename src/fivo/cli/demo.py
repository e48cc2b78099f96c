"""`fivo demo`: the main job in five minutes, with nothing to download."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from fivo._run import Run
    from fivo.data import Dataset
    from fivo.runs import Score

BOUNDS = ("elbo", "iwae", "fivo")
PARTICLES = 32
LENGTH = 64


def demo(
    what: Literal["music", "tables"] = "music", *, out: Path | None = None, steps: int | None = None, seed: int = 0
) -> None:
    """Show the main job in minutes, with nothing to download.

    `music` trains the same VRNN on Bach's chorales with the ELBO, IWAE and FIVO at equal cost, and samples a piece of
    music. `tables` fits a table of hourly electricity, forecasts it, fills its gaps and raises alarms.

    Parameters
    ----------
    what
        music or tables.
    out
        Where to put the runs, plots, tables and music. [build/demo, or build/demo-tables]
    steps
        Optimizer steps of each run. [2000, or 1500 for tables]
    seed
        Random seed.
    """
    if what == "tables":
        from fivo.cli.demo_tables import demo_tables

        demo_tables(out or Path("build/demo-tables"), steps or 1500, seed)
        return
    _music(out or Path("build/demo"), steps or 2000, seed)


def _music(out: Path, steps: int, seed: int) -> None:
    from fivo.caching import compilation_cache
    from fivo.data import load
    from fivo.extras import require

    for package in ("matplotlib", "mido"):  # before anything is trained
        require(package, "The demonstration")
    compilation_cache()
    settings = {"hidden": 32, "particles": 4, "learning_rate": 1e-3, "steps": steps, "seed": seed}
    every = {"validate_every": max(steps // 8, 1), "log_every": max(steps // 40, 1)}
    compare(load("bach"), out, settings | every)


def compare(data: "Dataset", out: Path, settings: dict[str, Any]) -> None:
    """Train with each bound; print the test bounds, and leave a plot of the runs and a piece of music."""
    import msgspec

    from fivo.data import Music
    from fivo.files import write_atomically
    from fivo.report import plot_training, write_figure, write_midi, write_pianoroll, write_wav

    started = time.monotonic()
    runs, results = {}, {}
    for bound in BOUNDS:
        runs[bound] = _train(data, out / bound, settings | {"bound": bound})
        results[bound] = runs[bound].evaluate(particles=PARTICLES, repeats=2, seed=settings["seed"])
    metrics = {bound.upper(): run.directory.metrics() for bound, run in runs.items()}
    figure = plot_training(metrics, title=f"{data.name}: the bound that each run is trained with")
    for suffix in (".svg", ".png"):
        write_figure((out / "bounds").with_suffix(suffix), figure)
    write_atomically(out / "bounds.json", msgspec.json.format(msgspec.json.encode(results)))
    piece = runs["fivo"].sample(LENGTH, seed=settings["seed"]).astype("uint8")
    steps_per_quarter = max(1, round(data.sound.steps_per_quarter)) if isinstance(data.sound, Music) else 1
    write_midi(out / "piece.mid", piece, steps_per_quarter=steps_per_quarter)
    write_wav(out / "piece.wav", piece, steps_per_quarter=steps_per_quarter)
    write_pianoroll(out / "piece.png", piece)
    _print(data.name, results, out, time.monotonic() - started)


def _train(data: "Dataset", out: Path, settings: dict[str, Any]) -> "Run":
    from fivo._run import prepare
    from fivo.cli.training import train_with_progress

    label = f"training with {settings['bound'].upper()}"
    return train_with_progress(prepare(data=data, settings=settings), out, label=label)


def _print(name: str, results: "dict[str, Score]", out: Path, seconds: float) -> None:
    from rich.table import Table

    from fivo._terminal.output import console

    headings = ["trained with", "ELBO", f"IWAE_{PARTICLES}", f"FIVO_{PARTICLES}", "reported"]
    table = Table(*headings, title=f"{name}, test, nats per timestep (higher is better)")
    for bound, result in results.items():
        values = [f"{row.nats_per_step:.3f} ± {row.standard_error:.3f}" for row in result.bounds.values()]
        table.add_row(bound.upper(), *values, f"{result.reported.nats_per_step:.3f}")
    screen = console()
    screen.print(table)
    screen.print("reported: FIVO for the model trained with FIVO, the maximum over bounds for the others")
    screen.print(
        f"{seconds:.0f} s; plot {out / 'bounds.svg'} (.png), music {out / 'piece.wav'} (.mid, .png), runs in {out}",
        soft_wrap=True,
    )
