"""Models, bounds and optimizers of a user's own through everything that a run has."""

import dataclasses
import json
import os
import re
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fivo
from fivo import open_run
from fivo.bounds import FIVO
from fivo.errors import InputError
from fivo.report import read_sources, report_page
from fivo.runs import check_run
from fivo.training import RunDirectory
from tests.fitting.killing import finish, kill_while_training
from tests.fitting.own import CASES, SETTINGS, STEPS, Pendulum, clipped_adamw, fit_own, make_pendulum, two_filters
from tests.music import environment
from tests.sentences import assert_one_sentence
from tests.training.runs import assert_same_run

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("FIVO_TEST_KILLS", "2"))


@pytest.fixture(scope="module")
def killed(tmp_path_factory, cache) -> tuple[Path, Path]:
    """All cases trained in one go, and by processes that were killed: the first case twice, each other once."""
    folder = tmp_path_factory.mktemp("own")
    whole, broken = folder / "whole", folder / "broken"
    variables = {**environment(cache), "JAX_COMPILATION_CACHE_DIR": str(cache / "own")}
    variables["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"

    def command(out: Path) -> list[str]:
        return [sys.executable, "-m", "tests.fitting.train_own", str(out)]

    finish(command(whole), variables, ROOT)
    rng = np.random.default_rng(0)
    for name in [*["function"] * (KILLS - 1), *CASES]:
        assert kill_while_training(command(broken), broken / name, variables, ROOT, rng) > 0
    finish(command(broken), variables, ROOT)
    return whole, broken


@pytest.mark.parametrize("case", CASES)
def test_killed_and_resumed_to_the_bit(killed, case):
    whole, broken = killed
    assert_same_run(RunDirectory(broken / case), RunDirectory(whole / case))
    assert RunDirectory(broken / case).result().steps == STEPS


@pytest.fixture(scope="module", params=CASES)
def case(request, killed) -> tuple[str, fivo.Run]:
    """A finished run, opened again with what the directory does not hold."""
    model, bound, data = (make() for make in CASES[request.param])
    return request.param, open_run(killed[0] / request.param, model=model, bound=bound, dataset=data)


def test_it_learned(case):
    name, run = case
    first, *_, last = run.history["bound"]
    assert last > first
    assert all(changes(CASES[name][0](), run.model)) or name == "mis"  # whose proposals are not the model's own
    assert any(changes(CASES[name][0](), run.model))


def changes(before, after) -> list[bool]:
    """Whether each array has moved."""
    arrays = [jax.tree.leaves(eqx.filter(part, eqx.is_inexact_array)) for part in (before, after)]
    return [bool(jnp.any(a != b)) for a, b in zip(*arrays, strict=True)]


def test_the_bound_learned_too(case):
    name, run = case
    before, after = CASES[name][1](), run.own_bound
    moved = changes(before, after)
    assert all(moved)
    assert bool(moved) == (name != "function")
    if name == "module":
        assert float(after.gate) > float(before.gate), "FIVO is the tighter of the two"


def test_it_is_evaluated_and_diagnosed(case):
    name, run = case
    score = run.evaluate(particles=4, repeats=2)
    own = run.settings.bound.bound_name
    assert list(score.bounds) == [own, "elbo", "iwae", "fivo"]
    assert score.reported.bound == own
    assert score.config["bound"] == own
    if name in ("module", "mis"):  # the other two have the same models
        found = run.diagnose(particles=(2,), num_sequences=2, repeats=2)
        assert found.verdict.culprit in ("proposal", "particles", "model")
    again = run.evaluate(bounds=(), particles=4, repeats=2, batch_size=1)  # its own comes by itself
    assert again.bounds[own].nats_per_step == pytest.approx(score.bounds[own].nats_per_step, abs=1e-5)
    # Without it the run is opened too, and scored with it as it was trained; any other objective will do as well.
    bare = dataclasses.replace(run, bound_template=None)
    given = bare.evaluate(bound=CASES[name][1](), particles=4, repeats=2)
    assert given.bounds == {own: score.bounds[own]}
    if name == "function":
        assert list(bare.evaluate(bound=FIVO(3), repeats=1).bounds) == ["FIVO"]
    with pytest.raises(InputError) as refused:
        run.evaluate(bound=FIVO(3), bounds=("elbo",))
    assert_one_sentence(refused.value, "without `bounds`")


def test_it_appears_on_the_page_and_is_whole(case):
    _, run = case
    page = report_page(read_sources([run.directory.path]))
    (charts,) = re.findall(r"<script[^>]*application/json[^>]*>(.*?)</script>", page, re.DOTALL)
    drawn = {chart["title"]: chart["lines"][0] for chart in json.loads(charts)["charts"]}
    assert drawn["Training bound (nats per timestep)"]["label"] == run.directory.path.name
    assert len(drawn["Validation bound (nats per timestep)"]["x"]) == 4
    assert all(status.status == "good" for status in check_run(run.directory.path))
    assert run.settings.model.model_name in repr(run)


def test_the_same_call_reads_what_is_done(killed):
    before = RunDirectory(killed[0] / "module").latest.read_bytes()
    run = fit_own("module", killed[0] / "module")
    assert run.result.steps == STEPS
    assert RunDirectory(killed[0] / "module").latest.read_bytes() == before


def test_a_function_makes_the_model_of_the_dataset(waves, killed, tmp_path):
    """The same model, and so the same run but for its name."""
    options = {"bound": two_filters, "optimizer": clipped_adamw(), **SETTINGS}
    run = fivo.fit(make_pendulum, waves, out=tmp_path / "run", **options)
    assert run.settings.model.model_name == "make_pendulum"
    assert run.settings.model.model_digest == RunDirectory(killed[0] / "function").config().model.model_digest
    opened = open_run(tmp_path / "run", model=make_pendulum, dataset=waves)
    assert jax.tree.all(jax.tree.map(lambda a, b: bool(jnp.all(a == b)), opened.model, run.model))


def test_a_run_says_what_it_does_not_hold(killed, waves):
    place = killed[0] / "function"
    with pytest.raises(InputError) as refused:
        _ = open_run(place, dataset=waves).model
    assert_one_sentence(refused.value, "Pendulum", "model=", "--model")
    with pytest.raises(InputError) as refused:
        open_run(place, model=Pendulum())
    assert_one_sentence(refused.value, "'waves'", "dataset")
    without = open_run(place, model=Pendulum(), dataset=waves)
    assert list(without.evaluate(particles=2, repeats=1).bounds) == ["elbo", "iwae", "fivo"]
