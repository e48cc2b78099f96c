"""Compiled programs on disk: used when whole, replaced when damaged, and never a reason to print anything."""

import hashlib
import os
import subprocess
import sys
import zlib
from pathlib import Path

import jax
import pytest

from fivo.caching import compilation_cache

PROGRAM = """
import jax
from fivo.caching import compilation_cache
hits = []
jax.monitoring.register_event_listener(lambda name, **_: hits.append(name) if name.endswith("/cache_hits") else None)
compilation_cache()
print(float(jax.jit(lambda x: 2 * x + 1)(3.0)), len(hits))
"""


def compiled(home: Path) -> tuple[str, int]:
    """What a small program computed in a process of its own, and how many programs came from the cache."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(home)}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    value, hits = done.stdout.split()
    return value, int(hits)


def entries(home: Path) -> list[Path]:
    return sorted((home / "fivo" / "compiled").iterdir())


@pytest.fixture(scope="module")
def filled(tmp_path_factory) -> Path:
    home = tmp_path_factory.mktemp("home")
    assert compiled(home) == ("7.0", 0)
    assert entries(home)
    return home


DAMAGES = {
    "cut short": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "one bit": lambda content: content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
    "another content": lambda content: b"not a program",
    "whole but no program": lambda content: zlib.compress(b"\0\0\0\0not a program"),
    "a right checksum but no program": lambda content: hashlib.sha256(b"no program").digest() + b"no program",
    "written by JAX alone": lambda content: content[32:],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_entries_are_replaced_without_a_word(filled, damage):
    before = {path: path.read_bytes() for path in entries(filled)}
    for path, content in before.items():
        path.write_bytes(damage(content))
    assert compiled(filled) == ("7.0", 0)
    assert [path for path in before if path.read_bytes() == damage(before[path])] == []
    assert compiled(filled) == ("7.0", len(before))


def test_a_whole_cache_is_used(filled):
    names = entries(filled)
    assert compiled(filled) == ("7.0", len(names))
    assert entries(filled) == names  # no temporary file is left behind


def test_a_cache_that_cannot_be_made_is_not_used(tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert compiled(tmp_path / "file") == ("7.0", 0)


def test_a_cache_that_cannot_be_written_is_not_used(tmp_path):
    """Entries cannot be made: directories stand where their files would be."""
    home = tmp_path / "home"
    compiled(home)
    for path in entries(home):
        path.unlink()
        (path / "in the way").mkdir(parents=True)
    assert compiled(home) == ("7.0", 0)


def test_a_user_without_a_home_has_no_cache(monkeypatch):
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    try:
        compilation_cache()
        assert jax.config.jax_compilation_cache_dir is None
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
