"""What cannot fit into memory is refused before anything is allocated, in a sentence that names the setting."""

import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fivo.batch import Batch
from fivo.errors import InputError
from fivo.settings import make_settings
from fivo.training import Trainer, memory_estimate
from fivo.training.memory_estimate import available_memory, cgroup_limit, estimate_memory, shown
from tests.music import LENGTH, SETTINGS, command_line, environment, tiny_plan, train_tiny
from tests.sentences import assert_one_sentence

HUGE = 2**31 - 1


@pytest.mark.parametrize("setting", ["hidden", "particles", "batch_size"])
@pytest.mark.parametrize("model", ["vrnn", "srnn"])
def test_the_setting_to_blame_is_named(tmp_path, music, model, setting):
    with pytest.raises(InputError) as stop:
        train_tiny(tmp_path / "run", music, model=model, **{setting: HUGE})
    assert_one_sentence(stop.value, f"{setting}={HUGE}", "B of memory", "available", f"--{setting.replace('_', '-')}")
    assert not (tmp_path / "run").exists()


def test_the_command_refuses_without_a_crash(tmp_path, music_file, cache):
    command = command_line("fit", music_file, "--out", tmp_path / "run", "--hidden", HUGE)
    done = subprocess.run(command, env=environment(cache), capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert_one_sentence(done.stderr.rstrip("\n"), f"hidden={HUGE}", "--hidden")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_too_little_memory(tmp_path, music_file, cache):
    """Ten gigabytes of addresses are enough to start with, and too few for half a billion parameters."""
    command = command_line("fit", music_file, "--out", tmp_path / "run", "--hidden", 5_000)
    done = subprocess.run(
        ["sh", "-c", 'ulimit -v 10000000; exec "$@"', "sh", *command],
        env=environment(cache),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert_one_sentence(done.stderr.rstrip("\n"), "hidden=5000", "at least 12 GB")
    assert float(re.search(r"only ([\d.]+) GB is available", done.stderr)[1]) < 10


@pytest.mark.parametrize(
    "changes", [{}, {"model": "srnn"}, {"model": "dmm"}, {"hidden": 64}, {"bound": "elbo"}, {"smoothing": True}]
)
def test_what_fits_is_never_refused(music, changes):
    """The estimate stays below what the compiled step and its arguments take, but within a factor of six."""
    plan = tiny_plan(music, particles=16, **changes)
    config, model = plan.settings, plan.model
    trainer = Trainer(model, plan.bound, plan.optimizer)
    sequences = config.training.batch_size
    batch = Batch(jnp.zeros((sequences, LENGTH, music.dimension)), jnp.full(sequences, LENGTH, jnp.int32))
    step = trainer._whole_step.lower(trainer.start(), batch, jax.random.key(0), jnp.float32(0)).compile()
    analysis = step.memory_analysis()
    template = sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(model) if isinstance(leaf, jax.Array))
    waiting = (config.sequences_per_step - sequences) * LENGTH * music.dimension * 4  # other batches of the ELBO's step
    taken = analysis.temp_size_in_bytes + analysis.argument_size_in_bytes + template + waiting
    assert taken / 6 < estimate_memory(config, music) <= taken


def test_what_is_available(monkeypatch, music, tmp_path):
    assert 10**8 < available_memory() < 10**15
    config = make_settings(SETTINGS)
    needed = estimate_memory(config, music)
    monkeypatch.setattr(memory_estimate, "available_memory", lambda: needed - 1)
    with pytest.raises(InputError):
        train_tiny(tmp_path, music)
    monkeypatch.setattr(memory_estimate, "available_memory", lambda: None)  # nobody knows
    memory_estimate.check_memory(config, music)


def test_limits_of_containers(tmp_path):
    """The tightest of a group and those around it; pages that only hold files are given back when needed."""
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    (inner / "memory.max").write_text("max\n")
    (inner.parent / "memory.max").write_text("1000\n")
    (inner.parent / "memory.current").write_text("700\n")
    (inner.parent / "memory.stat").write_text("anon 400\nfile 300\nshmem 100\n")
    assert cgroup_limit("0::/outer/inner\n", tmp_path) == 1000 - 700 + 200
    older = tmp_path / "memory" / "job"
    older.mkdir(parents=True)
    (older / "memory.limit_in_bytes").write_text("900\n")
    (older / "memory.usage_in_bytes").write_text("600\n")
    (older / "memory.stat").write_text("cache 50\ntotal_cache 50\ntotal_shmem 10\n")
    assert cgroup_limit("3:cpu:/\n4:memory:/job\n0::/\n", tmp_path) == 900 - 600 + 40
    assert cgroup_limit("0::/nothing\n", tmp_path) is None


def test_sizes_for_people():
    assert [shown(size) for size in (999, 1.5e6, 21.94e9, 3.6e21, 5e30)] == [
        "999 B", "1.5 MB", "22 GB", "3,600 EB", "5,000,000,000,000 EB"
    ]  # fmt: skip
