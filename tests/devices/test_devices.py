"""Sequences over four simulated devices, in one process of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fast import UNOPTIMISED

ROOT = Path(__file__).parents[2]
PARTS = ("training", "micro_batches", "own", "inference", "particles", "exchange", "refusals")


def flags(count: int) -> str:
    quick = [f"--{name}={str(value).lower()}" for name, value in UNOPTIMISED.items()]
    return " ".join([f"--xla_force_host_platform_device_count={count}", *quick])


@pytest.fixture(scope="module")
def said() -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.devices.on_four", *PARTS],
        env={**os.environ, "XLA_FLAGS": flags(4)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def test_numbers_do_not_depend_on_the_number_of_devices(said):
    assert said  # the comparisons are in `on_four`


def test_refusals_are_sentences(said):
    assert said == [
        "the number of devices must be at most 4 (CPU) here, got 5; on a CPU, "
        "XLA_FLAGS=--xla_force_host_platform_device_count=5 simulates them.",
        "the number of devices must be a positive integer, got 0.",
        "batch_size must be a multiple of the 3 devices that share the sequences of a step, got 4.",
        "mesh must be a jax.sharding.Mesh of one axis, such as fivo.devices.data_mesh(), got two.",
        "num_particles must be a multiple of the 4 devices that share them, got 6.",
        "resampling over devices must be by ancestors, such as 'systematic', got 'soft'.",
        'exchange must be "exact" or "islands", got \'some\'.',
        "a stream must have its particles on one device; leave `mesh` out.",
    ]
