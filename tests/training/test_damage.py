"""Files of a run that are lost, damaged or of another run: refused in a sentence, or made again to the same bits."""

import shutil

import msgspec
import pytest

from fivo import open_run, serialization
from fivo.errors import InputError
from fivo.training import RunDirectory, Watchers
from fivo.training.session import Session
from tests.music import tiny_plan, train_tiny
from tests.sentences import assert_one_sentence
from tests.training.runs import arrays, assert_same_run, timeless

EARLY = {"learning_rate": 1.0, "steps": 100, "validate_every": 5, "patience": 2}
"""Settings of a run whose best step is not its last."""


@pytest.fixture
def copy(fivo_run, tmp_path):
    """A finished run that may be damaged."""
    return RunDirectory(shutil.copytree(fivo_run.directory.path, tmp_path / "run"))


@pytest.fixture(scope="module")
def early(music, tmp_path_factory):
    directory = RunDirectory(tmp_path_factory.mktemp("early") / "run")
    result = train_tiny(directory.path, music, **EARLY)
    assert result.best_step < result.steps
    return directory


def flip(path, place=None):
    """Flip one bit, by default in the middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2 if place is None else place] ^= 4
    path.write_bytes(content)


def refusal(run, music, **options):
    with pytest.raises(InputError) as refused:
        train_tiny(run.path, music, **options)
    return refused.value


@pytest.mark.parametrize("change", [{}, {"learning_rate": 0.5}], ids=str)
def test_a_run_without_its_settings_is_not_continued(copy, music, change):
    (copy.path / "config.toml").unlink()
    before = {path: path.read_bytes() for path in copy.path.rglob("*") if path.is_file()}
    sentence = refusal(copy, music, **change)
    assert_one_sentence(sentence, str(copy.path), "config.toml", "--out")
    assert {path: path.read_bytes() for path in copy.path.rglob("*") if path.is_file()} == before


def test_a_start_that_was_killed_before_its_settings_were_written_is_started_again(tmp_path, fivo_run, music):
    shutil.copy(fivo_run.directory.path / "run.json", tmp_path / "run.json")
    train_tiny(tmp_path, music)
    assert_same_run(RunDirectory(tmp_path), fivo_run.directory)


@pytest.mark.parametrize("edit", [("hidden = 8", "hidden = 9"), ("learning_rate = 0.02", "learning_rate = 0.03")])
def test_settings_edited_by_hand_are_refused(copy, music, edit):
    path = copy.path / "config.toml"
    path.write_text(path.read_text().replace(*edit))
    assert_one_sentence(refusal(copy, music), "config.toml", "--override")
    with pytest.raises(InputError) as refused:
        open_run(copy.path, dataset=music)
    assert_one_sentence(refused.value, "config.toml", "--override")


@pytest.mark.parametrize(
    ("place", "damage"),
    [(place, "a flipped bit") for place in (2, 0, -1)]
    + [(3, damage) for damage in ("no text", "no JSON", "nested", "digits", "a list")],
)
def test_one_bad_line_of_metrics_costs_no_other(copy, fivo_run, music, caplog, place, damage):
    lines = copy.metrics_path.read_bytes().splitlines(keepends=True)
    bad = {
        "a flipped bit": lines[place].replace(b'"ess": 1.', b'"ess": 0.', 1),
        "no text": b"\xff" + lines[place][1:],
        "no JSON": b"{" + lines[place],
        "nested": b"[" * 100_000 + b"\n",
        "digits": b'{"step": ' + b"1" * 100_000 + b"}\n",
        "a list": b"[20]\n",
    }[damage]
    assert bad != lines[place]
    lines[place] = bad
    copy.metrics_path.write_bytes(b"".join(lines))
    original = copy.metrics_path.read_bytes()
    train_tiny(copy.path, music)
    (said,) = [record.getMessage() for record in caplog.records]
    assert_one_sentence(said, "metrics.jsonl", "metrics.damaged.jsonl", "1 damaged line")
    good = timeless(fivo_run.directory)
    del good[place]
    assert timeless(copy) == good
    assert (copy.path / "metrics.damaged.jsonl").read_bytes() == original


def test_a_line_that_a_kill_cut_off_is_no_damage(copy, fivo_run, music, caplog):
    with copy.metrics_path.open("a") as file:
        file.write('{"step": 140, "bou')
    train_tiny(copy.path, music)
    assert copy.metrics_path.read_bytes() == fivo_run.directory.metrics_path.read_bytes()
    assert not caplog.records


@pytest.mark.parametrize("name", ["best", "latest"])
def test_a_checkpoint_of_another_run_is_refused(copy, early, music, name):
    """Even of a run with the same settings: one run, one identity."""
    other = copy.path.parent / "other"
    train_tiny(other, music)
    shutil.copy(getattr(RunDirectory(other), name), getattr(copy, name))
    before = arrays(copy)
    assert_one_sentence(refusal(copy, music), f"{name}.safetensors", "another run")
    assert arrays(copy) == before
    if name == "best":
        run = open_run(copy.path, dataset=music)
        for read in (lambda: run.model, lambda: run.step):
            with pytest.raises(InputError) as refused:
                read()
            assert_one_sentence(refused.value, "best.safetensors", "another run")


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), flip], ids=["lost", "damaged"])
def test_the_best_checkpoint_comes_back_from_the_latest(tmp_path, music, caplog, damage):
    """The last step is the best one, as there was only one validation."""
    run = RunDirectory(tmp_path)
    train_tiny(run.path, music, steps=40)
    before = arrays(run)
    damage(run.best)
    with pytest.raises(InputError) as refused:
        _ = open_run(run.path, dataset=music).model
    assert_one_sentence(refused.value, "best.safetensors", "fivo fit")
    train_tiny(run.path, music, steps=40)
    assert arrays(run) == before
    assert not caplog.records


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), flip], ids=["lost", "damaged"])
def test_the_best_checkpoint_is_trained_again_where_it_was_an_earlier_step(tmp_path, early, music, caplog, damage):
    copy = RunDirectory(shutil.copytree(early.path, tmp_path / "run"))
    damage(copy.best)
    train_tiny(copy.path, music, **EARLY)
    assert_same_run(copy, early)
    (said,) = [record.getMessage() for record in caplog.records]
    assert_one_sentence(said, "best.safetensors", "from the beginning", "same bits")


@pytest.mark.parametrize("step", [2, 7])
def test_training_again_survives_a_kill(tmp_path, early, music, step):
    """Before the first new checkpoint takes its place, and after."""
    copy = RunDirectory(shutil.copytree(early.path, tmp_path / "run"))
    copy.best.unlink()

    def kill(row):
        if row["step"] == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_tiny(copy.path, music, watchers=Watchers(report=kill), **EARLY | {"log_every": 1})
    train_tiny(copy.path, music, **EARLY)
    assert arrays(copy) == arrays(early)
    assert copy.result().best_step == early.result().best_step


def test_a_best_checkpoint_that_cannot_be_trained_again_is_refused(tmp_path, early, music):
    """Its settings were changed on the way."""
    copy = RunDirectory(shutil.copytree(early.path, tmp_path / "run"))
    longer = EARLY | {"learning_rate": 1e-6, "steps": 200, "patience": 0}
    flip(copy.best)
    assert_one_sentence(refusal(copy, music, override=True, **longer), "best.safetensors", "without --override")
    shutil.copy(early.best, copy.best)
    train_tiny(copy.path, music, override=True, **longer)
    copy.best.unlink()
    latest = copy.latest.read_bytes()
    assert_one_sentence(refusal(copy, music, **longer), "best.safetensors", "--override", "copy")
    assert copy.latest.read_bytes() == latest


def test_a_damaged_latest_checkpoint_falls_back_on_the_one_before(copy, fivo_run, music, caplog):
    flip(copy.latest)
    train_tiny(copy.path, music)
    assert_same_run(copy, fivo_run.directory)
    (said,) = [record.getMessage() for record in caplog.records]
    assert_one_sentence(said, "latest.safetensors", "damaged", "step 80")


def test_a_damaged_checkpoint_never_becomes_the_best_or_the_one_before(copy, fivo_run, music):
    """The latest goes bad while the run is trained: what is good stays."""
    best = copy.best.read_bytes()
    flip(copy.latest)
    flip(copy.path / "checkpoints" / "latest-previous.safetensors")
    assert_one_sentence(refusal(copy, music), "latest.safetensors", "latest-previous.safetensors")
    assert copy.best.read_bytes() == best


def test_a_run_that_is_moved_away_while_it_trains_stops(tmp_path, fivo_run, music):
    old, new = tmp_path / "old", tmp_path / "new"

    def rename(row):
        if row["step"] == 60:
            old.rename(new)

    with pytest.raises(InputError) as stop:
        train_tiny(old, music, watchers=Watchers(report=rename))
    assert_one_sentence(stop.value, str(old), "moved", "--out")
    assert not old.exists()
    train_tiny(new, music)
    assert_same_run(RunDirectory(new), fivo_run.directory)


@pytest.mark.parametrize(
    "fields", [{"step": "many"}, {}, {"content": [1]}, {"best_step": -3}, {"best_validation": "1e400"}], ids=str
)
def test_malformed_progress_is_one_sentence(copy, music, fields):
    """With a right checksum: somebody else's program wrote it."""
    session = Session(tiny_plan(music), copy)
    copy.previous.unlink()
    known = msgspec.to_builtins(session.progress) if fields.keys() <= {"best_step", "best_validation"} else {}
    serialization.save(
        copy.latest, session.state, {"kind": "latest", "run": copy.id, **(known if fields else {}), **fields}
    )
    assert_one_sentence(refusal(copy, music), "latest.safetensors")


def test_runs_of_older_versions_are_named(copy, music):
    """What a development version wrote has neither version nor checksum."""
    path = copy.path / "config.toml"
    path.write_text(path.read_text().partition("[record]")[0])
    for read in (lambda: train_tiny(copy.path, music), lambda: open_run(copy.path, dataset=music)):
        with pytest.raises(InputError) as refused:
            read()
        assert_one_sentence(refused.value, "config.toml", "development version of fivo 0.1")
