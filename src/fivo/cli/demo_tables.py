"""`fivo demo tables`: from a table to forecasts, filled gaps and alarms, by the commands that a user would type."""

import shlex
import shutil
import time
from pathlib import Path
from typing import Any

ENERGY = Path(__file__).parents[1] / "data" / "energy"
HORIZON = 48
AFTER = 6
RATE = 0.005
HELD_OUT = 0.2
"""The share of the history that alarms are calibrated with."""


def demo_tables(out: Path, steps: int, seed: int) -> None:
    """Fit the hourly electricity of three buildings, forecast two days, fill the gaps of a week and raise alarms in it.

    Args:
        out: Where to put the tables, the run and the plots.
        steps: Optimizer steps.
        seed: Random seed.
    """
    from fivo._terminal.output import say
    from fivo.cli import main
    from fivo.extras import require

    for package in ("polars", "matplotlib"):  # before anything is trained
        require(package, "The demonstration")
    started = time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    for name in ("history.csv", "new.csv", "next.csv"):
        shutil.copyfile(ENERGY / name, out / name)
    say("Hourly electricity of three buildings (generated), five weeks to learn from and a new week to look at.")
    for words, command in commands(out, steps, seed):
        say("")
        say(f"{words}:")
        say(f"$ fivo {shlex.join(command)}")
        main(command)
    say("")
    _print(out, time.monotonic() - started)


def commands(out: Path, steps: int, seed: int) -> list[tuple[str, list[str]]]:
    """The steps, as a description and as arguments of `fivo`."""
    run, new = str(out / "run"), str(out / "new.csv")
    table = ["--id", "building", "--time", "time", "--values", "load", "--inputs", "calendar,temperature"]
    model = ["--model", "linear-gaussian", "--latents", "3", "--window", "168", "--batch-size", "8"]
    split = ["--fractions", f"train={0.9 - HELD_OUT:g},valid=0.1,calibrate={HELD_OUT:g}"]
    training = ["--steps", str(steps), "--validate-every", str(max(steps // 10, 1)), "--seed", str(seed)]
    to = lambda name, *more: ["--out", str(out / f"{name}.csv"), "--plot", str(out / f"{name}.png"), *more]  # noqa: E731
    return [
        ("What is in the table", ["data", "check", str(out / "history.csv"), *table[:4]]),
        ("Fit a model", ["fit", str(out / "history.csv"), *table, *model, *split, *training, "--out", run]),
        (
            "Forecast two days, given the calendar and the weather",
            ["forecast", run, new, "--horizon", str(HORIZON), "--inputs-from", str(out / "next.csv"), *to("forecast")],
        ),
        ("Fill the gaps", ["impute", run, new, *to("imputed")]),
        ("Raise alarms, one false one in two hundred hours", ["anomaly", run, new, "--rate", str(RATE), *to("alarms")]),
    ]


def _print(out: Path, seconds: float) -> None:
    """How the alarms fit the events that the table says were put into it."""
    import polars as pl
    from rich.table import Table

    from fivo._terminal.output import console

    hours = pl.read_csv(out / "new.csv").with_columns(alarm=pl.read_csv(out / "alarms.csv")["alarm"] == 1.0)
    # After an event, the state takes some hours to recover.
    after = pl.col("event").forward_fill(limit=AFTER).over("building").is_not_null()
    event = pl.coalesce("event", pl.when(after).then(pl.lit(f"nothing, up to {AFTER} hours after an event")))
    hours = hours.with_columns(event.fill_null("nothing"), pl.col("load").is_not_null().alias("seen"))
    table = Table("what was put into the week", "hours", "hours with an alarm", title="Alarms beside the truth")
    counts: Any = hours.filter("seen").group_by("event", maintain_order=True).agg(pl.len(), pl.col("alarm").sum())
    rows = sorted(counts.iter_rows(), key=lambda row: (row[0] == "nothing", "nothing" in row[0]))
    for event, count, alarms in rows:
        table.add_row(event, str(count), str(alarms))
    screen = console()
    screen.print(table)
    history = pl.read_csv(out / "history.csv").filter(pl.col("load").is_not_null())
    low, high = usual_alarms(rows[-1][1], round(HELD_OUT * history.height))
    screen.print(
        "An event pulls the state along, so that the return from it is a surprise too. In the other hours, "
        f"{RATE * rows[-1][1]:.0f} alarms are expected; as the threshold is an estimate, {low} to {high} are usual."
    )
    screen.print(f"{seconds:.0f} s; tables and plots in {out}", soft_wrap=True)


def usual_alarms(hours: int, ordinary: int) -> tuple[int, int]:
    """The 95 % interval of the number of false alarms in some hours, by a threshold that others were ranked for.

    The share of hours beyond the k-th strangest of n ordinary ones is Beta(k, n + 1 - k), whatever they score.

    Args:
        hours: Ordinary hours that are judged.
        ordinary: Ordinary hours that the threshold comes from.

    Returns:
        Fewest and most alarms.
    """
    from scipy.stats import betabinom

    rank = int(RATE * (ordinary + 1))
    low, high = betabinom(hours, rank, ordinary + 1 - rank).interval(0.95)
    return int(low), int(high)
