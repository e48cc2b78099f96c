"""Alarms for vessels that deviate: a VRNN trained with FIVO beside a threshold on speed and heading.

    python benchmarks/vessels.py [OUT]

Makes results/vessels.json (or OUT): recall and precision of tracks at a false-alarm rate of 1 % per track. Both methods
are calibrated on the same ordinary tracks, which neither was made with. Takes a few minutes.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import fivo
from fivo.data import Dataset, vessel_tracks
from fivo.inference import Calibration

OUT = Path(__file__).parents[1] / "results" / "vessels.json"
RATE = 0.01
TRAIN, VALID, CALIBRATE, NEW = 600, 100, 500, 2000
STEPS, HIDDEN, PARTICLES, SCORING_PARTICLES = 2500, 32, 4, 32
VALUES, INPUTS, STATIC = ["east", "north", "speed"], ["x", "y", "wait"], ["route", "type"]


def features(tracks: pl.DataFrame) -> pl.DataFrame:
    """Speed made good to the east and to the north in knots, and the position before it in kilometres.

    The first report of a track has no report before it, and is left out.
    """
    y = (pl.col("lat") - 55) * 111.32
    x = (pl.col("lon") - 10) * 111.32 * np.cos(np.radians(55))
    placed = tracks.with_columns(x=x, y=y)
    before = {name: pl.col(name).shift().over("track") for name in ("x", "y", "minute")}
    wait = pl.col("minute") - before["minute"]
    knots = 60 / 1.852 / wait
    return placed.with_columns(
        east=(pl.col("x") - before["x"]) * knots,
        north=(pl.col("y") - before["y"]) * knots,
        x=before["x"],
        y=before["y"],
        wait=wait,
    ).filter(pl.col("wait").is_not_null())


def threshold_scores(tracks: pl.DataFrame, usual: pl.DataFrame) -> pl.DataFrame:
    """Of every track the largest deviation of its speed or its course, in standard deviations; negative, as nats are.

    Three deviations count: of the mean speed of the track, of the speed in a report (both from what vessels of its type
    do), and of the change of course from one report to the next.

    Args:
        tracks: The tracks to score.
        usual: Tracks that say what is usual.
    """
    change = (pl.col("course") - pl.col("course").shift().over("track") + 180) % 360 - 180
    mean = pl.col("speed").mean().over("track")
    tracks, usual = (table.with_columns(turn=change.fill_null(0.0), cruise=mean) for table in (tracks, usual))
    known = usual.group_by("type").agg(
        pl.col("speed", "cruise").mean().name.suffix("_mean"), pl.col("speed", "cruise").std().name.suffix("_spread")
    )
    away = [((pl.col(name) - pl.col(f"{name}_mean")) / pl.col(f"{name}_spread")).abs() for name in ("speed", "cruise")]
    away.append((pl.col("turn") / usual["turn"].std()).abs())
    return tracks.join(known, on="type").group_by("track").agg(score=-pl.max_horizontal(*away).max()).sort("track")


def outcome(scores: pl.DataFrame, usual: pl.DataFrame, truth: pl.DataFrame) -> dict[str, Any]:
    """Recall, precision and false alarms of tracks at the rate, and recall by deviation.

    Args:
        scores: `track` and `score` of new tracks; smaller is stranger.
        usual: The same of ordinary tracks.
        truth: `track` and `deviation`.
    """
    p = Calibration(usual["score"].to_numpy()).p_values(scores["score"].to_numpy())
    found = scores.with_columns(alarm=pl.Series(p <= RATE)).join(truth.unique("track"), on="track")
    strange, ordinary = found.filter(pl.col("deviation") != ""), found.filter(pl.col("deviation") == "")
    alarms = int(found["alarm"].sum())
    by_kind = strange.group_by("deviation").agg(pl.col("alarm").mean()).sort("deviation")
    return {
        "recall": float(strange["alarm"].mean()),  # pyright: ignore[reportArgumentType]
        "precision": int(strange["alarm"].sum()) / max(alarms, 1),
        "false_alarm_rate": float(ordinary["alarm"].mean()),  # pyright: ignore[reportArgumentType]
        "alarms": alarms,
        "recall_by_deviation": dict(by_kind.iter_rows()),
    }


def main(out: Path) -> None:
    """Fit, score, and write what came of it."""
    started = time.monotonic()
    counts = {"train": TRAIN, "valid": VALID, "calibrate": CALIBRATE}
    fleet = {
        name: vessel_tracks(count, deviating=0, seed=seed).with_columns(
            split=pl.lit(name), track=name + pl.col("track")
        )
        for seed, (name, count) in enumerate(counts.items())
    }
    new = vessel_tracks(NEW, deviating=0.02, seed=9)
    known = features(pl.concat(list(fleet.values())))
    data = Dataset.from_table(
        known, id="track", time="minute", values=VALUES, inputs=INPUTS, static=STATIC, split="split"
    )
    with tempfile.TemporaryDirectory() as folder:
        run = fivo.fit(
            "vrnn", data, out=folder, bound="fivo", particles=PARTICLES, hidden=HIDDEN, steps=STEPS, batch_size=16,
            learning_rate=2e-3, schedule="cosine", validate_every=STEPS // 5,
        )  # fmt: skip
        trained = time.monotonic() - started

        def nats(table: pl.DataFrame) -> pl.DataFrame:
            found = fivo.score(run, table, repeats=1, num_particles=SCORING_PARTICLES).to_frame("series")
            return found.select("track", score="per_row").sort("track")

        usual = features(fleet["calibrate"])
        model = outcome(nats(features(new)), nats(usual), new)
    threshold = outcome(
        threshold_scores(new, fleet["train"]), threshold_scores(fleet["calibrate"], fleet["train"]), new
    )
    result = {
        "rate": RATE,
        "tracks": {**counts, "new": NEW, "deviating": new.filter(pl.col("deviation") != "")["track"].n_unique()},
        "settings": {"hidden": HIDDEN, "steps": STEPS, "particles": PARTICLES, "scoring_particles": SCORING_PARTICLES},
        "seconds": {"training": round(trained), "all": round(time.monotonic() - started)},
        "fivo": model,
        "threshold": threshold,
    }
    out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else OUT)
