"""Summaries of one experiment that were made at several places, as one."""

from collections.abc import Iterable
from typing import Any

from fivo.errors import InputError
from fivo.runs import average_of

SHARED = ("unit", "particles", "repeats", "relative_to")


def joined(summaries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """One summary for each experiment, by name.

    A cell that several summaries have gets the runs of all of them; of runs with the same seed, and of lines of a
    figure, the last counts.
    """
    whole: dict[str, dict[str, Any]] = {}
    for summary in summaries:
        name = summary["name"]
        whole[name] = _join(whole[name], summary) if name in whole else summary
    return sorted(whole.values(), key=lambda summary: summary["name"])


def _join(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    if first == second:
        return first
    other = [key for key in SHARED if first.get(key) != second.get(key)]
    if other or first["relative_to"]:
        # Each summary of relative scores has subtracted its own baseline.
        reason = f"they differ in {', '.join(other)}" if other else "their scores are relative to different runs"
        raise InputError(f"the summaries of {first['name']!r:.60} cannot be joined, as {reason}; report them apart.")
    cells = {_identity(cell): cell for cell in first["cells"]}
    for cell in second["cells"]:
        before = cells.get(_identity(cell))
        cells[_identity(cell)] = cell if before is None else _join_cells(before, cell)
    return {
        **second,
        "cells": list(cells.values()),
        "figure": _join_figures(first["figure"], second["figure"]),
        "runs": list(dict.fromkeys([*first["runs"], *second["runs"]])),
    }


def _join_cells(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    if first["ours"] is None or second["ours"] is None:
        return first if second["ours"] is None else second
    runs = {run["config"]["seed"]: run for run in (*first["selected"], *second["selected"])}
    selected = [runs[seed] for seed in sorted(runs)]
    cell = {**second, "selected": selected, **average_of(selected)}
    trained = max(first["runs_trained"], second["runs_trained"], len(selected))
    published = cell["published"]
    return {
        **cell,
        "runs_trained": min(trained, cell["runs_planned"]),
        "difference": None if published is None else cell["ours"] - published,
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
