"""Test bounds of a trained run, as the paper reports them."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import msgspec
import numpy as np

from fivo.errors import InputError
from fivo.evaluation.run import Run
from fivo.training.build import BOUNDS, build_bound
from fivo.training.scoring import nats_per_step, score

SLOTS = 1024
"""Particles of all sequences of a chunk together: bounds the memory at any N and length."""


def evaluate(
    run: Run,
    *,
    split: str = "test",
    particles: int = 128,
    bounds: Sequence[str] = BOUNDS,
    repeats: int = 3,
    seed: int = 0,
    per_sequence: bool = False,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> dict[str, Any]:
    """Bounds of the run's best model on a split, with standard errors over repeated evaluations.

    `reported` is the paper's number: FIVO for models trained with FIVO, else the maximum over the evaluated bounds
    (which is the paper's own choice, and optimistic for those models).
    """
    _check(run, split, particles, bounds, repeats)
    key = jax.random.key(seed)
    chunk = max(1, SLOTS // particles)
    total = repeats * len(run.dataset.splits[split])
    results = {}
    for name in bounds:
        bound = build_bound(name, particles, run.config)
        draws = []
        for repeat in range(repeats):
            before = repeat * len(run.dataset.splits[split])
            draws.append(
                score(
                    run.model,
                    bound,
                    run.dataset,
                    split,
                    key=jax.random.fold_in(key, repeat),
                    chunk=chunk,
                    progress=lambda done, _, name=name, before=before: progress(name, before + done, total),
                )
            )
        rates = np.array([nats_per_step(values, run.dataset, split) for values in draws])
        results[name] = {
            "nats_per_step": float(rates.mean()),
            "standard_error": float(rates.std(ddof=1) / np.sqrt(repeats)) if repeats > 1 else None,
            "nats_per_sequence": float(np.mean(draws)),
        }
        if per_sequence:
            results[name]["sequences"] = np.mean(draws, axis=0).tolist()
    reported = (
        "fivo"
        if run.config.bound == "fivo" and "fivo" in results
        else max(results, key=lambda name: results[name]["nats_per_step"])
    )
    return {
        "split": split,
        "particles": particles,
        "bounds": results,
        "reported": {"bound": reported, "nats_per_step": results[reported]["nats_per_step"]},
        "repeats": repeats,
        "seed": seed,
        "steps": run.step,
        "config": msgspec.to_builtins(run.config),
    }


def _check(run: Run, split: str, particles: int, bounds: Sequence[str], repeats: int) -> None:
    if split not in run.dataset.splits:
        raise InputError(f"got split {split!r} where one of {', '.join(run.dataset.splits)} was expected.")
    if particles < 1 or repeats < 1:
        raise InputError(f"got particles={particles} and repeats={repeats} where at least 1 of each was expected.")
    unknown = [name for name in bounds if name not in BOUNDS]
    if unknown or not bounds:
        raise InputError(f"got bounds {', '.join(unknown) or 'none'} where some of {', '.join(BOUNDS)} were expected.")
