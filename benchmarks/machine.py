"""The machine's own limit, and the fraction of it that the training step reaches.

The limit of a step is the time its matrix products, transcendental functions and normal draws take when nothing else
is done: each at the rate measured here, products at the rate of the step's own shapes.
"""

from typing import NamedTuple

from benchmarks.harness.rows import Row, amount, part
from benchmarks.harness.session import Plan, Session
from benchmarks.problems import NOTES, Size
from benchmarks.training_step import QUICK, SIZES, ours_alone

LARGE = 2048


class Costs(NamedTuple):
    """What one training step computes at least, counted for a VRNN whose shared inputs are multiplied once."""

    flops: float
    exponentials: float
    hyperbolic_tangents: float
    logarithms: float
    normals: float


def costs(size: Size) -> Costs:
    """Per particle and step: h feeds 7 blocks of H x H, z and phi_z 7, the outputs of both normals are 4.

    The backward pass has two products for each of the forward. Sigmoid and softplus count as one exponential (and a
    logarithm) forward and one exponential backward.
    """
    hidden, frames = size.hidden, size.batch * size.steps
    draws = frames * size.particles
    per_particle = 18 * hidden**2 + NOTES * hidden
    per_frame = NOTES * hidden + 6 * hidden**2
    return Costs(
        flops=2 * 3 * (draws * per_particle + frames * per_frame),
        exponentials=draws * (3 * hidden + 2 * (2 * hidden + NOTES)),
        hyperbolic_tangents=draws * 2 * hidden,
        logarithms=draws * (2 * hidden + 2 * hidden + NOTES),
        normals=draws * hidden,
    )


def run(session: Session) -> list[Row]:
    """Rates, then the fractions reached."""
    rows, peak = gemm_peak(session)
    rates, more = element_rates(session)
    rows += more
    for size in QUICK if session.quick else SIZES:
        rows += fractions(session, size, peak, rates)
    return rows


def gemm_peak(session: Session) -> tuple[list[Row], float]:
    """Gflop/s of a large product with all threads and with one, the better of JAX and NumPy."""
    found = {}
    for cpus in (None, 1):
        arguments = {"size": 256 if session.quick else LARGE}
        plan = Plan("GEMM", "benchmarks.ours.machine:large_product", arguments, own=True, cpus=cpus)
        subjects = session.prepare_all(
            [plan.with_arguments(variant=name, numpy=name == "NumPy") for name in ("JAX", "NumPy")]
        )
        timing = session.interleave(subjects, rounds=4).get("GEMM")
        if timing is not None:
            flops = next(s.facts["flops"] for s in subjects if s is not None)
            found[cpus] = flops / timing.best / 1e9, timing
    if len(found) < 2:
        return [], float("nan")
    (both, timing), (one, _) = found[None], found[1]
    sides, note = (f"{timing.threads} threads", "1 thread"), f"{timing.variant} was the faster one"
    return [part("machine: matrix product", f"{LARGE} x {LARGE}", *sides, both, one, "Gflop/s", note=note)], both


def element_rates(session: Session) -> tuple[dict[str, float], list[Row]]:
    """Nanoseconds per transcendental function and per normal draw."""
    rates, rows = {}, []
    unit = "ns per element"
    for name in ("exp", "tanh", "log"):
        plan = Plan(name, "benchmarks.ours.machine:elementwise", {"name": name}, own=True)
        rates[name], threads = rate(session, plan)
        work, size = "machine: transcendental functions", "32,768 elements"
        rows.append(amount(work, size, name, "exp", rates[name], rates["exp"], unit, threads=threads))
    plans = [Plan("normal", "benchmarks.ours.machine:normals", {"numpy": numpy}, own=True) for numpy in (False, True)]
    (jaxs, threads), (numpys, _) = (rate(session, plan) for plan in plans)
    rates["normal"] = min(jaxs, numpys)
    work, size = "machine: normal draws", "1,048,576 draws"
    rows.append(amount(work, size, "jax.random", "NumPy, 1 thread", jaxs, numpys, unit, threads=threads))
    return rates, rows


def rate(session: Session, plan: Plan) -> tuple[float, str]:
    """Nanoseconds per element, and threads."""
    subject = session.prepare(plan)
    timing = session.interleave([subject], rounds=4).get(plan.label)
    if subject is None or timing is None:
        return float("nan"), ""
    return timing.best / subject.facts["elements"] * 1e9, timing.threads


def fractions(session: Session, size: Size, peak: float, rates: dict[str, float]) -> list[Row]:
    """The step's flops against the peak and against its own shapes, and its time against the limit."""
    rows_of_step = size.batch * size.particles
    shape = {"rows": rows_of_step, "inner": size.hidden, "columns": 7 * size.hidden}
    subject = session.prepare(Plan("GEMM", "benchmarks.ours.machine:product", shape, own=True))
    timing = session.interleave([subject], rounds=4).get("GEMM")
    if size not in session.step_seconds:
        alone = ours_alone(session, size)
        if alone is not None:
            session.step_seconds[size] = alone.best
    if subject is None or timing is None or size not in session.step_seconds:
        return []
    seconds, needed = session.step_seconds[size], costs(size)
    achieved = needed.flops / seconds / 1e9
    own_shape = subject.facts["flops"] / timing.best / 1e9
    limit = needed.flops / own_shape / 1e9 + 1e-9 * (
        needed.exponentials * rates["exp"]
        + needed.hyperbolic_tangents * rates["tanh"]
        + needed.logarithms * rates["log"]
        + needed.normals * rates["normal"]
    )
    product = f"product [{rows_of_step}, {size.hidden}] x [{size.hidden}, {7 * size.hidden}]"
    work, threads = "training step and the machine's limit", timing.threads
    return [
        part(work, str(size), "fivo's matrix products", "large product", achieved, peak, "Gflop/s", threads=threads),
        part(work, str(size), "fivo's matrix products", product, achieved, own_shape, "Gflop/s", threads=threads),
        part(work, str(size), "its operations alone", "fivo", limit * 1e3, seconds * 1e3, "ms", threads=threads),
    ]
