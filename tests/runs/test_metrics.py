"""Lines of metrics: flat JSON for anybody, each with a checksum of its own."""

import json
import math

import pytest

from fivo.errors import InputError
from fivo.runs import RunDirectory, last_row
from tests.sentences import assert_one_sentence

ROWS = [{"step": step, "bound": -7.5 + 0.1 * step, "ess": 1.0} for step in (20, 40, 60)]


@pytest.fixture
def run(tmp_path):
    directory = RunDirectory(tmp_path)
    for row in ROWS:
        directory.append_metrics(row)
    return directory


def test_rows_come_back(run):
    assert run.metrics() == ROWS
    assert last_row(run.metrics_path) == ROWS[-1]


def test_a_line_is_a_flat_object_for_any_reader(run):
    lines = [json.loads(line, parse_constant=pytest.fail) for line in run.metrics_path.read_text().splitlines()]
    assert [{name: line[name] for name in line if name != "check"} for line in lines] == ROWS
    assert all(len(line["check"]) == 8 for line in lines)


def test_what_is_not_finite_is_null(run):
    run.append_metrics({"step": 80, "bound": math.nan, "test_kl": -math.inf})
    assert run.metrics()[-1] == {"step": 80, "bound": None, "test_kl": None}
    json.loads(run.metrics_path.read_text().splitlines()[-1], parse_constant=pytest.fail)


def test_every_flipped_bit_costs_its_own_lines_only(run, caplog):
    """A newline belongs to two lines; no flip leaves a wrong number, and none goes unsaid."""
    content = run.metrics_path.read_bytes()
    for place in range(len(content)):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[place] ^= 1 << bit
            run.metrics_path.write_bytes(flipped)
            caplog.clear()
            rows = run.metrics()
            assert all(row in ROWS for row in rows)
            assert len(ROWS) - len(rows) in ((1, 2) if content[place] == ord("\n") else (1,))
            assert len(caplog.records) == 1
            assert last_row(run.metrics_path) in rows


def test_a_line_cut_off_by_a_kill_is_left_out(run, caplog):
    whole = run.metrics_path.read_bytes()
    start = whole.rindex(b"\n", 0, -1) + 1
    for end in range(start, len(whole)):
        run.metrics_path.write_bytes(whole[:end])
        assert run.metrics() == (ROWS if end == len(whole) - 1 else ROWS[:2])
    assert not caplog.records


def test_damaged_files_are_kept_each_under_a_name_of_its_own(run, caplog):
    first = run.metrics_path.read_bytes()
    for number, name in enumerate(("metrics.damaged.jsonl", "metrics.damaged-2.jsonl")):
        run.metrics_path.write_bytes(first.replace(b"0", b"%d" % (number + 1), 1))
        damaged = run.metrics_path.read_bytes()
        for _ in range(2):  # the second time as if a kill had come before the repair
            run.metrics_path.write_bytes(damaged)
            run.forget_after(60)
            assert (run.path / name).read_bytes() == damaged
        assert run.metrics() == ROWS[1:]
    assert len(list(run.path.glob("*.damaged*"))) == 2
    assert_one_sentence(caplog.records[-1].getMessage(), "1 damaged line", "metrics.damaged-2.jsonl")


def test_lines_that_a_checkpoint_has_seen_and_that_are_gone_are_missed(run, caplog):
    run.forget_after(60)
    assert not caplog.records
    run.metrics_path.write_bytes(run.metrics_path.read_bytes()[:-40])
    run.forget_after(60)
    assert_one_sentence(caplog.records[-1].getMessage(), "metrics.jsonl", "ends at step 40 of 60")
    assert run.metrics() == ROWS[:2]


def test_a_folder_in_the_place_of_metrics(tmp_path):
    (tmp_path / "metrics.jsonl").mkdir()
    with pytest.raises(InputError) as refused:
        RunDirectory(tmp_path).metrics()
    assert_one_sentence(refused.value, "metrics.jsonl", "directory")
    assert last_row(tmp_path / "metrics.jsonl") is None
