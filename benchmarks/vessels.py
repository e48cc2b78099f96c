"""Alarms for vessels that deviate: a VRNN trained with FIVO beside a threshold on speed and heading.

    python benchmarks/vessels.py [--seed SEED] [--runs FOLDER] [--json results/vessels.json]

Adds to the file recall and precision of tracks at a false-alarm rate of 1 % per track, for one seed of the fleet and of
the training; without --seed, for seeds 0, 1 and 2. Both methods are calibrated on the same ordinary tracks, which
neither was made with. Takes about a quarter of an hour a seed; --runs are resumed.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import fivo
from fivo.data import Dataset, vessel_tracks
from fivo.files import write_atomically
from fivo.inference import Calibration

OUT = Path(__file__).parents[1] / "results" / "vessels.json"
RATE = 0.01
SEEDS = 3
TRAIN, VALID, CALIBRATE, NEW, DEVIATING = 600, 100, 500, 2000, 0.02
COUNTS = {"train": TRAIN, "valid": VALID, "calibrate": CALIBRATE}
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


def compare(seed: int, folder: Path) -> dict[str, Any]:
    """Fit on a fleet of one seed, and judge new tracks by the model and by the threshold."""
    started = time.monotonic()
    fleet = {
        name: vessel_tracks(count, deviating=0, seed=10 * seed + place).with_columns(
            split=pl.lit(name), track=name + pl.col("track")
        )
        for place, (name, count) in enumerate(COUNTS.items())
    }
    new = vessel_tracks(NEW, deviating=DEVIATING, seed=10 * seed + 9)
    data = Dataset.from_table(
        features(pl.concat(list(fleet.values()))),
        id="track", time="minute", values=VALUES, inputs=INPUTS, static=STATIC, split="split",
    )  # fmt: skip
    run = fivo.fit(
        "vrnn", data, out=folder / f"seed{seed}", bound="fivo", particles=PARTICLES, hidden=HIDDEN, steps=STEPS,
        batch_size=16, learning_rate=2e-3, schedule="cosine", validate_every=STEPS // 5, seed=seed,
    )  # fmt: skip

    def nats(table: pl.DataFrame) -> pl.DataFrame:
        found = fivo.score(run, table, repeats=1, num_particles=SCORING_PARTICLES).to_frame("series")
        return found.select("track", score="per_row").sort("track")

    model = outcome(nats(features(new)), nats(features(fleet["calibrate"])), new)
    judged, ordinary = (threshold_scores(tracks, fleet["train"]) for tracks in (new, fleet["calibrate"]))
    seconds = {"training": round(run.result.seconds), "last call": round(time.monotonic() - started)}
    return {"seed": seed, "seconds": seconds, "fivo": model, "threshold": outcome(judged, ordinary, new)}


def main() -> None:
    """Compare for the seeds that were asked for, and write what came of it beside what is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, help="one seed; by default the first three")
    parser.add_argument("--runs", type=Path, help="where to keep the runs; by default nowhere")
    parser.add_argument("--json", type=Path, default=OUT, help="where to write the figures")
    options = parser.parse_args()
    settings = {"hidden": HIDDEN, "steps": STEPS, "particles": PARTICLES, "scoring_particles": SCORING_PARTICLES}
    content = {
        "rate": RATE,
        "tracks": {**COUNTS, "new": NEW, "deviating": round(DEVIATING * NEW)},
        "settings": settings,
    }
    known = json.loads(options.json.read_text()) if options.json.exists() else {}
    same = {key: known.get(key) for key in content} == content
    seeds = {found["seed"]: found for found in (known["seeds"] if same else [])}
    with tempfile.TemporaryDirectory() as temporary:
        for seed in range(SEEDS) if options.seed is None else [options.seed]:
            seeds[seed] = compare(seed, options.runs or Path(temporary))
            content["seeds"] = [found for _, found in sorted(seeds.items())]
            write_atomically(options.json, (json.dumps(content, indent=1) + "\n").encode())
            print(json.dumps(seeds[seed]))


if __name__ == "__main__":
    main()
