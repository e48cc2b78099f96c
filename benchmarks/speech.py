"""Speech: frames of 200 samples a second through one optimiser step of FIVO, against the same step in eager PyTorch."""

import tempfile
from pathlib import Path

from benchmarks.harness.rows import Row, means_apart, throughput
from benchmarks.harness.session import Plan, Session, Subject
from benchmarks.problems import Size

TORCH = "PyTorch, eager"
SIZES = (Size(4, 4, 64, 250), Size(4, 4, 256, 250))
QUICK = (Size(4, 4, 16, 20),)
CHECKED, CHECK_RUNS = Size(4, 4, 16, 20), 32


def run(session: Session) -> list[Row]:
    """Checks first that both sides compute the same, then times them; 250 frames are 3.1 s, TIMIT's average."""
    with tempfile.TemporaryDirectory() as directory:
        rows = agreement(session, directory)
        for size in QUICK if session.quick else SIZES:
            times = session.interleave(subjects(session, size, directory), rounds=6)
            if "fivo" in times and TORCH in times:
                frames = size.batch * size.steps
                sides = (times["fivo"], times[TORCH])
                rows.append(
                    throughput("speech, training step, FIVO", str(size), TORCH, *sides, count=frames, unit="frames")
                )
    return rows


def subjects(session: Session, size: Size, directory: str, *, check: bool = False) -> list[Subject | None]:
    """fivo, and PyTorch with one and with two threads; with learning rate zero for a check."""
    parameters = str(Path(directory) / f"speech-{size.hidden}.npz")
    if not Path(parameters).exists():
        arguments = {"hidden": size.hidden, "path": parameters, "data": "speech"}
        session.prepare(Plan("fivo", "benchmarks.ours.training:export", arguments, own=True))
    work = {**size._asdict(), "bound": "fivo", "learning_rate": 0.0 if check else 3e-4, "data": "speech"}
    torch = Plan(TORCH, "benchmarks.peers.torch_vrnn:step", {**work, "parameters": parameters, "with_norm": check})
    return session.prepare_all(
        [
            Plan("fivo", "benchmarks.ours.training:step", work, own=True),
            *(torch.with_arguments(threads=threads) for threads in ((1,) if check else (1, 2))),
        ]
    )


def agreement(session: Session, directory: str) -> list[Row]:
    """Mean bound and mean gradient norm at equal parameters, in standard errors from ours: not above 4."""
    found = {
        subject.plan.label: session.values(subject, CHECK_RUNS)
        for subject in subjects(session, CHECKED, directory, check=True)
        if subject is not None
    }
    if not found.get("fivo") or not found.get(TORCH):
        return []
    rows = []
    for index, quantity in enumerate(("nats per timestep", "norm of the gradient")):
        sides = ([run[index] for run in found[label]] for label in ("fivo", TORCH))
        rows.append(means_apart(f"speech, FIVO, {quantity}", str(CHECKED), "fivo", TORCH, *sides))
    return rows
