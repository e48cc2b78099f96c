"""Tables as CSV that a spreadsheet takes for text and numbers, never for formulas."""

import csv
import io

import pytest

from fivo.report import as_csv

EVIDENCE = {"run": "a", "commit": "c", "reported": "fivo"}


def table(**changes: object) -> list[dict[str, str]]:
    """The rows, as a spreadsheet reads them, of a summary with one cell."""
    cell = {
        "keys": {"bound": "fivo", "particles": 4}, "selected": [EVIDENCE], "note": "", "published": -6.9, "ours": -7.25,
        "standard_error": 0.002, "difference": -0.35, "runs_trained": 1, "runs_planned": 1,
    }  # fmt: skip
    summary = {"name": "table", "place": "Table 1", "unit": "nats", "cells": [cell | changes]}
    return list(csv.DictReader(io.StringIO(as_csv(summary), newline="")))


FORMULAS = ["=1+1", "+cmd", "-2+3", "@SUM(1)", "\t=1", "\r=1", "\n=1", "a\r=1", "a\n=1+1", "a\r\n=1", " =1", "a\x0b=1"]


@pytest.mark.parametrize("text", FORMULAS, ids=repr)
@pytest.mark.parametrize("place", ["key", "value", "evidence"])
def test_text_never_becomes_a_formula(text, place):
    if place == "key":
        (row,) = table(keys={text: 1})
        cell = list(row)[3]
    elif place == "value":
        (row,) = table(keys={"key": text})
        cell = row["key"]
    else:
        (row,) = table(selected=[EVIDENCE | {"run": text}])
        cell = row["runs"]
    for part in cell.splitlines() or [cell]:
        assert part.lstrip()[:1] not in ("=", "+", "-", "@"), cell
    assert cell.isprintable()


def test_numbers_stay_numbers():
    (row,) = table(keys={"learning_rate": "-3e-4", "shift": "+0.5", "offset": -2, "word": "1-2"})
    assert [row[key] for key in ("learning_rate", "shift", "offset", "word")] == ["-3e-4", "+0.5", "-2", "1-2"]
    assert [float(row[field]) for field in ("published", "ours", "difference")] == [-6.9, -7.25, -0.35]
