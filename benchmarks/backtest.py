"""Forecasts of real series: our models beside seasonal-naive and the best of statsmodels, on the same windows.

`python benchmarks/backtest.py [--only NAME] [--models vrnn,...] [--json results/backtest.json]` fits every model to the
training rows of each dataset and scores its forecasts of the test rows with `fivo.inference.backtest`. Parameters stay
as fitted for all of them; earlier rows are context. statsmodels' is the best of ETS and unobserved components, each
column by itself, chosen by AIC per row of its likelihood on the training rows (diffuse first rows have none). About
twenty minutes on one core. Exchange rates are found through FIVO_FOREX, a file of tab-separated monthly rates.

With `--choose`, the test rows are dropped before anything else, and what is left is split in the same proportions: what
defaults are chosen by. Neither the models nor who chooses between them sees a test row.
"""

import argparse
import json
import os
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from statsmodels import datasets
from statsmodels.tsa.exponential_smoothing.ets import ETSModel
from statsmodels.tsa.statespace.structural import UnobservedComponents

import fivo
from fivo._terminal.progress import Bar
from fivo.data import Dataset
from fivo.errors import InputError
from fivo.files import write_atomically
from fivo.inference import Forecasts, ModelForecaster, SeasonalNaive, Windows, backtest, guess_season, make_windows
from fivo.inference.series import SeriesModel

WINDOWS, SAMPLES = 10, 400
FRACTIONS = {"train": 0.7, "valid": 0.1, "test": 0.2}
RECURRENT = {
    "steps": 400,
    "validate_every": 50,
    "log_every": 50,
    "patience": 3,
    "learning_rate": 3e-3,
    "window": 60,
    "clip": 1.0,
}
OURS: dict[str, dict[str, Any]] = {
    "linear-gaussian": {},
    "vrnn": {"hidden": 16, **RECURRENT},
    "dmm": {"hidden": 16, **RECURRENT},
}
MODELS = (*OURS, "seasonal-naive", "statsmodels")


@dataclass(frozen=True)
class Source:
    """A table, how to read it, and how far to forecast it."""

    table: Callable[[], pl.DataFrame]
    reading: dict[str, Any]
    horizon: int


def months(start: str, count: int, step: int = 1) -> np.ndarray:
    """First days of months."""
    return (np.datetime64(start, "M") + step * np.arange(count)).astype("datetime64[D]")


def co2() -> pl.DataFrame:
    """Carbon dioxide over Mauna Loa, monthly means of weekly values; some are missing."""
    found = datasets.co2.load_pandas().data["co2"].resample("MS").mean()
    values = pl.Series(found.to_numpy()).fill_nan(None)
    return pl.DataFrame({"time": found.index.values.astype("datetime64[D]"), "co2": values})


def elnino() -> pl.DataFrame:
    """Sea surface temperatures, monthly."""
    values = datasets.elnino.load_pandas().data.iloc[:, 1:].to_numpy().reshape(-1)
    return pl.DataFrame({"time": months("1950-01", len(values)), "temperature": values})


def sunspots() -> pl.DataFrame:
    """Sunspot numbers, yearly."""
    found = datasets.sunspots.load_pandas().data
    return pl.DataFrame({"year": found["YEAR"].to_numpy().astype(int), "spots": found["SUNACTIVITY"].to_numpy()})


def macrodata() -> pl.DataFrame:
    """Economy of the United States, quarterly: 100 log of output and consumption, and three rates."""
    found = datasets.macrodata.load_pandas().data
    values = {"output": 100 * np.log(found["realgdp"]), "consumption": 100 * np.log(found["realcons"])}
    rates = {"unemployment": found["unemp"], "inflation": found["infl"], "bills": found["tbilrate"]}
    columns = {name: column.to_numpy() for name, column in (values | rates).items()}
    return pl.DataFrame({"time": months("1959-01", len(found), 3), **columns})


FOREX = "FIVO_FOREX"
CURRENCIES = ["EXCAUS", "EXJPUS", "EXSZUS", "EXALUS", "EXUKUS", "EXEUUS"]


def forex() -> pl.DataFrame:
    """100 log of exchange rates of six currencies to the dollar, monthly."""
    found = pl.read_csv(os.environ[FOREX], separator="\t").select(CURRENCIES)
    return found.select(pl.all().log() * 100).with_columns(time=pl.Series(months("2007-09", found.height)))


SOURCES = {
    "co2": Source(co2, {"time": "time"}, 12),
    "elnino": Source(elnino, {"time": "time"}, 12),
    "sunspots": Source(sunspots, {"time": "year"}, 8),
    "macrodata": Source(macrodata, {"time": "time"}, 4),
    "forex": Source(forex, {"time": "time"}, 6),
}


class Statsmodels:
    """ETS or unobserved components for each column, the best by AIC on the rows that models are trained with."""

    def __init__(self, dataset: Dataset, season: int, progress: Callable[[], None]) -> None:
        self.chosen: list[tuple[str, Callable[[np.ndarray], Any], np.ndarray, float]] = []
        train = dataset.splits["train"]
        rows = np.where(train.masks[0], train[0], np.nan) if train.masks is not None else train[0]
        for column in np.asarray(rows, np.float64).T:
            found = []
            for name, make in self._candidates(season, np.isnan(column).any()):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        fitted = make(column).fit(disp=False, maxiter=200)
                    except (ValueError, np.linalg.LinAlgError):
                        continue
                if np.isfinite(fitted.aic):
                    variance = float(np.nanmean(np.square(fitted.resid)))
                    seen = (~np.isnan(column)).sum() - getattr(fitted, "loglikelihood_burn", 0)
                    found.append((float(fitted.aic) / seen, name, make, np.asarray(fitted.params), variance))
                progress()
            self.chosen.append(min(found, key=lambda part: part[0])[1:])

    @staticmethod
    def _candidates(season: int, missing: bool) -> list[tuple[str, Callable[[np.ndarray], Any]]]:
        trends: list[Any] = [(None, False), ("add", False), ("add", True)]
        seasonal = [None, "add"] if season > 1 else [None]
        found: list[tuple[str, Callable[[np.ndarray], Any]]] = []
        for (trend, damped), part in product(trends, seasonal):
            options = {"trend": trend, "damped_trend": damped, "seasonal": part}
            options |= {"seasonal_periods": season} if part else {}
            called = f"ETS(A,{'Ad' if damped else 'A' if trend else 'N'},{'A' if part else 'N'})"
            if not missing:  # ETSModel takes no missing values
                found.append((called, lambda y, o=options: ETSModel(y, **o)))
        levels = ("local level", "local linear trend", "smooth trend", "fixed intercept")
        extras: list[tuple[str, dict[str, Any]]] = [("", {"irregular": True})]
        if season == 1:
            extras.append((", cycle", {"cycle": True, "stochastic_cycle": True, "damped_cycle": True}))
        for level, (called, more) in product(levels, extras):
            options = {"level": level, **more}
            if level == "fixed intercept" and not called:
                called, options = ", AR", {"level": level, "autoregressive": 1}
            options |= {"seasonal": season} if season > 1 else {}
            name = f"UC({level}{', seasonal' if season > 1 else ''}{called})"
            found.append((name, lambda y, o=options: UnobservedComponents(y, **o)))
        return found

    def __call__(self, windows: Windows) -> Forecasts:
        """Draws of each column, and the density of what happened; columns are independent of each other."""
        past, horizon, rng = windows.past, windows.horizon, np.random.default_rng(0)
        samples = np.empty((len(windows.places), SAMPLES, horizon, len(self.chosen)))
        density = windows.offsets.copy()
        through = windows.through
        for index in range(len(windows.places)):
            for place, (_, make, params, variance) in enumerate(self.chosen):
                seen = [s[index][:, place].astype(np.float64) for s in (past, through)]
                for rows, split in zip(seen, (past, through), strict=True):
                    if split.masks is not None:
                        rows[~split.masks[index][:, place]] = np.nan
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    smoothed = make(seen[0]).smooth(params)
                    draws = smoothed.simulate(horizon, anchor="end", repetitions=SAMPLES, rng=rng)
                    after = make(seen[1]).smooth(params)
                samples[index, :, :, place] = np.reshape(draws, (horizon, SAMPLES)).T
                density[index] += _log_density(smoothed, after, horizon, variance)
        return Forecasts(windows.restored(samples), density)


def _log_density(past: Any, through: Any, horizon: int, variance: float) -> float:
    """log p(window | past); that of ETS by its one-step errors, as its own likelihood fits a variance to the window."""
    if isinstance(through.model, ETSModel):
        errors = np.asarray(through.resid)[-horizon:]
        return float(-0.5 * np.sum(np.log(2 * np.pi * variance) + errors**2 / variance))
    return float(through.llf - past.llf)


def recurrent_options(model: str) -> dict[str, Any]:
    """What `fit` is told for a model; pieces of training series belong to the dataset."""
    return {name: value for name, value in OURS[model].items() if name != "window"}


def benchmark(
    name: str, models: list[str], out: Path, note: Callable[[str], None], *, choose: bool = False
) -> dict[str, Any]:
    """The scores of some models on a dataset."""
    source = SOURCES[name]
    table = source.table()
    if choose:
        table = table.head(round(table.height * (1 - FRACTIONS["test"])))
    dataset = Dataset.from_table(table, fractions=FRACTIONS, name=name, **source.reading)
    season = guess_season(dataset.table)  # pyright: ignore[reportArgumentType]
    forecasters: dict[str, Any] = {}
    verdicts: dict[str, list[str]] = {}
    for model in (model for model in OURS if model in models):
        window = OURS[model].get("window")  # the recurrent ones learn faster from pieces
        cut = Dataset.from_table(table, fractions=FRACTIONS, name=name, window=window, **source.reading)
        note(f"{name}: {model}")
        run = fivo.fit(model, cut, out=out / name / model, progress=False, **recurrent_options(model))
        forecasters[model] = ModelForecaster(SeriesModel(run.model), SAMPLES)
        if model != "linear-gaussian":
            note(f"{name}: diagnosing {model}")
            try:
                verdicts[model] = run.diagnose(num_sequences=1, repeats=4, particles=[4, 16]).verdict.sentences
            except InputError as refused:
                verdicts[model] = [str(refused)]
    if "seasonal-naive" in models:
        forecasters["seasonal-naive"] = SeasonalNaive(season, SAMPLES)
    chosen = {}
    if "statsmodels" in models:
        peers = Statsmodels(dataset, season, lambda: note(f"{name}: statsmodels"))
        forecasters["statsmodels"] = peers
        chosen = {column.name: called for column, (called, *_) in zip(dataset.columns, peers.chosen, strict=True)}
    held_out = dataset.split("test")
    count = min(WINDOWS, int(held_out.scored_lengths.min()) - source.horizon + 1)
    windows = make_windows(dataset.table, held_out, count, source.horizon)  # pyright: ignore[reportArgumentType]
    scores, _ = backtest(windows, forecasters, progress=lambda what, done, total: note(f"{name}: {what}"))
    return {
        "horizon": source.horizon,
        "season": season,
        "rows": {part: rows for part, (_, rows) in dataset.counts.items()},
        "columns": len(dataset.columns),
        "statsmodels": chosen,
        "diagnosis": verdicts,
        "scores": {model: _figures(found) for model, found in scores.items()},
    }


def _figures(found: Any) -> dict[str, float | None]:
    names = ("crps", "energy", "log_score", "mae", "rmse", "coverage80", "coverage95")
    return {name: None if getattr(found, name) is None else float(f"{getattr(found, name):.4g}") for name in names}


def main() -> None:
    """Score all datasets, or one, and write the figures, beside those of other datasets and models that are there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=SOURCES)
    parser.add_argument("--choose", action="store_true", help="leave the test rows out, and split the rest")
    parser.add_argument("--out", type=Path, help="where to keep the runs; by default nowhere")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--models", default=",".join(MODELS), help="which models, separated by commas")
    options = parser.parse_args()
    models = options.models.split(",")
    content: dict[str, Any] = {"windows": WINDOWS, "samples": SAMPLES, "fractions": FRACTIONS, "datasets": {}}
    if options.json and options.json.exists():
        content["datasets"] = json.loads(options.json.read_text())["datasets"]
    names = [options.only] if options.only else [name for name in SOURCES if name != "forex" or FOREX in os.environ]
    with tempfile.TemporaryDirectory() as temporary, Bar("backtests") as bar:
        for done, name in enumerate(names):
            bar.update(done, total=len(names))
            found = benchmark(name, models, options.out or Path(temporary), bar.say, choose=options.choose)
            known = content["datasets"].setdefault(name, {})
            content["datasets"][name] = {key: {**known.get(key, {}), **value} if isinstance(value, dict) else value
                                         for key, value in found.items()}  # fmt: skip
            if options.json:
                write_atomically(options.json, (json.dumps(content, indent=1) + "\n").encode())
    for name, found in ((name, content["datasets"][name]) for name in names):
        print(f"\n{name}: {found['rows']}, horizon {found['horizon']}, {found['statsmodels']}")
        for model, scores in found["scores"].items():
            print(f"  {model:16}", "  ".join(f"{key} {value}" for key, value in scores.items()))


if __name__ == "__main__":
    main()
