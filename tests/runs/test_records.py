"""Records: what is written comes back, and whatever else a file holds is refused in one sentence."""

import json
import math

import msgspec
import pytest

from fivo.errors import InputError
from fivo.runs import Provenance, Result, RunDirectory, read_record, write_record
from tests.sentences import assert_one_sentence

RESULT = Result(steps=120, best_step=80, best_validation=-6.25, stopped_early=False, seconds=1e16, compilations=2)
RUN = "0123456789abcdef"


@pytest.fixture
def path(tmp_path):
    write_record(tmp_path / "result.json", RESULT, run=RUN)
    return tmp_path / "result.json"


def refusal(path, kind=Result, run=RUN):
    with pytest.raises(InputError) as refused:
        read_record(path, kind, run=run)
    return refused.value


def test_a_record_comes_back(path):
    assert read_record(path, Result, run=RUN) == RESULT
    content = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert list(content)[:3] == ["format", "kind", "run"]
    assert (content["format"], content["kind"], content["run"]) == (1, "result", RUN)
    assert len(content["sha256"]) == 64


@pytest.mark.parametrize("value", [0.1 + 0.2, -0.0, 5e-324, 1.7e308, 1e22, 123456789.0, 1.0, -1e-7])
def test_numbers_come_back_to_the_bit(tmp_path, value):
    write_record(tmp_path / "x", msgspec.structs.replace(RESULT, best_validation=value), run=RUN)
    back = read_record(tmp_path / "x", Result, run=RUN).best_validation
    assert (back, math.copysign(1, back)) == (value, math.copysign(1, value))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_numbers_that_json_does_not_have_are_not_written(tmp_path, value):
    with pytest.raises(InputError) as refused:
        write_record(tmp_path / "x", msgspec.structs.replace(RESULT, best_validation=value))
    assert_one_sentence(refused.value, "result", "best_validation")
    assert not (tmp_path / "x").exists()


def test_other_spaces_are_no_damage(path):
    path.write_text(json.dumps(json.loads(path.read_text())))
    assert read_record(path, Result, run=RUN) == RESULT


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"steps": 121}, "checksum"),
        ({"note": "hello"}, "checksum"),
        ({"format": 2}, "format 2"),
        ({"format": None}, "format None"),
        ({"sha256": "0" * 64}, "checksum"),
        ({"sha256": None}, "checksum"),
        ({"run": "another"}, "checksum"),
    ],
    ids=str,
)
def test_changed_by_hand(path, change, part):
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert_one_sentence(refusal(path), "result.json", part)


CONTENTS = {
    "nothing": b"",
    "no JSON": b"{",
    "a list": b"[1]",
    "no text": b"\xff\xfe",
    "nested": b'{"a":' * 100_000,
    "digits": b'{"steps": ' + b"1" * 100_000 + b"}",
    "half a character": b'{"steps": "\\ud800"}',
    "NaN": b'{"steps": NaN}',
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_what_is_no_record(path, content):
    path.write_bytes(content)
    assert_one_sentence(refusal(path), "result.json", "damaged", Result.REMEDY)
    assert len(str(refusal(path))) < 400


def test_records_of_other_kinds_runs_and_times(path):
    assert_one_sentence(refusal(path, Provenance), "'result'", "'provenance'")
    assert_one_sentence(refusal(path, run="fedcba9876543210"), RUN, "another run")
    path.write_text(json.dumps(msgspec.to_builtins(RESULT)))
    assert_one_sentence(refusal(path), "development version of fivo 0.1", "checksums")


class Odd(Result):
    """As another program may write it."""

    more: int = 3


def test_a_record_with_other_fields_and_a_right_checksum(tmp_path):
    write_record(tmp_path / "x", Odd(120, 80, -6.25, False, 1.0, 2), run=RUN)
    assert_one_sentence(refusal(tmp_path / "x"), "damaged", "more")


def test_no_file(tmp_path):
    assert_one_sentence(refusal(tmp_path / "x"), "cannot be read", "No such file")
    with pytest.raises(InputError) as refused:
        RunDirectory(tmp_path).result()
    assert_one_sentence(refused.value, "result.json")


def test_a_setting_that_is_no_text(tmp_path):
    with pytest.raises(InputError) as refused:
        RunDirectory(tmp_path).write_settings({"dataset": "odd \udcff"})
    assert_one_sentence(refused.value, "odd", "rename")


@pytest.mark.parametrize(
    "content", [b"a = ", b"\xff", b"a = " + b"[" * 100_000, b"a = " + b"1" * 100_000, b"record = 3\nsha256 = 1"],
    ids=["no TOML", "no text", "nested", "digits", "no table"],
)  # fmt: skip
def test_damaged_settings(tmp_path, content):
    (tmp_path / "config.toml").write_bytes(content)
    with pytest.raises(InputError) as refused:
        RunDirectory(tmp_path).settings()
    assert_one_sentence(refused.value, "config.toml", "damaged", "--override")
