"""A run that is asked to stop saves a checkpoint of the step that it has reached, and ends in the same bits."""

import numpy as np
import pytest

from fivo.errors import InputError
from fivo.runs import check_run
from fivo.training import RunDirectory, Stopped, Watchers
from fivo.training.session import Session
from fivo.training.window import Window
from tests.music import tiny_plan, train_tiny
from tests.sentences import assert_one_sentence
from tests.training.runs import assert_same_run


def stop_after(steps: int):
    """Says yes once, before the step after this many."""
    answers = iter([*[False] * steps, True])
    return lambda: next(answers)


def test_stopped_between_lines_at_lines_and_at_validations(tmp_path, music, fivo_run, caplog):
    """Twice before the same line, too, which then is still of all its steps."""
    reached = 0
    for steps in (7, 2, 11, 20, 33, 7):
        with pytest.raises(Stopped):
            train_tiny(tmp_path, music, watchers=Watchers(stop=stop_after(steps)))
        reached += steps
        assert RunDirectory(tmp_path).progress().step == reached
    assert reached == 80  # the second validation
    train_tiny(tmp_path, music)
    assert_same_run(RunDirectory(tmp_path), fivo_run.directory)
    assert not caplog.records
    assert RunDirectory(tmp_path).progress().unlogged == ()


def test_nothing_is_saved_before_the_first_step(tmp_path, music):
    with pytest.raises(Stopped):
        train_tiny(tmp_path, music, watchers=Watchers(stop=lambda: True))
    assert not RunDirectory(tmp_path).latest.exists()


def test_a_state_that_is_not_finite_is_not_saved(tmp_path, music):
    session = Session(tiny_plan(music), RunDirectory(tmp_path))
    window = Window(
        session.trainer, [{"bound": -7.0, "kl": np.nan, "ess": 1.0, "resampling_rate": 0.0, "gradient_norm": 1.0}]
    )
    session.note(step=1)
    with pytest.raises(InputError) as stop:
        session.pause(window, 1.0)
    assert_one_sentence(stop.value, "kl", "step 1;")
    assert not RunDirectory(tmp_path).latest.exists()


@pytest.mark.parametrize("steps", [7, 27, 47])
def test_no_more_steps_than_until_the_pause(tmp_path, music, steps):
    """Before the first line, before the first validation, and after it: the last step is logged and validated."""
    with pytest.raises(Stopped):
        train_tiny(tmp_path / "run", music, watchers=Watchers(stop=stop_after(steps)))
    train_tiny(tmp_path / "run", music, steps=steps)
    train_tiny(tmp_path / "whole", music, steps=steps)
    assert_same_run(RunDirectory(tmp_path / "run"), RunDirectory(tmp_path / "whole"))
    assert all(status.status == "good" for status in check_run(tmp_path / "run"))
