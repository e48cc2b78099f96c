"""Who may write a run, and what is refused before anything is changed."""

import dataclasses

import pytest

from fivo.errors import InputError
from fivo.settings import flattened
from fivo.training import RunDirectory, train
from tests.music import tiny_music, tiny_plan, train_tiny
from tests.sentences import assert_one_sentence


def files_of(run):
    return {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}


def refusal(run, data, **arguments):
    """The sentence of a refused run, of which no file was touched."""
    before = files_of(run)
    with pytest.raises(InputError) as refused:
        train_tiny(run.path, data, **arguments)
    assert files_of(run) == before
    return refused.value


def test_two_processes_cannot_write_one_run(fivo_run, music):
    with RunDirectory(fivo_run.directory.path):
        sentence = refusal(fivo_run.directory, music)
    assert_one_sentence(sentence, "another process", "--out")
    train_tiny(fivo_run.directory.path, music)


@pytest.mark.parametrize("change", [{"hidden": 5}, {"bound": "iwae"}, {"seed": 1}, {"validate_every": 3}], ids=str)
def test_a_run_of_another_configuration_is_refused(fivo_run, music, change):
    (name, value), *_ = change.items()
    was = flattened(tiny_plan(music).settings)[name]
    sentence = refusal(fivo_run.directory, music, **change)
    assert_one_sentence(sentence, f"{name}={was!r}", repr(value), "--override")


def test_data_of_another_name_are_refused(fivo_run, music):
    sentence = refusal(fivo_run.directory, dataclasses.replace(music, name="x"))
    assert_one_sentence(sentence, "dataset='tiny'", "'x'", "--override")


def test_a_model_of_another_size_is_refused_even_when_overridden(fivo_run, music):
    sentence = refusal(fivo_run.directory, music, override=True, hidden=5)
    assert_one_sentence(sentence, "latest.safetensors")


def test_fewer_steps_than_were_trained_are_refused(fivo_run, music):
    sentence = refusal(fivo_run.directory, music, steps=20)
    assert_one_sentence(sentence, "120 steps", "20 were asked for", "--out")


def test_what_kills_left_is_removed_by_the_next_owner(tmp_path):
    left = [tmp_path / ".result.json.0123.part", tmp_path / "checkpoints" / ".latest.safetensors.4567.part"]
    for path in left:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"half")
    with RunDirectory(tmp_path):
        assert not any(path.exists() for path in left)


def test_other_data_under_the_same_name_is_refused(fivo_run):
    other = tiny_music((6, 6, 6))
    assert_one_sentence(refusal(fivo_run.directory, other), "other data", "'tiny'", "--out")
    assert_one_sentence(refusal(fivo_run.directory, other, override=True), "other data")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("run.json", b"{"),
        ("run.json", b"[1]"),
        ("run.json", None),
        ("config.toml", b"hidden = "),
        ("config.toml", b"layers = 3"),
        ("checkpoints/latest.safetensors", b"\x10\x00"),
    ],
)
def test_damaged_files_are_named(tmp_path, fivo_run, music, name, content):
    for path, kept in files_of(fivo_run.directory).items():
        target = tmp_path / path.relative_to(fivo_run.directory.path)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(kept)
    RunDirectory(tmp_path).previous.unlink()  # to fall back on
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    sentence = refusal(RunDirectory(tmp_path), music)
    assert_one_sentence(sentence, name.rpartition("/")[2])


def test_a_place_that_cannot_be_written(tmp_path, music):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InputError) as refused:
        train_tiny(tmp_path / "file", music)
    assert_one_sentence(refused.value, "file", "--out")


def test_what_is_no_run_says_so(tmp_path):
    with pytest.raises(InputError) as refused:
        RunDirectory(tmp_path).config()
    assert_one_sentence(refused.value, str(tmp_path), "fivo fit")
    with pytest.raises(InputError) as refused:
        RunDirectory(tmp_path).result()
    assert_one_sentence(refused.value, "result.json")
    assert RunDirectory(tmp_path).metrics() == []


def test_metrics_after_a_step_are_forgotten(tmp_path):
    run = RunDirectory(tmp_path)
    for step in (5, 10, 15):
        run.append_metrics({"step": step, "bound": 0.1 * step})
    with run.metrics_path.open("a") as file:
        file.write('{"step": 20')
    assert [row["step"] for row in run.metrics()] == [5, 10, 15]
    run.forget_after(10)
    run.append_metrics({"step": 12, "bound": 3.0})
    assert run.metrics() == [{"step": 5, "bound": 0.5}, {"step": 10, "bound": 1.0}, {"step": 12, "bound": 3.0}]


def test_names_do_not_matter_but_content_does(fivo_run, music):
    """The fingerprint is that of the content, so a renamed copy of the data continues a run."""
    plan = tiny_plan(music)
    renamed = dataclasses.replace(plan, dataset=dataclasses.replace(music, name="copy"))
    assert train(renamed, fivo_run.directory.path).steps == plan.settings.training.steps
