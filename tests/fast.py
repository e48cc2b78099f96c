"""Programs for tests whose arrays are tiny: compiling them would take far longer than running them."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import jax

Function = TypeVar("Function", bound=Callable)

# Without optimisation XLA compiles a filter several times as fast.
UNOPTIMISED = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}


def fast_jit(function: Function) -> Function:
    """`jax.jit` that spends no time on making the program fast."""

    # Methods of models and functions transformed by equinox do not hash, as `jit` needs.
    def hashable(*args: Any) -> Any:
        return function(*args)

    return cast(Function, jax.jit(hashable, compiler_options=UNOPTIMISED))
