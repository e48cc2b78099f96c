"""One optimiser step of FIVO, IWAE and the ELBO on a VRNN, against eager PyTorch and a plain JAX scan."""

import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.harness.rows import Row, Timing, faster, means_apart
from benchmarks.harness.session import Plan, Session, Subject
from benchmarks.problems import Size

TORCH, PLAIN = "PyTorch, eager", "plain JAX scan"
SIZES = (Size(4, 4, 32, 60), Size(4, 16, 32, 60), Size(4, 4, 64, 250), Size(4, 16, 64, 250), Size(4, 16, 256, 250))
OTHER_BOUNDS = (Size(4, 16, 32, 60), Size(4, 16, 64, 250))
QUICK = (Size(4, 4, 32, 20),)
CHECKED, CHECK_RUNS = Size(4, 4, 32, 20), 64
TORCH_GOALS = dict(zip(SIZES, (20, 7, 10, 5, 1.5), strict=True))
PLAIN_GOALS = {4: 1.8, 16: 1.4}


def run(session: Session) -> list[Row]:
    """Checks first that all sides compute the same, then times them."""
    bounds = ("fivo",) if session.quick else ("fivo", "iwae", "elbo")
    with tempfile.TemporaryDirectory() as directory:
        rows = [row for bound in bounds for row in agreement(session, bound, directory)]
        for bound in bounds:
            sizes = SIZES if bound == "fivo" else OTHER_BOUNDS
            for size in QUICK if session.quick else sizes:
                rows += compare(session, size, bound, directory)
    return rows


def compare(session: Session, size: Size, bound: str, directory: str) -> list[Row]:
    """Times of all sides; the ELBO has the same budget in sequences instead of particles."""
    times = session.interleave(subjects(session, size, bound, directory), rounds=6)
    if "fivo" not in times:
        return []
    if bound == "fivo":
        session.step_seconds[size] = times["fivo"].best
    work, shape = f"training step, {bound.upper()}", str(equal_budget(size, bound))
    per_step = {"scale": 1e6 / size.steps, "unit": "µs per timestep"}
    rows = []
    for peer, goal in ((TORCH, TORCH_GOALS.get(size)), (PLAIN, PLAIN_GOALS.get(size.particles))):
        if peer in times:
            goal = goal if bound == "fivo" and not session.quick else None
            rows.append(faster(work, shape, peer, times["fivo"], times[peer], at_least=goal, **per_step))
    return rows


def equal_budget(size: Size, bound: str) -> Size:
    """Sequences times particles are the same for all bounds."""
    return size._replace(batch=size.batch * size.particles, particles=1) if bound == "elbo" else size


def subjects(session: Session, size: Size, bound: str, directory: str, *, check: bool = False) -> list[Subject | None]:
    """fivo and PyTorch with one and with two threads, plain JAX; with learning rate zero for a check."""
    parameters = str(Path(directory) / f"vrnn-{size.hidden}.npz")
    if not Path(parameters).exists():
        arguments = {"hidden": size.hidden, "path": parameters}
        session.prepare(Plan("fivo", "benchmarks.ours.training:export", arguments, own=True))
    work = {**equal_budget(size, bound)._asdict(), "bound": bound, "learning_rate": 0.0 if check else 3e-4}
    given = {**work, "parameters": parameters}
    ours = Plan("fivo", "benchmarks.ours.training:step", work, own=True)
    torch = Plan(TORCH, "benchmarks.peers.torch_vrnn:step", {**given, "with_norm": check})
    return session.prepare_all(
        [
            ours,
            *([] if check else [replace(ours, variant="one thread", cpus=1)]),
            *(torch.with_arguments(threads=threads) for threads in ((1,) if check else (1, 2))),
            Plan(PLAIN, "benchmarks.peers.plain_jax:step", given, own=True),
        ]
    )


def agreement(session: Session, bound: str, directory: str) -> list[Row]:
    """Mean bound and mean gradient norm at equal parameters, in standard errors from ours: not above 4."""
    found: dict[str, list[list[float]]] = {}
    runs = CHECK_RUNS // 2 if session.quick else CHECK_RUNS
    for subject in subjects(session, CHECKED, bound, directory, check=True):
        if subject is not None:
            found[subject.plan.label] = session.values(subject, runs)
    ours = found.pop("fivo", [])
    rows = []
    for peer, theirs in found.items():
        for index, quantity in enumerate(("nats per timestep", "norm of the gradient")):
            if ours and theirs:
                what, size = f"{bound.upper()}, {quantity}", str(equal_budget(CHECKED, bound))
                sides = ([run[index] for run in side] for side in (ours, theirs))
                rows.append(means_apart(what, size, "fivo", peer, *sides))
    return rows


def ours_alone(session: Session, size: Size) -> Timing | None:
    """The time of FIVO's step, measured now if no comparison did."""
    plan = Plan("fivo", "benchmarks.ours.training:step", {**size._asdict(), "bound": "fivo"}, own=True)
    return session.interleave([session.prepare(plan)], rounds=3).get("fivo")
