"""The bootstrap filter's log-likelihood and its gradient, against cuthbert, `particles`, TFP and a plain JAX scan."""

import math
import statistics

from benchmarks.harness.rows import Row, Timing, apart, faster, means_apart
from benchmarks.harness.session import Plan, Session
from benchmarks.problems import grid_log_evidence, kalman_log_evidence, linear_gaussian, stochastic_volatility

PLAIN, CUTHBERT, PARTICLES, TFP = "plain JAX scan", "cuthbert", "particles", "TFP"
MULTINOMIAL = "fivo, multinomial"
MODELS = {
    "linear-Gaussian": (linear_gaussian, kalman_log_evidence),
    "stochastic volatility": (stochastic_volatility, grid_log_evidence),
}
SIZES = ((100, 100), (1_000, 1_000), (10_000, 100), (100_000, 100), (1_000_000, 10))
GOALS = {CUTHBERT: 4, PARTICLES: 8, TFP: 30, PLAIN: 2}
GRADIENT_SIZE, GRADIENT_GOALS = (1_000, 1_000), {CUTHBERT: 4, PLAIN: 1.5}
TFP_UP_TO = 100_000
"""Beyond, one run of TFP takes minutes: it was seen at 30 µs per particle and step with a million particles."""
XLA_UP_TO = 1_000
"""Compiled by XLA, TFP is the faster one at few particles only; elsewhere it is measured as a graph alone."""
MAX_VARIANCE = 12.0


def run(session: Session) -> list[Row]:
    """Forward at all sizes, then the gradient."""
    rows = []
    for model in MODELS:
        for particles, steps in ((200, 20),) if session.quick else SIZES:
            rows += forward(session, model, particles, steps)
        rows += backward(session, model, *((200, 20) if session.quick else GRADIENT_SIZE))
    return rows


def forward(session: Session, model: str, particles: int, steps: int) -> list[Row]:
    """Times, and the distance of every answer from the truth."""
    work = {"model": model, "particles": particles, "steps": steps, "scheme": "systematic"}
    tfp = Plan(TFP, "benchmarks.peers.tfp_filter:evidence", work)
    plans = [
        Plan("fivo", "benchmarks.ours.filtering:evidence", work, own=True),
        Plan(PLAIN, "benchmarks.peers.plain_jax_filter:evidence", work, own=True),
        Plan(CUTHBERT, "benchmarks.peers.cuthbert_filter:evidence", work),
        Plan(PARTICLES, "benchmarks.peers.particles_filter:evidence", work, variant="float64"),
        *([tfp.with_arguments(variant="graph", xla=False)] if particles <= TFP_UP_TO else []),
        *([tfp.with_arguments(variant="XLA", xla=True)] if particles <= XLA_UP_TO else []),
        Plan(MULTINOMIAL, "benchmarks.ours.filtering:evidence", {**work, "scheme": "multinomial"}, own=True),
    ]
    subjects = session.prepare_all(plans)
    times = session.interleave(subjects, rounds=5, block=0.3, budget=12)
    title, size = f"bootstrap filter, {model}", f"N {particles:,}, T {steps:,}"
    rows = checks(model, size, times, exact_evidence(model, steps))
    if "fivo" not in times:
        return rows
    per_particle = {"scale": 1e9 / (particles * steps), "unit": "ns per particle and step"}
    for peer in (CUTHBERT, PARTICLES, TFP, PLAIN):
        if peer in times:
            goal = GOALS[peer] if particles >= 1_000 else None
            rows.append(faster(title, size, peer, times["fivo"], times[peer], at_least=goal, **per_particle))
    if MULTINOMIAL in times:
        rows.append(faster(title, size, MULTINOMIAL, times["fivo"], times[MULTINOMIAL], **per_particle))
    return rows


def backward(session: Session, model: str, particles: int, steps: int) -> list[Row]:
    """The gradient with respect to all parameters, resampling terms dropped."""
    work = {"model": model, "particles": particles, "steps": steps, "scheme": "systematic"}
    plans = [
        Plan("fivo", "benchmarks.ours.filtering:gradient", work, own=True),
        Plan(PLAIN, "benchmarks.peers.plain_jax_filter:gradient", work, own=True),
        Plan(CUTHBERT, "benchmarks.peers.cuthbert_filter:gradient", work),
    ]
    subjects = session.prepare_all(plans)
    times = session.interleave(subjects, rounds=12, block=0.1, budget=15)
    title, size = f"gradient of the bootstrap filter, {model}", f"N {particles:,}, T {steps:,}"
    per_particle = {"scale": 1e9 / (particles * steps), "unit": "ns per particle and step"}
    rows = []
    for peer, goal in GRADIENT_GOALS.items():
        if peer in times and "fivo" in times:
            norms = ([value[1] for value in times[side].values] for side in ("fivo", peer))
            rows.append(means_apart(f"norm of the {title}", size, "fivo", peer, *norms))
            goal = None if session.quick else goal
            rows.append(faster(title, size, peer, times["fivo"], times[peer], at_least=goal, **per_particle))
    return rows


def exact_evidence(model: str, steps: int) -> float:
    """By the Kalman filter, or by quadrature where there is none."""
    simulate, evidence = MODELS[model]
    return evidence(*simulate(steps))


def checks(model: str, size: str, times: dict[str, Timing], exact: float) -> list[Row]:
    """Every side's answer, a mean of log p-hat raised by s²/2, against log p.

    As p-hat is unbiased and nearly log-normal, its logarithm lies half its variance s² too low on average. s² is
    estimated from all sides together. Where it is large, p-hat is not log-normal and nothing can be said.
    """
    answers = {label: [value[0] for value in timing.values] for label, timing in times.items() if timing.values}
    spare = sum(len(values) - 1 for values in answers.values())
    if not spare:
        return []
    variance = sum((v - statistics.fmean(values)) ** 2 for values in answers.values() for v in values) / spare
    if variance > MAX_VARIANCE:
        return []
    truth = "Kalman filter" if model == "linear-Gaussian" else "quadrature"
    rows = []
    for label, values in answers.items():
        error = math.sqrt(variance / len(values) + variance**2 / (2 * spare))
        mean = statistics.fmean(values) + variance / 2
        note = f"{len(values)} runs, s² = {variance:.3g}"
        rows.append(apart(f"log-likelihood, {model}", size, label, truth, mean, exact, error, note=note))
    return rows
