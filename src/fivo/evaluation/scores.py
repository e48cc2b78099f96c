"""Test bounds of a trained run, as the paper reports them."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import msgspec
import numpy as np
from jaxtyping import Float

from fivo.data import SPLITS
from fivo.errors import InputError
from fivo.evaluation.run import Run
from fivo.resampling import bound_lost, get_scheme
from fivo.training.build import BOUNDS, build_bound
from fivo.training.scoring import nats_per_step, score, scoring_plan


def evaluate(
    run: Run,
    *,
    split: str = "test",
    particles: int = 128,
    bounds: Sequence[str] = BOUNDS,
    repeats: int = 3,
    seed: int = 0,
    batch_size: int | None = None,
    resampling: str | None = None,
    per_sequence: bool = False,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> dict[str, Any]:
    """Bounds of the run's best model on a split, with standard errors over repeated evaluations.

    `reported` is the paper's number: FIVO for models trained with FIVO, else the maximum over the evaluated bounds
    (which is the paper's own choice, and optimistic for those models). `batch_size` bounds the sequences that are
    scored at once, and changes no estimate. `resampling` is that of FIVO, by default the run's own. Waveforms are
    scored as they were standardised; their bounds also have `raw_nats_per_sequence`, those of the samples before that.
    """
    _check(split, particles, bounds, repeats, batch_size)
    resampling = run.config.resampling if resampling is None else resampling
    if "fivo" in bounds:
        _check_resampling(resampling)
    sequences, lengths = run.dataset.split(split), run.dataset.lengths(split)
    plan = scoring_plan(lengths, particles, passes=repeats, batch_size=batch_size)
    results = {}
    for name in bounds:
        bound = build_bound(name, particles, run.config, resampling=resampling)
        draws = np.zeros((repeats, len(sequences)))
        for repeat in range(repeats):
            key = jax.random.fold_in(jax.random.key(seed), repeat)

            def advance(done: int, name: str = name, before: int = repeat * len(sequences)) -> None:
                progress(name, before + done, repeats * len(sequences))

            draws[repeat] = score(run.model, bound, sequences, plan, key=key, progress=advance)
        _check_finite(draws, name, split)
        results[name] = _summary(draws, run.dataset.scored_lengths(split))
        if run.dataset.is_scaled:
            offset = float(run.dataset.raw_data_offsets(split).mean())
            results[name]["raw_nats_per_sequence"] = results[name]["nats_per_sequence"] + offset
        if per_sequence:
            results[name]["sequences"] = draws.mean(axis=0).tolist()
    reported = _reported(run.config.bound, results)
    return {
        "split": split,
        "particles": particles,
        "bounds": results,
        "reported": {"bound": reported, "nats_per_step": results[reported]["nats_per_step"]},
        "mean_length": float(lengths.mean()),
        "dataset_fingerprint": run.dataset.fingerprint,
        "repeats": repeats,
        "seed": seed,
        "resampling": resampling,
        "steps": run.step,
        "config": msgspec.to_builtins(run.config),
    }


def _summary(draws: Float[np.ndarray, "repeat sequence"], lengths: np.ndarray) -> dict[str, Any]:
    """Means over the repeats; the standard error is unknown after a single one."""
    repeats = len(draws)
    rates = np.array([nats_per_step(values, lengths) for values in draws])
    return {
        "nats_per_step": float(rates.mean()),
        "standard_error": float(rates.std(ddof=1) / np.sqrt(repeats)) if repeats > 1 else None,
        "nats_per_sequence": float(draws.mean()),
    }


def _reported(trained_with: str, results: dict[str, dict[str, Any]]) -> str:
    if trained_with == "fivo" and "fivo" in results:
        return "fivo"
    return max(results, key=lambda name: results[name]["nats_per_step"])


def _check(split: str, particles: int, bounds: Sequence[str], repeats: int, batch_size: int | None) -> None:
    if split not in SPLITS:
        raise InputError(f"got split {split!r} where one of {', '.join(SPLITS)} was expected.")
    counts = {"particles": particles, "repeats": repeats, "batch size": 1 if batch_size is None else batch_size}
    for name, count in counts.items():
        if count < 1:
            raise InputError(f"got {name} {count} where at least 1 was expected.")
    unknown = [name for name in bounds if name not in BOUNDS]
    if unknown or not bounds:
        raise InputError(f"got bounds {', '.join(unknown) or 'none'} where some of {', '.join(BOUNDS)} were expected.")


def _check_resampling(resampling: str) -> None:
    lost = bound_lost(get_scheme(resampling))
    if lost is not None:
        raise InputError(
            f"FIVO with {resampling} resampling is no lower bound of the log-likelihood, as {lost}; evaluate with "
            "--resampling multinomial, which is one for the same model."
        )


def _check_finite(draws: Float[np.ndarray, "repeat sequence"], name: str, split: str) -> None:
    bad = ~np.isfinite(draws).all(axis=0)
    if bad.any():
        raise InputError(
            f"the {name.upper()} of {split} sequence {int(np.argmax(bad))} is not finite: the model holds it for "
            "impossible; evaluate an earlier or another run."
        )
