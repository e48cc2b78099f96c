"""`fivo compare-gradients`: training curves of several gradients (Figure 2, left, of the paper)."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fivo.data import Dataset

PARTICLES = 128


def compare_gradients(
    *,
    out: Path = Path("build/gradients"),
    dataset: str = "bach",
    gradients: str = "pathwise,resampling-score:moving-average",
    particles: int = 4,
    hidden: int = 32,
    learning_rate: float = 3e-4,
    steps: int = 5000,
    seed: int = 0,
    data_dir: Path | None = None,
) -> None:
    """Train the same VRNN with FIVO and several gradient estimators, and plot how far each gets.

    Parameters
    ----------
    out
        Where to put the runs, the plot and the table.
    dataset
        A name (see `fivo data list`) or a path.
    gradients
        Gradient estimators separated by commas, each with its baseline after a colon.
    particles
        Number of particles in training; validation uses FIVO with 128 particles.
    hidden
        Units in every network, and dimension of the latent state.
    learning_rate
        Adam's learning rate.
    steps
        Optimizer steps of each run.
    seed
        Random seed.
    data_dir
        Where to look for datasets first.
    """
    from fivo._run import dataset_setting
    from fivo.caching import compilation_cache
    from fivo.data import load
    from fivo.extras import require

    require("matplotlib", "The plot")  # before anything is trained
    compilation_cache()
    settings = {
        "dataset": dataset_setting(dataset),
        "particles": particles,
        "hidden": hidden,
        "learning_rate": learning_rate,
        "steps": steps,
        "seed": seed,
        "validation_particles": PARTICLES,
        "validate_every": max(steps // 10, 1),
        "log_every": max(steps // 50, 1),
        "patience": 0,
    }
    compare(load(dataset, data_dir=data_dir), out, [name.strip() for name in gradients.split(",")], settings)


def compare(data: "Dataset", out: Path, gradients: list[str], settings: dict[str, Any]) -> dict[str, Any]:
    """Train with each gradient; leaves runs, a plot and a table, and returns the table."""
    from fivo._run import prepare
    from fivo.cli.training import train_with_progress
    from fivo.files import write_atomically
    from fivo.report import plot_training, write_figure

    plans = {}
    for name in gradients:
        gradient, _, baseline = name.partition(":")
        chosen = settings | {"gradient": gradient, "baseline": baseline or "none"}
        plans[name] = prepare(data=data, settings=chosen)
    metrics, table = {}, {}
    for name, plan in plans.items():
        directory = out / name.replace(":", "-")
        run = train_with_progress(plan, directory, label=f"training with the {name} gradient")
        metrics[name] = run.directory.metrics()
        table[name] = {"validation": run.result.best_validation, "step": run.result.best_step}
    winner = max(table, key=lambda name: table[name]["validation"])
    comparison = {"settings": settings, "gradients": table, "best": winner}
    write_atomically(out / "comparison.json", json.dumps(comparison, indent=2).encode())
    figure = plot_training(metrics, title=f"{data.name}: FIVO; validation with {PARTICLES} particles")
    for suffix in (".svg", ".png"):
        write_figure((out / "curves").with_suffix(suffix), figure)
    _print(data.name, table, winner, out)
    return comparison


def _print(name: str, table: dict[str, dict[str, Any]], winner: str, out: Path) -> None:
    from rich.table import Table

    from fivo._terminal.output import console

    shown = Table("gradient", f"best FIVO_{PARTICLES}", "at step", title=f"{name}, validation, nats per timestep")
    for gradient, row in table.items():
        shown.add_row(gradient, f"{row['validation']:.3f}", str(row["step"]))
    screen = console()
    screen.print(shown)
    screen.print(f"best: {winner}; plot {out / 'curves.svg'} (.png), runs in {out}", soft_wrap=True)
