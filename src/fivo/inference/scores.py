"""Bounds of a trained run on a split, as the paper reports them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Float
from msgspec import UNSET

from fivo._building import BOUNDS, bounding_resampling, build_bound
from fivo._scoring import nats_per_step, score, scoring_plan
from fivo.bounds import Bound
from fivo.data import SPLITS
from fivo.devices.mesh import checked_mesh
from fivo.errors import InputError
from fivo.inference.trained import Trained
from fivo.resampling import bound_lost, get_scheme
from fivo.runs import BoundScore, Reported, Score
from fivo.settings import FIVO, SIXO, Exact, OwnBound, flattened


def evaluate(
    run: Trained,
    *,
    split: str = "test",
    particles: int = 128,
    bounds: Sequence[str] | Mapping[str, Bound] = BOUNDS,
    repeats: int = 3,
    seed: int = 0,
    batch_size: int | None = None,
    resampling: str | None = None,
    per_sequence: bool = False,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    mesh: Mesh | None = None,
) -> Score:
    """Bounds of the run's best model on a split, with standard errors over repeated evaluations.

    Args:
        run: The run.
        split: train, valid or test.
        particles: N of the bounds that are given by name.
        bounds: Names among elbo, iwae, fivo and sixo, or bounds of your own by names of your choice. A run that was
            trained with sixo, or with the user's own objective, is also scored with that if it is available.
        repeats: Independent evaluations, for the mean and its standard error.
        seed: Random seed.
        batch_size: Sequences that are scored at once; changes no estimate.
        resampling: FIVO's, by default the run's own.
        per_sequence: Keep the estimate for every sequence.
        progress: Called with the bound's name, the sequences done and their number.
        mesh: Devices that share out the sequences, such as `fivo.devices.data_mesh()`; changes no estimate.

    Returns:
        The scores. `reported` is the paper's number: the run's own bound for models trained with FIVO (or an objective
        of the user's), else the maximum over the evaluated bounds, which is the paper's choice, and optimistic for
        those models. Scaled data is scored as it was scaled; its bounds also have `raw_nats_per_sequence`, of the data
        before that.
    """
    own, mesh = run.own_bound, checked_mesh(mesh)
    names = tuple(bounds)
    _check(split, particles, () if isinstance(bounds, Mapping) else names, repeats, batch_size)
    chosen = run.settings.bound
    scheme = (
        (chosen.resampling if isinstance(chosen, FIVO) else FIVO().resampling) if resampling is None else resampling
    )
    if not isinstance(bounds, Mapping):
        if "fivo" in names or "sixo" in names:
            _check_resampling(scheme)
        bounds = {name: build_bound(name, particles, chosen, resampling=scheme) for name in names}
        if isinstance(chosen, SIXO):
            bounds = {"sixo": build_bound("sixo", particles, chosen, resampling=scheme), **bounds}
        if isinstance(chosen, Exact):
            bounds = {"exact": build_bound("exact", particles, chosen), **bounds}
        if isinstance(chosen, OwnBound) and own is not None:
            bounds = {chosen.bound_name: own, **bounds}
    if not bounds:
        raise InputError(f"bounds must be some of {', '.join(BOUNDS)}, got none.")
    sequences, lengths = run.dataset.split(split), run.dataset.scored_lengths(split)
    plan = scoring_plan(sequences.lengths, particles, passes=repeats, batch_size=batch_size, mesh=mesh)
    results: dict[str, BoundScore] = {}
    for name, bound in bounds.items():
        draws = np.zeros((repeats, len(sequences)))
        for repeat in range(repeats):
            key = jax.random.fold_in(jax.random.key(seed), repeat)

            def advance(done: int, name: str = name, before: int = repeat * len(sequences)) -> None:
                progress(name, before + done, repeats * len(sequences))

            draws[repeat] = score(run.model, bound, sequences, plan, key=key, progress=advance, mesh=mesh)
        _check_finite(draws, name, split)
        offset = float(run.dataset.raw_data_offsets(split).mean()) if run.dataset.is_scaled else None
        results[name] = _summary(draws, lengths, offset, per_sequence)
    reported = _reported(run, results)
    return Score(
        split=split,
        particles=particles,
        bounds=results,
        reported=Reported(reported, results[reported].nats_per_step),
        mean_length=float(lengths.mean()),
        dataset_fingerprint=run.dataset.fingerprint,
        repeats=repeats,
        seed=seed,
        resampling=scheme,
        steps=run.step,
        config=flattened(run.settings),
    )


def bounding_options(run: Trained) -> dict[str, Any]:
    """Options of `evaluate` with which FIVO is a lower bound, whatever the run was trained with.

    Args:
        run: The run.

    Returns:
        The options; empty where the run's own resampling keeps the bound.
    """
    return {"resampling": bounding_resampling(run.settings)}


def _summary(
    draws: Float[np.ndarray, "repeat sequence"], lengths: np.ndarray, offset: float | None, per_sequence: bool
) -> BoundScore:
    """Means over the repeats; the standard error is unknown after a single one."""
    repeats = len(draws)
    rates = np.array([nats_per_step(values, lengths) for values in draws])
    return BoundScore(
        nats_per_step=float(rates.mean()),
        standard_error=float(rates.std(ddof=1) / np.sqrt(repeats)) if repeats > 1 else None,
        nats_per_sequence=float(draws.mean()),
        raw_nats_per_sequence=UNSET if offset is None else float(draws.mean()) + offset,
        sequences=draws.mean(axis=0).tolist() if per_sequence else UNSET,
    )


def _reported(run: Trained, results: dict[str, BoundScore]) -> str:
    chosen = run.settings.bound
    own = chosen.bound_name if isinstance(chosen, OwnBound) else chosen.kind
    if own in results and own not in ("elbo", "iwae"):
        return own
    return max(results, key=lambda name: results[name].nats_per_step)


def _check(split: str, particles: int, bounds: Sequence[str], repeats: int, batch_size: int | None) -> None:
    if split not in SPLITS:
        raise InputError(f"split must be one of {', '.join(SPLITS)}, got {split!r}.")
    counts = {"particles": particles, "repeats": repeats, "batch size": 1 if batch_size is None else batch_size}
    for name, count in counts.items():
        if count < 1:
            raise InputError(f"{name} must be at least 1, got {count}.")
    unknown = [name for name in bounds if name not in (*BOUNDS, "sixo")]
    if unknown:
        raise InputError(f"bounds must be some of {', '.join(BOUNDS)}, got {', '.join(unknown)}.")


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
            f"the {name.upper()} of {split} sequence {int(np.argmax(bad))} is not finite: the model gives it "
            "zero probability; evaluate another run."
        )
