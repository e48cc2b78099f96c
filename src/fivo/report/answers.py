"""The answer of a report page in a few sentences, above everything that leads to it."""

from typing import Any

from fivo.report.grid import number_text, signed
from fivo.report.reading import Sources

MOST_ANSWERS = 6


def answers(sources: Sources, series: list[dict[str, Any]]) -> list[str]:
    """What the results amount to: tables compared with the paper's, alarms found, and the best run of each dataset."""
    found = [sentence for summary in sources.summaries if (sentence := _of_table(summary))]
    found += [
        f"{kept['alarms']:,} alarm{'s' * (kept['alarms'] != 1)} in {kept['rows']:,} rows of {kept['table']}, at a "
        f"false-alarm rate of {kept['rate']:g}."
        for kept in series
        if kept["rate"] is not None
    ]
    if not sources.summaries:
        found += _of_runs(sources)
    return found[:MOST_ANSWERS]


def _of_table(summary: dict[str, Any]) -> str:
    compared = [cell for cell in summary["cells"] if cell["difference"] is not None]
    if not compared or summary["unit"] == "measure":  # of which it may be the smaller that is better
        return ""
    reached = sum(cell["difference"] >= 0 for cell in compared)
    best = max(compared, key=lambda cell: cell["difference"])
    named = ", ".join(f"{key} {value}" for key, value in best["keys"].items())
    unit = summary["unit"]
    return (
        f"{summary['place']}: {reached} of {len(compared)} numbers reach the paper's; the best in comparison is "
        f"{number_text(best['ours'], unit, 1)} ({signed(best['difference'], unit)}) for {named}."
    )


def _of_runs(sources: Sources) -> list[str]:
    best: dict[str, Any] = {}
    for run in sources.runs:
        if run.result is not None:
            name = run.settings.get("dataset", "")
            if name not in best or run.result["best_validation"] > best[name].result["best_validation"]:
                best[name] = run
    return [
        f"Best on the validation data{f' of {name}' if name else ''}: {run.label}, {run.result['best_validation']:.4f} "
        f"nats per timestep at step {run.result['best_step']:,} of {run.result['steps']:,}."
        for name, run in best.items()
    ]
