"""What is built for others: everything that the code reads is in it, and it runs by itself."""

import email
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import fivo

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


def test_a_wheel_runs_where_the_checkout_is_not(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = (
        "import fivo; from fivo.experiments import read_experiment; from fivo.report import Sources, report_page; "
        "print(fivo.__file__, len(read_experiment('table1').runs), len(fivo.data.load('bach').splits['test']), "
        "len(report_page(Sources([], []))) > 1000)"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == [str(tmp_path / "fivo" / "__init__.py"), "144", "62", "True"]


def test_one_version_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    assert {project["version"], fivo.__version__, cited[1]} == {fivo.__version__}
