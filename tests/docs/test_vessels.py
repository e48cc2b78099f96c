"""The figures of docs/learn/vessels.md are those of results/vessels.json."""

import json
from pathlib import Path

import numpy as np
from scipy import stats

ROOT = Path(__file__).parents[2]
FOUND = json.loads((ROOT / "results" / "vessels.json").read_text())
TEXT = " ".join((ROOT / "docs" / "learn" / "vessels.md").read_text().split())


def test_the_table_is_that_of_its_file():
    for title, name in (("VRNN, FIVO", "fivo"), ("threshold", "threshold")):
        rows = [seed[name] for seed in FOUND["seeds"]]
        kinds = [
            [row["recall_by_deviation"][kind] for row in rows] for kind in ("detour", "jump", "loitering", "speed")
        ]
        of = {key: [row[key] for row in rows] for key in ("recall", "precision", "false_alarm_rate")}
        cells = [_cell(of["recall"], "{:.2f}"), _cell(of["precision"], "{:.2f}")]
        cells.append(_cell(100 * np.array(of["false_alarm_rate"]), "{:.1f}") + " %")
        assert f"| {title} | {' | '.join([*cells, *(f'{np.mean(kind):.1f}' for kind in kinds)])} |" in TEXT
    assert FOUND["tracks"] == {"train": 600, "valid": 100, "calibrate": 500, "new": 2000, "deviating": 40}


def _cell(values, form):
    """The mean over seeds, with their standard deviation if there are several."""
    spread = "" if len(values) == 1 else f" ± {form.format(np.std(values, ddof=1))}"
    return form.format(np.mean(values)) + spread


def test_how_uncertain_a_calibration_is():
    for tracks, said in ((500, "between 0.3 % and 2.0 %"), (2000, "0.6 % to 1.5 %")):
        rank = int(FOUND["rate"] * (tracks + 1))
        low, high = stats.beta(rank, tracks + 1 - rank).interval(0.95)
        assert said.replace("between ", "").replace(" and ", " to ") == f"{100 * low:.1f} % to {100 * high:.1f} %"
        assert said in TEXT
