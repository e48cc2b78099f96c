"""Settings: every mistake is one sentence, and TOML gives back what it was given."""

import msgspec
import pytest

from fivo._run import dataset_setting
from fivo.errors import InputError
from fivo.settings import DEFAULTS, OwnOptimizer, flattened, make_settings, read_settings
from fivo.training import RunDirectory
from tests.sentences import assert_one_sentence


def test_the_defaults_are_the_papers():
    settings = make_settings({})
    bound, training = settings.bound, settings.training
    assert (bound.particles, bound.resampling, bound.ess_threshold) == (4, "multinomial", 0.5)
    assert (training.batch_size, training.validate_every) == (4, 1000)


@pytest.mark.parametrize(("bound", "sequences"), [("fivo", 4), ("iwae", 4), ("elbo", 32)])
def test_the_elbo_has_its_budget_in_sequences(bound, sequences):
    assert make_settings({"bound": bound, "particles": 8}).sequences_per_step == sequences


def test_toml_round_trip(tmp_path):
    config = make_settings(
        {"dataset": 'a "quoted" \\ name', "learning_rate": 1 / 3, "smoothing": True, "seed": 2**32 - 1, "bound": "iwae"}
    )
    run = RunDirectory(tmp_path)
    run.record(config, 0)
    assert run.config() == config
    # Such a file is also a good configuration for another run.
    assert make_settings(read_settings(run.config_path)) == config
    assert set(read_settings(run.config_path)) == set(flattened(config))  # the IWAE has no resampling


def test_whole_numbers_are_good_rates():
    assert make_settings({"learning_rate": 1}).optimizer.learning_rate == 1.0


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"lerning_rate": 0.1}, ["'lerning_rate'", "learning_rate"]),
        ({"hidden": "many"}, ["hidden", "'many'", "a whole number"]),
        ({"hidden": 0}, ["hidden", "0", "a whole number of at least 1"]),
        ({"hidden": 2.5}, ["hidden", "2.5"]),
        ({"particles": 2**40}, ["particles"]),
        ({"learning_rate": float("nan")}, ["learning_rate", "nan"]),
        ({"learning_rate": float("inf")}, ["learning_rate", "inf"]),
        ({"learning_rate": -1e-3}, ["learning_rate", "-0.001"]),
        ({"weight_decay": -0.1}, ["weight_decay", "-0.1"]),
        ({"bound": "vae"}, ["bound", "'vae'"]),
        ({"model": None}, ["model", "None"]),
        ({"smoothing": "yes"}, ["smoothing", "'yes'", "true or false"]),
        ({"ess_threshold": 1.5}, ["ess_threshold", "1.5"]),
        ({"seed": -1}, ["seed", "-1"]),
        ({"dataset": {"name": "jsb"}}, ["dataset", "text"]),
        ({"schedule": "linear"}, ["schedule", "'linear'", "one of constant, cosine"]),
        ({"warmup": -1}, ["warmup", "-1"]),
        ({"clip": -0.5}, ["clip", "-0.5"]),
        ({"average": 1.0}, ["average", "1.0"]),
        ({"bound": "iwae", "resampling": "systematic"}, ["resampling", "'iwae'"]),
    ],
)
def test_bad_settings(settings, parts):
    with pytest.raises(InputError) as refusal:
        make_settings(settings)
    assert_one_sentence(refusal.value, *parts)


@pytest.mark.parametrize("content", [b"hidden = ", b"\xff\xfe", None])
def test_unreadable_configurations(tmp_path, content):
    path = tmp_path / "settings.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as refusal:
        read_settings(path)
    assert_one_sentence(refusal.value, "settings.toml")


def test_a_folder_is_no_configuration(tmp_path):
    with pytest.raises(InputError) as refusal:
        read_settings(tmp_path)
    assert_one_sentence(refusal.value, str(tmp_path))


def test_a_path_is_kept_absolute_and_a_name_as_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "songs").mkdir()
    (tmp_path / "bach").mkdir()
    assert dataset_setting("songs") == str(tmp_path / "songs")
    assert dataset_setting("bach") == "bach"
    assert dataset_setting("jsb") == "jsb"


def test_sections_and_flat_names_are_the_same(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text(
        '[bound]\nkind = "iwae"\nparticles = 7\n[optimizer]\nkind = "adam"\nclip = 2.0\n[training]\nsteps = 3\n'
    )
    assert read_settings(path) == {"bound": "iwae", "particles": 7, "clip": 2.0, "steps": 3}


@pytest.mark.parametrize("section", ["optimizer", "data", "bound"])
def test_an_unknown_kind_of_a_section_is_refused(tmp_path, section):
    path = tmp_path / "settings.toml"
    path.write_text(f'[{section}]\nkind = "sgd"\n')
    with pytest.raises(InputError) as refusal:
        make_settings(read_settings(path))
    assert_one_sentence(refusal.value, section, "'sgd'")


def test_a_recipe_stands_for_its_settings():
    assert make_settings({"recipe": "paper"}) == make_settings({})
    tuned = make_settings({"recipe": "tuned", "dataset": "nottingham", "warmup": 7})
    assert (tuned.optimizer.learning_rate, tuned.optimizer.weight_decay) == (2e-3, 0.1)
    assert (tuned.optimizer.warmup, tuned.training.average) == (7, 0.999)  # what is given takes precedence
    jsb = make_settings({"recipe": "tuned", "dataset": "jsb", "weight_decay": 0.2})
    assert (jsb.optimizer.learning_rate, jsb.optimizer.weight_decay) == (3e-3, 0.2)
    assert make_settings({"seed": 3}, jsb).optimizer == jsb.optimizer
    exact = make_settings({"model": "linear-gaussian"}).optimizer.learning_rate
    assert make_settings({"recipe": "tuned", "model": "linear-gaussian"}).optimizer.learning_rate == exact != 2e-3


def test_recipes_that_cannot_be_are_one_sentence():
    with pytest.raises(InputError) as stop:
        make_settings({"recipe": "secret"})
    assert_one_sentence(stop.value, "paper, tuned", "'secret'")
    own = msgspec.structs.replace(DEFAULTS, optimizer=OwnOptimizer(optimizer_name="sgd"))
    with pytest.raises(InputError) as stop:
        make_settings({"recipe": "tuned"}, own)
    assert_one_sentence(stop.value, "recipe", "optimizer")
