"""One place per option: TOML, Python and the command have the same names and the same defaults."""

import re
from typing import Any

import pytest
import tomli_w
from rich.console import Console

from fivo._run import prepare
from fivo.cli.commands import app
from fivo.cli.fit import plan_of
from fivo.settings import DEFAULTS, OPTIONS, flattened, make_settings, read_settings
from fivo.training import RunDirectory
from tests.cli.commands import run

CHANGED: dict[str, Any] = {
    "model": "srnn", "hidden": 5, "latent": "categorical", "smoothing": True, "bound": "fivo", "particles": 7,
    "gradient": "score", "baseline": "filters", "resampling": "systematic", "ess_threshold": 0.25,
    "learning_rate": 0.125, "weight_decay": 0.5, "schedule": "cosine", "warmup": 3, "clip": 1.5, "dataset": "jsb",
    "frame": 40, "rate": 8000, "resample": True, "split_seed": 4, "batch_size": 3, "steps": 17, "seed": 9,
    "average": 0.5, "validate_every": 6, "validation_particles": 2, "patience": 1, "log_every": 2, "tensorboard": True,
    "init_from": "elsewhere",
}  # fmt: skip

TABLE: dict[str, Any] = {
    "model": "linear-gaussian", "latents": 3, "bound": "exact", "learning_rate": 0.5, "dataset": "ships.csv",
    "id": "ship", "time": "t", "values": "lat,lon", "inputs": "wind", "static": "flag", "kind_of": "hits=count",
    "every": "10min", "split": "series", "fractions": "train=0.5,valid=0.5", "window": 50, "split_seed": 4,
}  # fmt: skip
"""Settings that the others leave no room for."""
RECURRENT: dict[str, Any] = {
    "bound": "sixo", "twist": "rnn", "twist_hidden": 5, "twist_training": "td", "twist_learning_rate": 0.5,
    "twist_repeats": 2, "twist_copies": 3,
}  # fmt: skip
QUADRATURE: dict[str, Any] = {"bound": "sixo", "twist": "quadrature", "twist_points": 7, "twist_window": 2}
EVERY = {"networks": CHANGED, "tables": TABLE, "rnn twist": RECURRENT, "quadrature twist": QUADRATURE}


def given_by(words: list[str]) -> dict[str, Any]:
    """What the command's parser makes of options."""
    _, bound, _ = app.parse_args(["fit", *words, "--out", "x"], exit_on_error=False, print_error=False)
    options = bound.arguments.get("options")
    return {name: value for name in OPTIONS if (value := getattr(options, name, None)) is not None}


def test_nothing_said_means_the_same_everywhere(tmp_path):
    (tmp_path / "empty.toml").write_text("")
    assert make_settings({}) == DEFAULTS
    assert make_settings(read_settings(tmp_path / "empty.toml")) == DEFAULTS
    assert given_by([]) == {}
    assert prepare().settings == DEFAULTS == plan_of(None, {}).settings
    stated = {name: option.default for name, option in OPTIONS.items()}
    assert {name: stated[name] for name in flattened(DEFAULTS)} == flattened(DEFAULTS)


def test_every_option_is_changed_below():
    assert {name for changed in EVERY.values() for name in changed} == OPTIONS.keys()
    for changed in EVERY.values():
        assert not [name for name, value in changed.items() if value == OPTIONS[name].default and name != "bound"]


@pytest.mark.parametrize("changed", EVERY.values(), ids=EVERY)
def test_everything_said_means_the_same_everywhere(tmp_path, changed):
    (tmp_path / "flat.toml").write_text(tomli_w.dumps(changed))
    words = [
        word
        for name, value in changed.items()
        for word in ([f"--{name.replace('_', '-')}"] + ([] if value is True else [str(value)]))
    ]
    settings = make_settings(changed)
    assert {**flattened(settings), **changed} == flattened(settings)
    assert make_settings(read_settings(tmp_path / "flat.toml")) == settings
    assert given_by(words) == changed
    directory = RunDirectory(tmp_path / "run")
    directory.path.mkdir()
    directory.record(settings, 0)
    assert directory.config() == settings
    assert make_settings(read_settings(directory.config_path)) == settings


@pytest.mark.parametrize("bound", ["elbo", "iwae", "fivo", "sixo"])
def test_settings_of_every_bound_come_back_from_their_file(tmp_path, bound):
    settings = make_settings({"bound": bound, "particles": 3})
    directory = RunDirectory(tmp_path)
    directory.record(settings, 0)
    assert directory.config() == settings == make_settings(read_settings(directory.config_path))
    assert make_settings(flattened(settings)) == settings


def test_the_help_has_every_option_with_its_default(capsys, monkeypatch):
    # The parser keeps its console, with the width that it had when anything was first printed in this process.
    monkeypatch.setattr(app["fit"], "_console", Console(width=400))
    lines = {
        match[1]: line
        for line in run(capsys, "fit", "--help").out.splitlines()
        if (match := re.search(r"--([\w-]+)", line))
    }
    for name, option in OPTIONS.items():
        line = lines[name.replace("_", "-")]
        if option.default is False or option.default == "":
            assert "[" not in line.replace("[choices", ""), line
        else:
            shown = f"{option.default:g}" if isinstance(option.default, float) else str(option.default)
            assert f"[{shown}]" in line, line
        if name not in ("model", "bound"):
            assert option.help.replace("`", "") in line


def test_a_recipe_is_an_option_of_the_command_and_of_a_file(capsys, tmp_path):
    file = tmp_path / "tuned.toml"
    file.write_text('recipe = "tuned"')
    wanted = make_settings({"recipe": "tuned"})
    assert wanted != DEFAULTS
    assert plan_of(None, {"recipe": "tuned"}).settings == plan_of(None, {}, config=file).settings == wanted
    assert run(capsys, "fit", "bach", "--recipe", "secret", "--out", tmp_path / "x").code == 2
    assert not (tmp_path / "x").exists()
