"""What works without the extras, and what says which one it needs."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fivo.extras import EXTRAS, require
from tests.data.sounds import noise, riff, write
from tests.sentences import assert_one_sentence

ROOT = Path(__file__).parents[1]
OPTIONAL = {
    *EXTRAS,
    *("cffi", "flatbuffers", "narwhals", "pandas", "PIL", "polars", "pyarrow", "xarray", "statsmodels"),
}
"""Packages that an installation without extras does not have."""
HIDE = f"import sys; sys.modules.update(dict.fromkeys({sorted(OPTIONAL)!r}))\n"


def run_without_extras(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", HIDE + code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def command(*arguments: str) -> str:
    return f"import runpy; sys.argv = ['fivo', *{arguments!r}]; runpy.run_module('fivo', run_name='__main__')"


def test_the_extras_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    named = {
        package.replace("_", "-"): extra for package, extra in EXTRAS.items() if package != "markupsafe"
    }  # of jinja2
    assert all(package in extras[extra] for package, extra in named.items())
    everywhere = {re.split(r"[^\w.-]", name)[0] for name in project["dependencies"]}
    assert not everywhere & OPTIONAL
    assert {"app", "cluster", "tensorboard"} <= set(re.findall(r"\w+", extras["dev"][0]))


@pytest.mark.parametrize(
    "code",
    ["import fivo.data, fivo.report, fivo.runs, fivo.training, fivo.inference", command("--help"), command("data")],
    ids=["imports", "help", "data list"],
)
def test_what_works_without_extras(code, tmp_path):
    ran = run_without_extras(code, tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")


ROLL = "import numpy; roll = numpy.zeros((4, 88)); "
FEATURES = {
    "MIDI out": (ROLL + "fivo.report.write_midi('a.mid', roll)", "app"),
    "MIDI in": ("fivo.data.read_midi('a.mid', 2)", "app"),
    "WAV in": ("fivo.data.read_recording('a.wav')", "app"),
    "a plot": ("fivo.report.plot_training([{'step': 1, 'bound': 2.0, 'validation': 3.0}])", "app"),
    "a pianoroll": (ROLL + "fivo.report.write_pianoroll('a.png', roll)", "app"),
    "the page": ("fivo.report.report_page(fivo.report.Sources([], []))", "app"),
    "a scheduler": (
        "from fivo.experiments.executors import cluster_executor\nwith cluster_executor('tcp://127.0.0.1:1'): pass",
        "cluster",
    ),
    "TensorBoard": (
        "from pathlib import Path; from fivo.training.events import EventWriter; EventWriter(Path('.'), 0)",
        "tensorboard",
    ),
}


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_without_its_extra_names_it(feature, tmp_path):
    write(tmp_path / "a.wav", riff(noise(40)))
    write(tmp_path / "a.mid", b"MThd")
    code, extra = FEATURES[feature]
    ran = run_without_extras(f"import fivo.data, fivo.report\n{code}", tmp_path)
    error = ran.stderr.strip().splitlines()[-1]
    assert error.startswith("fivo.errors.InputError"), ran.stderr
    assert_one_sentence(error, f"pip install 'fivo[{extra}]'.")


def test_a_command_says_so_before_it_begins_to_work(tmp_path):
    for arguments in (("demo",), ("compare-gradients",)):
        ran = run_without_extras(command(*arguments), tmp_path)
        assert ran.returncode == 2
        assert_one_sentence(ran.stderr.strip(), "pip install 'fivo[app]'.")
        assert not list(tmp_path.glob("build/*"))


def test_what_is_there_is_imported():
    assert require("mido", "Writing MIDI files") is sys.modules["mido"]
