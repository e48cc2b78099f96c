"""What cannot be continued, trained or opened is refused in one sentence, before anything is changed."""

import dataclasses
import functools
from typing import Any

import jax.numpy as jnp
import jaxtyping
import optax
import pytest
from jaxtyping import Array, Float

import fivo
from fivo import open_run
from fivo._scoring import evidence_of
from fivo.bounds import FIVO
from fivo.errors import InputError
from fivo.resampling import ESSBelow
from fivo.training import Update, digest
from tests.fitting.own import Blend, Pendulum, two_filters
from tests.sentences import assert_one_sentence

FEW = {"steps": 4, "batch_size": 2, "validate_every": 4, "log_every": 2, "progress": False}


def mine(**changes: Any) -> dict[str, Any]:
    """A call of `fit`, but for some arguments."""
    made = {"model": Pendulum(), "bound": FIVO(2), "optimizer": optax.adam(0.01), "config": {"rate": 0.01}, **FEW}
    return {**made, **changes}


def pull(model: Pendulum, data: Any, *, key: Any) -> Float[Array, ""]:
    return model.damping**2


def push(model: Pendulum, data: Any, *, key: Any) -> Float[Array, ""]:
    return -model.damping


def update(**changes: Any) -> Update:
    made = {"name": "friction", "where": lambda m: m.damping, "loss": pull, "optimizer": optax.sgd(0.1)}
    return Update(**{**made, **changes})


@pytest.fixture(scope="module")
def kept(waves, tmp_path_factory) -> fivo.Run:
    return fivo.fit(data=waves, out=tmp_path_factory.mktemp("runs") / "kept", **mine())


@pytest.fixture(scope="module")
def chosen(waves, tmp_path_factory) -> fivo.Run:
    """A run with an update, whose best step another objective chooses."""
    out = tmp_path_factory.mktemp("runs") / "chosen"
    return fivo.fit(data=waves, out=out, **mine(updates=[update()], validation=FIVO(5)))


def refusal(**arguments: Any) -> str:
    with pytest.raises(InputError) as refused:
        fivo.fit(**arguments)
    return str(refused.value)


class Spring(Pendulum):
    """Another class with the same arrays."""


class Longer(Pendulum):
    """More arrays under the same name."""

    more: Float[Array, " three"]

    def __init__(self) -> None:
        super().__init__()
        self.more = jnp.zeros(3)


Longer.__qualname__ = Pendulum.__qualname__

OTHERS = {
    "another class": ({"model": Spring()}, ["Pendulum", "Spring"]),
    "another structure": ({"model": Longer()}, ["another model", "structure"]),
    "other first values": ({"model": Pendulum(2.0)}, ["another model", "first values"]),
    "a model of ours": ({"model": "vrnn"}, ["model='own'", "'vrnn'"]),
    "another bound": ({"bound": two_filters}, ["FIVO", "two_filters"]),
    "a bound of other settings": ({"bound": FIVO(3)}, ["another bound"]),
    "a bound of another criterion": ({"bound": FIVO(2, criterion=ESSBelow(0.25))}, ["another bound"]),
    "a bound of ours": ({"bound": "fivo", "particles": 2}, ["bound='own'", "'fivo'"]),
    "another optimizer": ({"optimizer": optax.sgd(0.01, momentum=0.9)}, ["another optimizer"]),
    "an optimizer of ours": ({"optimizer": None}, ["optimizer='own'", "'adam'"]),
    "another config": ({"config": {"rate": 0.02}}, ["config=", "0.01", "0.02"]),
    "no config": ({"config": None}, ["config=", "0.01"]),
    "another seed": ({"seed": 1}, ["seed=0", "1"]),
    "an average": ({"average": 0.9}, ["average=0.0", "0.9"]),
    "an update": (
        {"updates": [Update("more", lambda m: m.damping, lambda m, data, key: m.damping, optax.sgd(0.1))]},
        ["updates", "more"],
    ),
}


@pytest.mark.parametrize(("changes", "parts"), OTHERS.values(), ids=OTHERS)
def test_another_run_in_the_same_place(kept, waves, changes, parts):
    before = {path: path.read_bytes() for path in kept.directory.path.rglob("*") if path.is_file()}
    sentence = refusal(data=waves, out=kept.directory.path, **mine(**changes))
    assert_one_sentence(sentence, str(kept.directory.path), "--out", *parts)
    assert {path: path.read_bytes() for path in kept.directory.path.rglob("*") if path.is_file()} == before


CHOOSERS = {
    "another number of particles": ({"validation": FIVO(6)}, ["another 'FIVO'"]),
    "another objective": ({"validation": two_filters}, ["'FIVO'", "'two_filters'"]),
    "none": ({"validation": None}, ["'FIVO'", "the objective itself"]),
    "another loss": ({"updates": [update(loss=push)]}, ["updates", "'friction'"]),
    "other data": ({"updates": [update(data=pull)]}, ["updates", "'friction'"]),
    "another part of the model": ({"updates": [update(where=lambda m: m.frequency)]}, ["updates", "'friction'"]),
    "another value of a partial": (
        {"updates": [update(loss=functools.partial(pull, data=2))]},
        ["updates", "'friction'"],
    ),
    "no update": ({"updates": []}, ["updates", "'friction'"]),
}


@pytest.mark.parametrize(("changes", "parts"), CHOOSERS.values(), ids=CHOOSERS)
def test_another_validation_or_update_in_the_same_place(chosen, waves, changes, parts):
    same = {"updates": [update()], "validation": FIVO(5)}
    sentence = refusal(data=waves, out=chosen.directory.path, **mine(**{**same, **changes}))
    assert_one_sentence(sentence, str(chosen.directory.path), "--out", *parts)


def test_the_same_validation_and_update_made_again_are_the_same_run(chosen, waves):
    again = fivo.fit(data=waves, out=chosen.directory.path, **mine(updates=[update()], validation=FIVO(5)))
    assert again.result == chosen.result


def test_the_same_objects_made_again_are_the_same_run(kept, waves):
    again = fivo.fit(data=waves, out=kept.directory.path, **mine())
    assert again.result == kept.result


def plain(x):
    return x


@dataclasses.dataclass
class Settled:
    rate: float


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (FIVO(2), FIVO(2, resampling="systematic")),
        (FIVO(2), FIVO(3)),
        (FIVO(2), FIVO(2, criterion=ESSBelow(0.1))),
        (Blend(jnp.asarray(0.0)), Blend(jnp.asarray(1e-7))),
        (Pendulum(), Pendulum(1.5)),
        ({"a": 1, "b": 2.0}, {"a": 1, "b": 2.5}),
        ([jnp.zeros(2)], [jnp.zeros(2, int)]),
        ([jnp.zeros(2)], [jnp.zeros((2, 1))]),
        (plain, refusal),
        (functools.partial(plain, x=1), functools.partial(plain, x=2)),
        (Settled(1.0), Settled(2.0)),
    ],
    ids=[
        "scheme",
        "number",
        "criterion",
        "array",
        "model",
        "dictionary",
        "type",
        "shape",
        "function",
        "partial",
        "dataclass",
    ],
)
def test_digests_tell_things_apart(one, other):
    assert digest(one) != digest(other)
    assert digest(one) == digest(one)


WRONG = {
    "an optimizer that is a number": ({"optimizer": 0.01}, ["optax", "0.01"]),
    "an optimizer that is a name": ({"optimizer": "adam"}, ["optax", "'adam'"]),
    "an optimizer that is not called": ({"optimizer": optax.adam}, ["optax", "adam"]),
    "a bound that is a number": ({"bound": 4}, ["bound", "callable", "4"]),
    "a bound that is a class": ({"bound": FIVO}, ["the class FIVO"]),
    "a bound that takes no key": ({"bound": lambda model, batch: 0.0}, ["bound(model, batch, key=key)"]),
    "a validation that is a number": ({"validation": 4}, ["callable", "4"]),
    "a callback that is a number": ({"callbacks": [3]}, ["callbacks", "3"]),
    "a bound that is no name": ({"bound": "vae"}, ["bound", "'vae'", "fivo"]),
    "a model that is a number": ({"model": 3}, ["SequenceModel", "3"]),
    "a model that is no name": ({"model": "hmm"}, ["'hmm'", "vrnn"]),
    "a function that makes no model": ({"model": lambda dataset: dataset.name}, ["SequenceModel", "'waves'"]),
    "an unknown setting": ({"lerning_rate": 0.1}, ["'lerning_rate'", "learning_rate"]),
    "a bad setting": ({"steps": 0}, ["steps", "0", "at least 1"]),
    "a model and its settings": ({"hidden": 3}, ["hidden", "model"]),
    "a bound and its settings": ({"particles": 3}, ["particles", "bound"]),
    "an optimizer and its settings": ({"learning_rate": 0.1}, ["learning_rate", "optimizer"]),
    "data and their name": ({"dataset": "jsb"}, ["dataset", "twice"]),
    "data and their settings": ({"frame": 10}, ["frame", "data"]),
    "a config that is no plain value": ({"config": {"rate": optax.adam(0.1)}}, ["config", "rate", "plain"]),
    "a config of nothing": ({"config": {"rate": None}}, ["config", "rate", "plain"]),
    "nothing to start from": ({"init_from": "nowhere"}, ["nowhere"]),
}


@pytest.fixture
def unannotated():
    """Users run without the type checker of the tests, which would speak first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.parametrize(("changes", "parts"), WRONG.values(), ids=WRONG)
def test_mistakes_in_a_call(unannotated, waves, tmp_path, changes, parts):
    assert_one_sentence(refusal(data=waves, out=tmp_path / "run", **mine(**changes)), *parts)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [({"name": "two words"}, "'two words'"), ({"name": "objective"}, "objective"), ({"repeats": 0}, "0")],
)
def test_updates_that_are_none(arguments, part):
    made = {"name": "more", "where": lambda m: m.damping, "loss": lambda m, data, key: 0.0, "optimizer": optax.sgd(0.1)}
    with pytest.raises(InputError) as refused:
        Update(**{**made, **arguments})
    assert_one_sentence(refused.value, part)


@pytest.mark.parametrize("returned", [3.0, jnp.zeros((2, 2)), jnp.zeros(())], ids=["float", "matrix", "scalar"])
def test_what_a_bound_must_return(unannotated, returned):
    with pytest.raises(InputError) as refused:
        evidence_of(returned, 2)
    assert_one_sentence(refused.value, "bound", "(2,)", "got")
    assert evidence_of(jnp.zeros(2), 2).shape == (2,)


def test_two_updates_of_one_name(waves, tmp_path):
    update = Update("more", lambda m: m.damping, lambda m, data, key: m.damping, optax.sgd(0.1))
    assert_one_sentence(refusal(data=waves, out=tmp_path / "run", **mine(updates=[update, update])), "name")


def test_opening_what_needs_a_model_without_one(kept, waves):
    with pytest.raises(InputError) as refused:
        _ = open_run(kept.directory.path, dataset=waves).model
    assert_one_sentence(refused.value, "Pendulum", "open_run(path, model=...)", "--model")
    with pytest.raises(InputError) as refused:
        _ = open_run(kept.directory.path, dataset=waves, model=Longer()).model
    assert_one_sentence(refused.value, "best.safetensors")


def test_opening_a_run_of_ours_with_a_model(fivo_run, music):
    with pytest.raises(InputError) as refused:
        open_run(fivo_run.directory.path, model=Pendulum(), dataset=music)
    assert_one_sentence(refused.value, "'vrnn'", "leave `model` out")


def test_starting_from_a_run_of_another_model(fivo_run, waves, tmp_path):
    sentence = refusal(data=waves, out=tmp_path / "run", **mine(init_from=str(fivo_run.directory.path)))
    assert_one_sentence(sentence, "best.safetensors")
    assert not (tmp_path / "run").exists()
