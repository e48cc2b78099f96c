"""`python -m tests.fitting.train_own OUT`: train all cases, one after the other, into folders of OUT."""

import sys
from pathlib import Path

from tests.fitting.own import CASES, fit_own

if __name__ == "__main__":
    for name in CASES:
        fit_own(name, Path(sys.argv[1]) / name)
