"""`fit("auto", ...)` and `fivo fit --model auto`: the clear winner is chosen, once, within its time."""

import numpy as np
import polars as pl
import pytest

import fivo
from fivo._run import auto
from fivo.cli import main
from fivo.runs import RunDirectory, Selection, check_run
from tests.sentences import assert_one_sentence

SHORT = {"steps": 40, "validate_every": 20, "log_every": 5}


def tides(steps: int = 120) -> pl.DataFrame:
    """A slope and a cycle of ten steps, which two latents cannot follow."""
    t = np.arange(steps)
    rng = np.random.default_rng(0)
    return pl.DataFrame({"t": t, "y": 0.05 * t + np.sin(2 * np.pi * t / 10) + 0.05 * rng.normal(size=steps)})


@pytest.fixture
def few(monkeypatch):
    """Linear-Gaussian candidates only, and few steps of them."""
    chosen = {name: {**settings, **SHORT} for name, settings in auto.CANDIDATES.items() if name.endswith(("-2", "-4"))}
    monkeypatch.setattr(auto, "CANDIDATES", chosen)


@pytest.fixture
def table(tmp_path):
    tides().write_csv(tmp_path / "tides.csv")
    return tmp_path / "tides.csv"


def test_the_clear_winner_is_kept_as_a_run(few, table, tmp_path, capsys, monkeypatch):
    out = tmp_path / "run"
    command = [
        "fit",
        str(table),
        "--time",
        "t",
        "--model",
        "auto",
        "--budget",
        "2min",
        "--horizon",
        "5",
        "--out",
        str(out),
    ]
    main(command)
    printed = capsys.readouterr().out
    assert "linear-gaussian-4 *" in printed
    assert "seasonal-naive" in printed
    selection = RunDirectory(out).read(Selection)
    assert selection.chosen == "linear-gaussian-4"
    assert (selection.horizon, selection.windows) == (5, 5)
    two, four = selection.candidates
    assert four.crps < 0.5 * two.crps
    assert all(status.status in ("good", "unchecked") for status in check_run(out))
    run = fivo.open_run(out)
    assert run.settings.model.latents == 4
    assert fivo.forecast(run, table, 3).mean.shape == (1, 3, 1)
    # A second call trains nothing.
    monkeypatch.setattr(auto, "_candidate", None)
    main(command)
    assert "linear-gaussian-4 *" in capsys.readouterr().out


def test_a_choice_that_was_interrupted_goes_on(few, table, tmp_path, monkeypatch):
    trained = []

    def stopping(event):
        trained.append(event.step)
        if len(trained) == 10:  # in the middle of the second candidate
            raise KeyboardInterrupt
        return False

    options = {"time": "t", "budget": "2min", "horizon": 5, "out": tmp_path / "run", "progress": False}
    with pytest.raises(KeyboardInterrupt):
        fivo.fit("auto", table, callbacks=[stopping], **options)
    assert not (tmp_path / "run" / "config.toml").exists()
    before = len(trained)
    run = fivo.fit("auto", table, callbacks=[lambda event: trained.append(event.step)], **options)
    assert run.settings.model.latents == 4
    assert trained[before:] == list(range(5, 45, 5))  # the first candidate was done


def test_the_time_is_kept(few, table, tmp_path):
    run = fivo.fit("auto", table, time="t", budget="0.001s", horizon=5, out=tmp_path / "run", progress=False)
    selection = run.directory.read(Selection)
    assert [candidate.steps for candidate in selection.candidates] == [5, 5]  # the first line of metrics ends each


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"budget": "soon"}, ["budget", "soon"]),
        ({"steps": 5}, ["steps", "auto"]),
        ({"bound": "fivo"}, ["bound", "auto"]),
        ({"horizon": 100}, ["of 100 rows"]),
    ],
)
def test_what_is_refused(few, table, tmp_path, options, parts):
    with pytest.raises(fivo.InputError) as refusal:
        fivo.fit("auto", table, time="t", out=tmp_path / "run", progress=False, **{"budget": "0.001s", **options})
    assert_one_sentence(refusal.value, *parts)
    assert not (tmp_path / "run" / "config.toml").exists()


def test_other_data_and_other_runs_are_refused(few, table, tmp_path):
    with pytest.raises(fivo.InputError, match="is for tables"):
        fivo.fit("auto", np.zeros((3, 20, 1)) + np.arange(20)[:, None] * 0.37, out=tmp_path / "a", progress=False)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "config.toml").write_text("")
    with pytest.raises(fivo.InputError, match="not chosen by"):
        fivo.fit("auto", table, time="t", out=tmp_path / "b", progress=False)
