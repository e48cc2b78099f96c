"""Where a linear-Gaussian model of data starts: levels, a slope and cycles, read from the data.

Gradient steps on the exact likelihood go far from a good start and nowhere from a bad one. The structure is that of
unobserved-components models (Harvey, Forecasting, structural time series models and the Kalman filter, 1989); training
is free to leave it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.signal import lombscargle

from fivo.batch import Batch
from fivo.models._linear_gaussian import LinearGaussian

CYCLES = 3
"""Cycles of a model whose number of latents is not given."""
OVERSAMPLING = 8
"""Frequencies that are tried for each that a series can tell apart."""
RARE = 0.01
"""Chance that the strongest frequency of white noise is taken for a cycle."""
SLOPE_NOISE = 1e-5
CYCLE_NOISES = (1e-4, 1e-2, 1e-1)
"""Variances of the noise of cycles of unit size, from clockwork to a tendency; the likelihood chooses."""
JUDGED = 8, 1000
"""Sequences and steps of each that this likelihood is of."""
RIDGE = 0.01
FADING = 0.7
"""For latents without a cycle: the share of them that remains at the next step."""


class Rows(NamedTuple):
    """All observed rows of all sequences, one after the other; entries that were not observed are NaN."""

    x: Float[np.ndarray, "row dim"]
    time: Float[np.ndarray, " row"]
    series: Float[np.ndarray, " row"]


class Cycle(NamedTuple):
    """a cos(ω t) + b sin(ω t) in every column."""

    frequency: float
    cosine: Float[np.ndarray, " dim"]
    sine: Float[np.ndarray, " dim"]


def num_structural_latents(dim: int) -> int:
    """How many latents a model starts with by default.

    Args:
        dim: Number of columns.

    Returns:
        A level for each column, a slope, and two for each of three cycles.
    """
    return dim + 1 + 2 * CYCLES


def structural_start(
    sequences: Sequence[Float[np.ndarray, "_time dim"]],
    masks: Sequence[Bool[np.ndarray, "_time dim"]] | None,
    inputs: Sequence[Float[np.ndarray, "_time input"]] | None,
    num_latents: int,
) -> LinearGaussian:
    """A linear-Gaussian model with levels that walk at random, a common slope, and cycles at the data's frequencies.

    Of its latents, the first are levels, one for each column, or for each of the leading principal components of the
    steps if there are fewer latents than columns. The next is a slope. Pairs of the others turn with the frequencies
    that are strongest in the steps, if they are stronger than those of white noise would be; what is left fades. The
    walk's variance and that of the noise are those that give the variance and first autocovariance of the steps, and
    the inputs' effects on rows and levels are those of a regression of the steps.

    Args:
        sequences: x of each sequence.
        masks: True where an entry was observed; None if all were.
        inputs: u of each sequence; None for a model without inputs.
        num_latents: Dimension of the latent state.

    Returns:
        The model, in single precision, with the best proposal that sees no future.
    """
    rows = _rows(sequences, masks)
    dim = rows.x.shape[1]
    by_level, by_row = np.zeros((dim, 0)), np.zeros((dim, 0))
    if inputs is not None:
        u = np.concatenate([np.asarray(part, np.float64) for part in inputs])
        by_level, by_row = _input_effects(rows, u)
        drift = np.concatenate([np.cumsum(part @ by_level.T, axis=0) for part in inputs])
        rows = rows._replace(x=rows.x - drift - u @ by_row.T)
    pairs = max(num_latents - dim - 1, 0) // 2
    slope, cycles, rest = _explained(rows, pairs)
    walk, noise, steps = _variances(rest, rows)
    levels = min(dim, num_latents)
    loadings = np.eye(dim) if levels == dim else np.linalg.eigh(steps)[1][:, ::-1][:, :levels]
    unexplained = np.nanvar(rest - rest_of(rest, loadings), axis=0) if levels < dim else 0.0
    firsts = _firsts(rest, rows)

    def made(cycle_noise: float) -> LinearGaussian:
        a, q = np.zeros((num_latents, num_latents)), np.zeros((num_latents, num_latents))
        c, mean, spread = np.zeros((dim, num_latents)), np.zeros(num_latents), np.ones(num_latents)
        c[:, :levels], a[:levels, :levels] = loadings, np.eye(levels)
        q[:levels, :levels] = loadings.T @ walk @ loadings
        mean[:levels] = loadings.T @ firsts.mean(axis=0)
        spread[:levels] = np.maximum((loadings.T**2) @ (firsts.var(axis=0) + 4 * (np.diag(walk) + noise)), 1e-8)
        at = levels
        if num_latents > dim:
            a[:levels, at], a[at, at], q[at, at] = slope, 1, SLOPE_NOISE
            mean[at], spread[at] = 1, 0.1
            at += 1
        for frequency, cosine, sine in cycles:
            turn = 2 * np.pi * frequency
            turned = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
            a[at : at + 2, at : at + 2] = np.sqrt(1 - cycle_noise) * turned
            q[at, at] = q[at + 1, at + 1] = cycle_noise
            c[:, at], c[:, at + 1] = cosine, sine
            mean[at], spread[at : at + 2] = 1, 0.25
            at += 2
        for index, left in enumerate(range(at, num_latents)):
            a[left, left], q[left, left] = FADING, 1 - FADING**2
            c[index % dim, left] = 0.3 * np.sqrt(walk[index % dim, index % dim] + noise[index % dim])
        return LinearGaussian(
            transition_matrix=np.float32(a),
            transition_covariance=np.float32(q),
            emission_matrix=np.float32(c),
            emission_covariance=np.float32(np.diag(noise + unexplained)),
            initial_mean=np.float32(mean),
            initial_covariance=np.float32(np.diag(spread)),
            input_matrix=None if inputs is None else np.float32(_of_latents(by_level, loadings, num_latents)),
            emission_input_matrix=None if inputs is None else np.float32(by_row),
            proposal="optimal",
        )

    if not cycles:
        return made(CYCLE_NOISES[0])
    judges = _judges(sequences, masks, inputs)
    return max(map(made, CYCLE_NOISES), key=lambda model: float(np.sum(model.log_evidence(judges))))


def _of_latents(
    by_level: Float[np.ndarray, "dim input"], loadings: Float[np.ndarray, "dim level"], num_latents: int
) -> Float[np.ndarray, "latent input"]:
    """Effects on levels as those on the latents that the levels are."""
    whole = np.zeros((num_latents, by_level.shape[1]))
    whole[: loadings.shape[1]] = loadings.T @ by_level
    return whole


def _judges(sequences: Sequence[np.ndarray], masks: Sequence | None, inputs: Sequence | None) -> Batch:
    """A few of the longest sequences."""
    most, steps = JUDGED
    chosen = sorted(range(len(sequences)), key=lambda i: -len(sequences[i]))[:most]
    parts = [None if part is None else [np.asarray(part[i][:steps]) for i in chosen] for part in (masks, inputs)]
    return Batch.from_sequences([np.float32(sequences[i][:steps]) for i in chosen], mask=parts[0], inputs=parts[1])


def _input_effects(rows: Rows, u: Float[np.ndarray, "row input"]) -> tuple[np.ndarray, np.ndarray]:
    """B and D [dim, input] of steps Δx_t = B u_t + D Δu_t + a constant, by ridge regression."""
    steps, places = _differences(rows.x, rows)
    width, dim = u.shape[1], rows.x.shape[1]
    found = np.zeros((2 * width, dim))
    design = np.concatenate([u[places], u[places] - u[places - 1]], axis=1)
    for place in range(dim):
        seen = ~np.isnan(steps[:, place])
        if seen.sum() > 4 * width:
            x = design[seen] - design[seen].mean(axis=0)
            y = steps[seen, place] - steps[seen, place].mean()
            found[:, place] = np.linalg.solve(x.T @ x + RIDGE * len(x) * np.eye(2 * width), x.T @ y)
    return found[:width].T, found[width:].T


def rest_of(
    rest: Float[np.ndarray, "row dim"], loadings: Float[np.ndarray, "dim level"]
) -> Float[np.ndarray, "row dim"]:
    """The part of every row that the levels can follow."""
    return np.nan_to_num(rest) @ loadings @ loadings.T


def _rows(sequences: Sequence[np.ndarray], masks: Sequence[np.ndarray] | None) -> Rows:
    x = np.concatenate([np.asarray(s, np.float64) for s in sequences])
    if masks is not None:
        x = np.where(np.concatenate(list(masks)), x, np.nan)
    time = np.concatenate([np.arange(len(s), dtype=np.float64) for s in sequences])
    return Rows(x, time, np.repeat(np.arange(len(sequences), dtype=np.float64), [len(s) for s in sequences]))


def _explained(rows: Rows, pairs: int) -> tuple[np.ndarray, list[Cycle], np.ndarray]:
    """The slope, the strongest cycles, and what is left of the rows without both."""
    frequencies: list[float] = []
    coefficients, rest = _regressed(rows, frequencies)
    while len(frequencies) < pairs:
        found = _strongest(rest, rows)
        if found is None or any(abs(found - known) < 1e-9 for known in frequencies):
            break
        frequencies.append(found)
        coefficients, rest = _regressed(rows, frequencies)
    cycles = [Cycle(f, coefficients[1 + 2 * i], coefficients[2 + 2 * i]) for i, f in enumerate(frequencies)]
    return coefficients[0], cycles, rest


def _regressed(rows: Rows, frequencies: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients [1 + 2 cycles, dim] of time and cycles within series, and what they leave, means included."""
    angle = 2 * np.pi * np.outer(rows.time, frequencies)
    waves = np.stack([np.cos(angle), np.sin(angle)], axis=2).reshape(len(angle), -1)
    design = np.concatenate([rows.time[:, None], waves], axis=1)
    members = rows.series.astype(int)
    coefficients = np.zeros((design.shape[1], rows.x.shape[1]))
    for place in range(rows.x.shape[1]):
        seen = ~np.isnan(rows.x[:, place])
        centred = _centred(np.column_stack([design, rows.x[:, place]])[seen], members[seen])
        coefficients[:, place] = np.linalg.lstsq(centred[:, :-1], centred[:, -1], rcond=1e-8)[0]
    return coefficients, rows.x - design @ coefficients


def _centred(values: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Values less their mean within each series."""
    counts = np.maximum(np.bincount(members), 1)
    means = np.stack([np.bincount(members, column, len(counts)) / counts for column in values.T], axis=1)
    return values - means[members]


def _differences(rest: np.ndarray, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Steps from row to row within a series, NaN where either was not observed, and which rows they lead to."""
    within = np.flatnonzero(np.diff(rows.series) == 0)
    return rest[within + 1] - rest[within], within + 1


def _strongest(rest: np.ndarray, rows: Rows) -> float | None:
    """The strongest frequency of the steps, if white noise would hardly have one as strong (Fisher's test)."""
    steps, places = _differences(rest, rows)
    lengths = np.bincount(rows.series.astype(int))
    longest = int(lengths.max())
    if longest < 16:
        return None
    grid = np.arange(2 * OVERSAMPLING, longest * OVERSAMPLING // 2) / (longest * OVERSAMPLING)
    power, parts = np.zeros(len(grid)), 0
    for series in np.argsort(-lengths)[:20]:  # the longest tell the most
        mine = rows.series[places] == series
        for column in steps[mine].T:
            seen = ~np.isnan(column)
            spread = column[seen].var() if seen.sum() >= 16 else 0.0
            if spread > 0:
                times = rows.time[places][mine][seen]
                power += lombscargle(times, column[seen] - column[seen].mean(), 2 * np.pi * grid) / spread
                parts += 1
    # Of white noise, each power is exponential with mean one; their average over parts is narrower.
    threshold = np.log(longest / 2 / RARE)
    if not parts or power.max() / parts < 1 + (threshold - 1) / np.sqrt(parts):
        return None
    return float(grid[np.argmax(power)])


def _variances(rest: np.ndarray, rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Covariance of the levels' walk, variances of the noise, and the covariance of the steps.

    Steps of a walk with variance q under noise with variance r have variance q + 2 r and autocovariance -r.
    """
    steps, places = _differences(rest, rows)
    dim = steps.shape[1]
    variance = np.nan_to_num(np.nanmean(steps**2, axis=0)) if len(steps) else np.nanvar(rows.x, axis=0)
    variance = np.maximum(variance, 1e-6 * np.nan_to_num(np.nanvar(rows.x, axis=0)) + 1e-10)
    follow = np.flatnonzero(np.diff(places) == 1)
    products = steps[follow] * steps[follow + 1] if len(follow) else np.zeros((1, dim))
    seen = np.maximum((~np.isnan(products)).sum(axis=0), 1)
    noise = np.clip(-np.nansum(products, axis=0) / seen, 0.05 * variance, 0.45 * variance)
    walk = variance - 2 * noise
    whole = steps[~np.isnan(steps).any(axis=1)] if len(steps) else steps
    correlation = np.eye(dim)
    if len(whole) > 2 * dim:
        scale = np.sqrt(np.maximum((whole**2).mean(axis=0), 1e-12))
        correlation = 0.9 * (whole / scale).T @ (whole / scale) / len(whole) + 0.1 * np.eye(dim)
    of_steps = correlation * np.sqrt(np.outer(variance, variance))
    return correlation * np.sqrt(np.outer(walk, walk)), noise, of_steps


def _firsts(rest: np.ndarray, rows: Rows) -> np.ndarray:
    """The level that each series starts at [series, dim]: the mean of its first few rows, or of all."""
    overall = np.nan_to_num(np.nanmean(rest, axis=0))
    found = []
    for series in range(int(rows.series.max()) + 1):
        first = rest[rows.series == series][:5]
        seen = ~np.isnan(first)
        mean = np.where(seen, first, 0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        found.append(np.where(seen.any(axis=0), mean, overall))
    return np.stack(found)
