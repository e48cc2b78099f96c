"""Which code made a number."""

import subprocess
from functools import cache
from pathlib import Path

import fivo

SECONDS = 10


@cache
def code_commit() -> str:
    """The commit of the checkout that the package runs from, `+` if it was changed since; else the version."""
    package = Path(fivo.__file__).parent
    # An environment may be inside somebody else's repository, which does not track the installed package.
    if _git(package, "ls-files", "--error-unmatch", "__init__.py") is None:
        return f"version {fivo.__version__}"
    changed = _git(package, "status", "--porcelain", "--untracked-files=no", ".")
    return f"{_git(package, 'rev-parse', 'HEAD')}{'+' if changed else ''}"


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=directory, capture_output=True, text=True, timeout=SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
