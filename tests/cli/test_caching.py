"""Compiled programs on disk: used when whole, replaced when damaged, and never a reason to print anything."""

import hashlib
import os
import subprocess
import sys
import zlib
from pathlib import Path

import jax

from fivo.caching import compilation_cache

PROGRAM = """
import jax
from fivo.caching import compilation_cache
hits = []
jax.monitoring.register_event_listener(lambda name, **_: hits.append(name) if name.endswith("/cache_hits") else None)
compilation_cache()
def used(name, number):
    # Whether the program of this name came from the cache.
    def function(x):
        return 2 * x + number
    function.__name__ = name
    before = len(hits)
    assert float(jax.jit(function)(3.0)) == 6.0 + number
    return len(hits) > before
print(*(name for number, name in enumerate(NAMES) if used(name, number)))
"""

DAMAGES = {
    "cut_short": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "one_bit": lambda content: content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
    "another_content": lambda content: b"not a program",
    "whole_but_no_program": lambda content: zlib.compress(b"\0\0\0\0not a program"),
    "a_right_checksum_but_no_program": lambda content: hashlib.sha256(b"no program").digest() + b"no program",
    "written_by_jax_alone": lambda content: content[32:],
}
WHOLE = "whole"
NAMES = [*DAMAGES, WHOLE]


def used(home: Path) -> set[str]:
    """The programs, each named after what may happen to its entry, that a process of its own takes from the cache."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(home)}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    program = PROGRAM.replace("NAMES", repr(NAMES))
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return set(done.stdout.split())


def entries(home: Path) -> dict[str, Path]:
    """The file of each of the programs."""
    files = sorted((home / "fivo" / "compiled").iterdir())
    found = {name: path for name in NAMES for path in files if path.name.startswith(f"jit_{name}-")}
    assert set(found) == set(NAMES)
    return found


def test_whole_entries_are_used_and_damaged_ones_replaced_without_a_word(tmp_path):
    assert used(tmp_path) == set()
    files, everything = entries(tmp_path), sorted((tmp_path / "fivo" / "compiled").iterdir())
    before = {name: path.read_bytes() for name, path in files.items()}
    for name, damage in DAMAGES.items():
        files[name].write_bytes(damage(before[name]))
    assert used(tmp_path) == {WHOLE}
    for name, damage in DAMAGES.items():
        assert files[name].read_bytes() != damage(before[name]), name
    assert used(tmp_path) == set(NAMES)
    assert sorted((tmp_path / "fivo" / "compiled").iterdir()) == everything  # no temporary file is left behind


def test_a_cache_that_cannot_be_made_is_not_used(tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert used(tmp_path / "file") == set()


def test_a_cache_that_cannot_be_written_is_not_used(tmp_path):
    """Entries cannot be made: directories stand where their files would be."""
    assert used(tmp_path) == set()
    for path in entries(tmp_path).values():
        path.unlink()
        (path / "in the way").mkdir(parents=True)
    assert used(tmp_path) == set()


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
