"""What a person sees of a long job."""

import time

import pytest

from fivo._terminal.progress import Bar, TrainingProgress, summary
from fivo.runs import Result


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_quiet_lines_every_ten_seconds_and_at_the_end(capsys, clock):
    with Bar("working", 40) as bar:
        for done in range(1, 41):
            clock[0] += 1
            bar.update(done)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "working 11/40, 0:00:29 left"
    assert lines[-1] == "working 40/40, 0:00:00 left"
    assert len(lines) == 4


def test_an_unknown_total_has_no_time_left(capsys, clock):
    with Bar("fetching") as bar:
        bar.update(10)
        clock[0] += 11
        bar.update(20)
    assert capsys.readouterr().err.splitlines() == ["fetching 20"]


def test_training_shows_rate_time_left_and_the_last_bounds(capsys, clock):
    progress = TrainingProgress(7300)
    with progress:
        progress({"step": 50, "steps_per_second": 2.0, "bound": -8.25, "validation": -8.5})
        clock[0] += 20
        progress({"step": 100, "steps_per_second": 2.0, "bound": -8.125})
    assert capsys.readouterr().err.splitlines() == [
        "training 100/7300, 1:00:00 left, 2.0 steps/s, bound -8.125, validation -8.500"
    ]


def test_compiling_is_said_at_once(capsys):
    with TrainingProgress(100) as progress:
        progress.compiling("a training step")
    assert capsys.readouterr().err.splitlines() == ["training: compiling a training step"]


def test_how_it_ended(capsys, tmp_path):
    result = Result(40, 30, -8.12345, stopped_early=True, seconds=61.0, compilations=1)
    summary(tmp_path, result)
    said = capsys.readouterr().out
    assert "stopped early" in said
    assert "-8.1235 nats per step at step 30" in said
