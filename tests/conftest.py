"""Strict JAX for every test: shape annotations are enforced and arrays of different rank do not mix silently."""

import gc
import os
import signal
from collections.abc import Iterator

# Programs here are tiny: optimising them would take far longer than running them. Benchmarks check the optimised ones.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false "
    "--xla_cpu_parallel_codegen_split_count=1 "
    "--xla_disable_hlo_passes=cse,while-loop-invariant-code-motion,while-loop-simplifier,simplify-conditional",
)

# In the background of a shell interrupts are ignored, and what tests start and interrupt would ignore them too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import jax
import pytest
from jaxtyping import install_import_hook

# Before anything imports the package: only modules loaded from here on have their annotations checked.
install_import_hook("fivo", "beartype.beartype")
jax.config.update("jax_numpy_rank_promotion", "raise")


def pytest_collection_finish() -> None:
    """Look for garbage rarely: tracing makes objects by the million, most of them live on in JAX's caches."""
    gc.collect()
    gc.freeze()  # what was imported stays
    gc.set_threshold(100_000, 20, 50)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly that the page was not tried in a browser."""
    skipped = sum("no Chromium" in str(report.longrepr) for report in terminalreporter.stats.get("skipped", []))
    if skipped:
        terminalreporter.section("BROWSER TESTS WERE SKIPPED", yellow=True, bold=True)
        terminalreporter.write_line(
            f"{skipped} tests of the report page did not run: no Chromium is on the PATH. On Debian, "
            "`apt-get install chromium` brings one."
        )


@pytest.fixture
def x64() -> Iterator[None]:
    """Double precision for one test."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session", autouse=True)
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What one test process compiled the other finds."""
    base = tmp_path_factory.getbasetemp()
    cache = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "compiled"
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
    yield
    jax.config.update("jax_compilation_cache_dir", None)
