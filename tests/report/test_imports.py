"""Results can be drawn and heard where JAX is not installed."""

import subprocess
import sys

CODE = """
import sys
import numpy
before = set(sys.modules)
import fivo.report
print(*{name.partition(".")[0] for name in set(sys.modules) - before} - sys.stdlib_module_names)
"""


def test_only_small_packages_are_imported():
    result = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert set(result.stdout.split()) <= {
        "fivo",
        "ml_dtypes",
        "msgspec",
        "numpy",
        "safetensors",
        "typing_extensions",
    }
