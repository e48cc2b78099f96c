"""Jobs that crash, fail or vanish, with an executor that plays them."""

from concurrent.futures import CancelledError, Executor, Future

import pytest

from fivo.errors import InputError
from fivo.experiments.launching import MISTAKE, Outcome
from fivo.experiments.sweeping import sweep
from tests.experiments.made import made_experiment, write_evaluation, write_training
from tests.sentences import assert_one_sentence


class Played(Executor):
    """Does at once what `play(job, attempt)` says: an outcome, or an exception."""

    def __init__(self, out, experiment, play):
        self.out, self.play = out, play
        self.runs = {run.slug: run for run in experiment.runs}
        self.jobs = []

    def submit(self, function, job, /):
        slug = job["directory"].rpartition("/")[2]
        self.jobs.append((job["kind"], slug))
        future = Future()
        outcome = self.play(self.runs[slug], self.jobs.count((job["kind"], slug)))
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
            return future
        if outcome.code == 0:
            run = self.runs[slug]
            directory = write_training(self.out, run, -7.0 - run.settings.optimizer.learning_rate)
            for split in () if job["kind"] == "train" else job["splits"]:
                score = -7.0 if split == "test" else -7.0 - run.settings.optimizer.learning_rate
                write_evaluation(directory, run, {"fivo": score}, split)
        future.set_result(outcome)
        return future


GOOD, CRASH = Outcome(0, ""), Outcome(-9, "the process ended with code -9")


def played(tmp_path, play, capacity=1):
    experiment = made_experiment(grid=[{"dataset": "jsb", "bound": ["elbo", "fivo"], "learning_rate": [1e-3, 1e-4]}])
    executor = Played(tmp_path, experiment, play)
    return experiment, executor, sweep(experiment, tmp_path, executor, capacity=capacity)


@pytest.mark.parametrize("capacity", [1, 2, None])
def test_each_run_once_and_the_best_of_each_cell_evaluated(tmp_path, capacity):
    """Also when several jobs of a cell end at the same instant."""
    experiment, executor, finished = played(tmp_path, lambda run, attempt: GOOD, capacity)
    best = [run.slug for run in experiment.runs if run.settings.optimizer.learning_rate == 1e-4]
    assert sorted(executor.jobs) == sorted(
        [(kind, run.slug) for kind in ("train", "validate") for run in experiment.runs]
        + [("evaluate", slug) for slug in best]
    )
    assert not finished.failures
    assert [cell["ours"] for cell in finished.summary["cells"]] == [-7.0, -7.0]
    again = Played(tmp_path, experiment, lambda run, attempt: CRASH)
    sweep(experiment, tmp_path, again)
    assert again.jobs == []


@pytest.mark.parametrize(
    ("name", "content", "again"),
    [
        ("result.json", "{}", "train"),
        ("evaluation.json", '{"splits": []}', "validate"),
        ("evaluation.json", '{"splits": {"valid": {}}}', "validate"),
        ("evaluation.json", '{"splits": {"valid": 3, "test": []}}', "validate"),
    ],
)
def test_what_is_damaged_is_made_again(tmp_path, name, content, again):
    experiment, _, finished = played(tmp_path, lambda run, attempt: GOOD)
    slug = finished.summary["cells"][0]["selected"][0]["run"]
    (tmp_path / slug / name).write_text(content)
    executor = Played(tmp_path, experiment, lambda run, attempt: GOOD)
    assert sweep(experiment, tmp_path, executor, capacity=1).summary == finished.summary
    assert executor.jobs[0] == (again, slug)


def test_a_crash_is_tried_once_more(tmp_path):
    def play(run, attempt):
        return CRASH if run.settings.optimizer.learning_rate == 1e-4 and attempt == 1 else GOOD

    _, executor, finished = played(tmp_path, play)
    assert not finished.failures
    assert max(executor.jobs.count(job) for job in executor.jobs) == 2


def test_a_run_that_always_crashes_leaves_the_rest_alone(tmp_path):
    def play(run, attempt):
        return CRASH if run.settings.optimizer.learning_rate == 1e-4 else GOOD

    experiment, executor, finished = played(tmp_path, play)
    lost = [run.slug for run in experiment.runs if run.settings.optimizer.learning_rate == 1e-4]
    assert list(finished.failures) == lost
    assert all(executor.jobs.count(("train", slug)) == 2 for slug in lost)
    assert all(cell["runs_trained"] == 1 and cell["ours"] == -7.0 for cell in finished.summary["cells"])


def test_a_run_whose_validation_fails_is_not_selected(tmp_path):
    experiment = made_experiment(
        grid=[{"dataset": "jsb", "bound": "fivo", "learning_rate": [1e-3, 1e-4]}], published=[]
    )
    worse, better = experiment.runs
    executor = Played(tmp_path, experiment, lambda run, attempt: GOOD)
    sweep(experiment, tmp_path, executor, runs=[better], capacity=1)
    assert executor.jobs == [("train", better.slug), ("evaluate", better.slug)]  # alone, it needs no validation

    def play(run, attempt):
        return CRASH if run == better else GOOD

    executor = Played(tmp_path, experiment, play)
    finished = sweep(experiment, tmp_path, executor, capacity=1)
    assert list(finished.failures) == [better.slug]
    assert [job for job in executor.jobs if job[1] == better.slug] == [("validate", better.slug)] * 2
    assert ("evaluate", worse.slug) in executor.jobs
    assert finished.summary["cells"][0]["selected"][0]["run"] == worse.slug


def test_a_mistake_is_not_tried_again(tmp_path):
    sentence = "the bound became NaN at step 7; go on with another setting."
    experiment, executor, finished = played(tmp_path, lambda run, attempt: Outcome(MISTAKE, sentence))
    assert set(finished.failures.values()) == {sentence}
    assert len(executor.jobs) == len(experiment.runs)


def test_a_worker_that_died_too_often_is_a_crash(tmp_path):
    _, _, finished = played(tmp_path, lambda run, attempt: RuntimeError("worker died") if attempt == 1 else GOOD)
    assert not finished.failures


def test_a_lost_scheduler_is_one_sentence(tmp_path):
    with pytest.raises(InputError) as stop:
        played(tmp_path, lambda run, attempt: CancelledError("lost"))
    assert_one_sentence(stop.value, "scheduler", "same command")
