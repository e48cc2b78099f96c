"""Summaries of one experiment that were made at several places, as one."""

from collections.abc import Iterable
from typing import Any


def joined(summaries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """One summary for each experiment, by name; of cells and lines that several have, the last that has a result.

    Scores relative to a cell stay apart: each summary has subtracted a score of its own.
    """
    whole: dict[Any, dict[str, Any]] = {}
    for summary in summaries:
        name = summary["name"]
        key = (name, len(whole)) if summary.get("relative_to") else name
        whole[key] = _join(whole[key], summary) if key in whole else summary
    return sorted(whole.values(), key=lambda summary: summary["name"])


def _join(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    cells = {_identity(cell): cell for cell in first["cells"]}
    for cell in second["cells"]:
        if cell["ours"] is not None or _identity(cell) not in cells:
            cells[_identity(cell)] = cell
    return {
        **second,
        "cells": list(cells.values()),
        "figure": _join_figures(first["figure"], second["figure"]),
        "runs": list(dict.fromkeys([*first["runs"], *second["runs"]])),
    }


def _identity(cell: dict[str, Any]) -> frozenset[tuple[str, Any]]:
    return frozenset(cell["keys"].items())


def _join_figures(
    first: list[dict[str, Any]] | None, second: list[dict[str, Any]] | None
) -> list[dict[str, Any]] | None:
    if first is None or second is None:
        return first or second
    panels = {panel["title"]: panel for panel in first}
    for panel in second:
        before = panels.get(panel["title"], {"lines": []})["lines"]
        lines = {(line["run"], line["label"]): line for line in (*before, *panel["lines"])}
        panels[panel["title"]] = {**panel, "lines": list(lines.values())}
    return list(panels.values())
