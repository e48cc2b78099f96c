"""FIVO with N = 4 on music: the paper, others, and ours. `python docs/tables/headline.py` prints the README's table."""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[2] / "results"
SETS = {"jsb": "JSB chorales", "nottingham": "Nottingham", "musedata": "MuseData", "piano-midi": "Piano-midi.de"}
OTHERS = {"jsb": -7.51, "nottingham": -3.07, "musedata": -6.75, "piano-midi": -7.85}
"""VSMC-PRC (2021), which trained FIVO with N = 5."""


def as_markdown() -> str:
    """The table, from the files under `results/`."""
    table1, tuned, released = (
        json.loads((RESULTS / f"{name}.json").read_text()) for name in ("table1", "tuned", "released")
    )
    weights = {
        row["dataset"]: row["reported"]["nats_per_step"] for row in released["checkpoints"] if row["bound"] == "fivo"
    }
    lines = [
        "| | paper | released code's weights | VSMC-PRC, N = 5 | ours, the paper's settings | ours, tuned |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, title in SETS.items():
        first, second = _cell(table1, name), _cell(tuned, name)
        cells = [
            _number(first["published"], 2),
            _number(weights.get(name), 2),
            _number(OTHERS[name], 2),
            _number(first["ours"], 2),
            _number(second["ours"], 2) + _spread(second),
        ]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(summary: dict[str, Any], dataset: str) -> dict[str, Any]:
    keys = {"dataset": dataset, "particles": 4, "bound": "fivo"}
    (found,) = (cell for cell in summary["cells"] if keys.items() <= cell["keys"].items())
    return found


def _number(value: float | None, decimals: int) -> str:
    return "–" if value is None else f"{value:.{decimals}f}"


def _spread(cell: dict[str, Any]) -> str:
    seeds = len(cell["selected"])
    if not seeds:
        return ""
    return " (one seed)" if seeds == 1 else f" ± {cell['deviation']:.2f} ({seeds} seeds)"


if __name__ == "__main__":
    print(as_markdown())
