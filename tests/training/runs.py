"""What is compared of two runs."""

from typing import Any

from safetensors.numpy import load_file

from fivo.training import RunDirectory


def arrays(run: RunDirectory) -> dict[str, bytes]:
    """Every bit of the checkpoints."""
    return {
        f"{path.name} {name}": array.tobytes()
        for path in (run.latest, run.best)
        for name, array in load_file(path).items()
    }


def timeless(run: RunDirectory) -> list[dict[str, Any]]:
    """The metrics without what a clock measured."""
    return [
        {name: value for name, value in row.items() if name not in ("seconds", "steps_per_second")}
        for row in run.metrics()
    ]


def assert_same_run(got: RunDirectory, expected: RunDirectory) -> None:
    """Equal checkpoints, metrics and results, to the bit."""
    assert arrays(got) == arrays(expected)
    assert timeless(got) == timeless(expected)
    for name in ("steps", "best_step", "best_validation", "stopped_early"):
        assert getattr(got.result(), name) == getattr(expected.result(), name)
