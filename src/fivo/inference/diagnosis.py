"""How tight a trained model's bound is, and what to do about it."""

from collections.abc import Callable, Sequence
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import msgspec
import numpy as np
from jaxtyping import Array, Float, Int, Key

from fivo._scoring import compiler_options, device_batch, scoring_plan, weights_dtype
from fivo.batch import Batch
from fivo.bounds import sandwich
from fivo.data import SPLITS, Split, pad
from fivo.errors import InputError
from fivo.inference.trained import Trained, filter_of
from fivo.inference.verdict import judge
from fivo.models import SequenceModel, simulate
from fivo.resampling import Never
from fivo.runs import Diagnosis, DiagnosisRow, Sandwich
from fivo.settings import flattened
from fivo.smc import ParticleFilter, lineages

PARTICLES = (4, 16, 64, 256)
MOST_PARTICLES_AT_ONCE = 2**14


def diagnose(
    run: Trained,
    *,
    particles: Sequence[int] = PARTICLES,
    split: str = "test",
    num_sequences: int = 16,
    repeats: int = 8,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Diagnosis:
    """Diagnose a run on some sequences of a split, evenly chosen; everything that `fivo diagnose` shows.

    Steps that are only the context of a split are filtered and not counted.

    Args:
        run: The run.
        particles: Numbers of particles to compare.
        split: The split.
        num_sequences: How many of its sequences.
        repeats: Independent filters of every sequence.
        seed: Random seed.
        progress: Called with the parts done and their number.

    Returns:
        The diagnosis.
    """
    if split not in SPLITS:
        raise InputError(f"split must be one of {', '.join(SPLITS)}, got {split!r}.")
    available = run.dataset.split(split)
    if num_sequences < 1:
        raise InputError(f"num_sequences must be at least 1, got {num_sequences}.")
    chosen = np.unique(np.linspace(0, len(available) - 1, min(num_sequences, len(available))).astype(int))
    found = diagnose_model(
        run.model,
        available.take(chosen.tolist()),
        filter_of(run),
        particles=particles,
        repeats=repeats,
        seed=seed,
        progress=progress,
    )
    return msgspec.structs.replace(
        found, split=split, sequences=chosen.tolist(), steps=run.step, config=flattened(run.settings)
    )


def diagnose_model(
    model: SequenceModel,
    sequences: Sequence[np.ndarray],
    pf: ParticleFilter,
    *,
    particles: Sequence[int] = PARTICLES,
    repeats: int = 8,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Diagnosis:
    """Diagnose any model.

    Args:
        model: The model.
        sequences: Arrays [time, dim], or a `Split`, which also has masks, inputs and steps that are context.
        pf: The filter that it was trained with.
        particles: Numbers of particles to compare.
        repeats: Independent filters of every sequence.
        seed: Random seed.
        progress: Called with the parts done and their number.

    Returns:
        The diagnosis.
    """
    sequences = sequences if isinstance(sequences, Split) else Split(tuple(np.asarray(x) for x in sequences))
    if not particles or min(particles) < 1:
        raise InputError(f"particles must be positive integers, got {list(particles)}.")
    if repeats < 2:
        raise InputError(f"repeats must be at least 2, to estimate a variance, got {repeats}.")
    ladder = sorted({pf.num_particles, *particles})
    keys = jax.random.split(jax.random.key(seed), (len(ladder), 2))
    rows = []
    for rung, num_particles in enumerate(ladder):
        larger = ParticleFilter(num_particles, pf.resampling, pf.criterion, pf.twisted)
        around = _on_simulations(larger, model, sequences, repeats, keys[rung, 1])
        rows.append(_on_data(larger, model, sequences, repeats, keys[rung, 0], around))
        progress(rung + 1, len(ladder))
    unresampled = None
    if pf.resamples and not pf.twisted and ladder[0] > 1:
        whole = ParticleFilter(ladder[0], criterion=Never())
        unresampled = _on_data(whole, model, sequences, repeats, keys[0, 0], rows[0].sandwich)
    return Diagnosis(
        split="",
        sequences=list(range(len(sequences))),
        seed=seed,
        steps=0,
        own_particles=pf.num_particles,
        repeats=repeats,
        rows=rows,
        verdict=judge(rows, pf.num_particles, unresampled=unresampled),
        config={},
    )


def _on_data(
    pf: ParticleFilter,
    model: SequenceModel,
    sequences: Split,
    repeats: int,
    key: Key[Array, ""],
    around: Sandwich,
) -> DiagnosisRow:
    """Bound, variance and what happens over time, averaged over repeats and sequences."""
    num_particles = pf.num_particles
    lengths, counted = sequences.lengths, sequences.scored_lengths
    starts = lengths - counted
    log_evidence = np.zeros((repeats, len(sequences)))
    sums = {name: np.zeros(counted.max()) for name in ("ess", "resampled", "kl", "ancestors")}
    for repeat in range(repeats):
        sequence_keys = jax.random.split(jax.random.fold_in(key, repeat), len(sequences))
        for indices, padded_length in scoring_plan(lengths, num_particles, passes=repeats):
            batch = device_batch(sequences, indices, padded_length, weights_dtype(model))
            chosen = np.maximum(indices, 0)
            seen = _filtered()(pf, model, batch, sequence_keys[chosen], jnp.asarray(starts[chosen], jnp.int32))
            values = {name: np.asarray(array, np.float64) for name, array in seen.items()}
            for slot, index in enumerate(indices):
                if index >= 0:
                    log_evidence[repeat, index] = values["log_evidence"][slot]
                    for name, total in sums.items():
                        total[: counted[index]] += values[name][slot, starts[index] : lengths[index]]
    if not np.isfinite(log_evidence).all():
        raise InputError(
            "a sequence is impossible under this model (its estimate is not finite); diagnose another split."
        )
    steps = counted.sum()
    alive = repeats * (np.arange(counted.max()) < counted[:, None]).sum(axis=0)
    over_time = {name: total / alive for name, total in sums.items()}
    per_step = {name: float(total.sum() / (repeats * steps)) for name, total in sums.items()}
    rates = log_evidence.sum(axis=1) / steps
    relative = log_evidence - log_evidence.max(axis=0)
    ratios = np.exp(relative) / np.exp(relative).mean(axis=0)
    variances = ratios.var(axis=0, ddof=1)
    return DiagnosisRow(
        particles=num_particles,
        bound=float(rates.mean()),
        standard_error=float(rates.std(ddof=1) / np.sqrt(repeats)),
        relative_variance=float(variances.mean()),
        half_variance=float(variances.sum() / 2 / steps),
        half_log_variance=float(log_evidence.var(axis=0, ddof=1).sum() / 2 / steps),
        ess=per_step["ess"] / num_particles,
        resampled=per_step["resampled"],
        kl=per_step["kl"],
        ancestors=per_step["ancestors"] / num_particles,
        over_time={
            "ess": (over_time["ess"] / num_particles).tolist(),
            "resampled": over_time["resampled"].tolist(),
            "kl": over_time["kl"].tolist(),
            "ancestors": (over_time["ancestors"] / num_particles).tolist(),
        },
        sandwich=around,
    )


def _on_simulations(
    pf: ParticleFilter, model: SequenceModel, sequences: Split, repeats: int, key: Key[Array, ""]
) -> Sandwich:
    """The sandwich on data simulated from the model, as many and as long as the given ones in every repeat."""
    lengths = sequences.lengths
    inputs = None
    if sequences.inputs is not None:
        inputs = pad(sequences.inputs, np.arange(len(sequences)), int(lengths.max()), weights_dtype(model))[0]
    at_once = max(1, MOST_PARTICLES_AT_ONCE // pf.num_particles)
    lower, upper = np.zeros((repeats, len(sequences))), np.zeros((repeats, len(sequences)))
    for repeat in range(repeats):
        keys = jax.random.split(jax.random.fold_in(key, repeat), len(sequences))
        for start in range(0, len(sequences), at_once):
            part = slice(start, start + at_once)
            some = jnp.asarray(lengths[part], jnp.int32)
            u = None if inputs is None else jnp.asarray(inputs[part])
            bounds = _simulated()(pf, model, some, keys[part], int(lengths.max()), u)
            lower[repeat, part], upper[repeat, part] = np.asarray(bounds[0]), np.asarray(bounds[1])
    gaps = (upper - lower).sum(axis=1) / lengths.sum()
    return Sandwich(
        lower=float(lower.mean(axis=0).sum() / lengths.sum()),
        upper=float(upper.mean(axis=0).sum() / lengths.sum()),
        gap=float(gaps.mean()),
        standard_error=float(gaps.std(ddof=1) / np.sqrt(repeats)),
    )


def _filter(
    pf: ParticleFilter, model: SequenceModel, batch: Batch, keys: Key[Array, " batch"], starts: Int[Array, " batch"]
) -> dict[str, Array]:
    result = pf(model, batch, key=keys, keep=("ancestors",))
    context = jnp.arange(result.log_increments.shape[1])[None, :] < starts[:, None]
    return {
        "log_evidence": result.log_evidence - jnp.sum(jnp.where(context, result.log_increments, 0), axis=1),
        "ess": result.ess,
        "resampled": result.resampled,
        "kl": result.kl,
        "ancestors": distinct(lineages(result.record("ancestors"))),
    }


def distinct(indices: Int[Array, "batch time particle"]) -> Int[Array, "batch time"]:
    """How many different particles of each step have descendants at the last one."""
    hit = jnp.zeros(indices.shape, jnp.int32)
    return jnp.sum(jax.vmap(jax.vmap(lambda row, index: row.at[index].set(1)))(hit, indices), axis=-1)


def _simulate(
    pf: ParticleFilter,
    model: SequenceModel,
    lengths: Int[Array, " batch"],
    keys: Key[Array, " batch"],
    num_steps: int,
    inputs: Float[Array, "batch time input"] | None,
) -> tuple[Float[Array, " batch"], Float[Array, " batch"]]:
    drawn = jax.vmap(lambda key, u: simulate(model, num_steps, key=key, inputs=u))(keys, inputs)
    batch = Batch(drawn.observations, lengths, None, inputs)
    if pf.resampling == "residual":
        # It has no conditional form; both sides of the sandwich then draw independently.
        pf = ParticleFilter(pf.num_particles, criterion=pf.criterion, twisted=pf.twisted)
    bounds = sandwich(pf, model, batch, drawn.latents, key=jax.random.fold_in(keys[0], 1))
    return bounds.lower, bounds.upper


@cache
def _filtered() -> Callable[..., dict[str, Array]]:
    """Made at first use: importing a library must not choose a device."""
    return eqx.filter_jit(_filter, compiler_options=compiler_options())  # pyright: ignore[reportCallIssue]


@cache
def _simulated() -> Callable[..., tuple[Array, Array]]:
    return eqx.filter_jit(_simulate, compiler_options=compiler_options())  # pyright: ignore[reportCallIssue]
