"""Every run names the code that made it."""

import re
import subprocess
from pathlib import Path

import pytest

import fivo
from fivo.training import commit

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def afresh():
    commit.code_commit.cache_clear()
    yield
    commit.code_commit.cache_clear()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
def test_in_a_checkout_it_is_the_commit():
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert commit.code_commit().rstrip("+") == head.strip()


def test_elsewhere_it_is_the_version(monkeypatch, tmp_path):
    """Also where git is missing, or where the package merely stands in a repository."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    package = tmp_path / "env" / "fivo"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(commit.fivo, "__file__", str(package / "__init__.py"))
    assert commit.code_commit() == f"version {fivo.__version__}"
    commit.code_commit.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit.code_commit() == f"version {fivo.__version__}"


def test_it_is_recorded(fivo_run):
    assert re.fullmatch(r"[0-9a-f]{40}\+?|version .+", fivo_run.directory.provenance().commit)
