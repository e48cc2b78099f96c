"""What is built for others: everything that the code reads is in it, and it runs by itself."""

import email
import json
import math
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import fivo
from docs.execute import blocks, differences
from tests.fast import UNOPTIMISED
from tests.test_extras import HIDE

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "fivo"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [path] = folder.glob("*.whl")
    return path


def test_a_wheel_has_every_file_of_the_package(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    ours = {
        path.relative_to(SOURCE.parent).as_posix()
        for path in SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert ours <= names
    for read in ("experiments/paper/table1.toml", "report/vendor/uplot/uPlot.iife.min.js", "data/bach.npz", "py.typed"):
        assert f"fivo/{read}" in names
    assert {name.partition("/")[0] for name in names} == {"fivo", "fivo-0.1.0.dist-info"}


def test_a_wheel_describes_itself(wheel):
    archive = zipfile.ZipFile(wheel)
    about = email.message_from_bytes(archive.read("fivo-0.1.0.dist-info/METADATA"))
    assert about.get_payload(decode=True) == (ROOT / "README.md").read_bytes()
    assert about["Description-Content-Type"] == "text/markdown"
    assert about.get_all("Provides-Extra") == ["app", "cluster", "dev", "tensorboard"]
    assert about.get_all("License-File") == ["LICENSE", "src/fivo/report/vendor/uplot/LICENSE"]
    assert b"fivo = fivo.__main__:command" in archive.read("fivo-0.1.0.dist-info/entry_points.txt")


@pytest.fixture(scope="module")
def unpacked(wheel, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def run_code(code: str, unpacked: Path, folder: Path, **environment: str) -> str:
    """What code prints that finds the package in the wheel, outside of the checkout, with warnings as errors."""
    given = {**os.environ, "PYTHONPATH": str(unpacked), "XDG_CACHE_HOME": str(folder / "cache"), **environment}
    command = [sys.executable, "-W", "error", "-c", code]
    ran = subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_wheel_runs_where_the_checkout_is_not(unpacked, tmp_path):
    code = (
        "import fivo; from fivo.experiments import read_experiment; from fivo.report import Sources, report_page; "
        "print(fivo.__file__, len(read_experiment('table1').runs), len(fivo.data.load('bach').splits['test']), "
        "len(report_page(Sources([], []))) > 1000)"
    )
    shown = run_code(code, unpacked, tmp_path).split()
    assert shown == [str(unpacked / "fivo" / "__init__.py"), "144", "62", "True"]


def test_a_wheel_without_extras_runs_the_first_example_of_the_readme(unpacked, tmp_path):
    example = blocks((ROOT / "README.md").read_text())[0]
    assert differences(example, run_code(HIDE + example.code, unpacked, tmp_path)) == []


def test_a_wheel_runs_the_demonstration(unpacked, tmp_path):
    """Of `fivo demo`, everything but the chorales and the time they take."""
    code = (
        "import sys; from pathlib import Path; import fivo; from fivo.cli.demo import compare; "
        f"sys.path.append({str(ROOT)!r}); from tests.music import SETTINGS, tiny_music; "
        "compare(tiny_music(), Path('demo'), {**SETTINGS, 'seed': 0}); print(fivo.__file__)"
    )
    flags = " ".join(f"--{name}={str(value).lower()}" for name, value in UNOPTIMISED.items())
    shown = run_code(code, unpacked, tmp_path, XLA_FLAGS=flags)
    assert all(name in shown for name in ("ELBO", "IWAE", "FIVO", "reported", "piece.wav", str(unpacked)))
    made = tmp_path / "demo"
    assert {path.name for path in made.iterdir() if path.is_file()} == {
        "bounds.svg", "bounds.png", "bounds.json", "piece.mid", "piece.wav", "piece.png"
    }  # fmt: skip
    results = json.loads((made / "bounds.json").read_text())
    assert all(math.isfinite(results[bound]["reported"]["nats_per_step"]) for bound in ("elbo", "iwae", "fivo"))


def test_one_version_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    assert {project["version"], fivo.__version__, cited[1]} == {fivo.__version__}
