"""The figures of docs/learn/vessels.md are those of results/vessels.json."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_is_that_of_its_file():
    found = json.loads((ROOT / "results" / "vessels.json").read_text())
    text = (ROOT / "docs" / "learn" / "vessels.md").read_text()
    for title, name in (("VRNN, FIVO", "fivo"), ("threshold", "threshold")):
        row = found[name]
        kinds = [f"{row['recall_by_deviation'][kind]:.1f}" for kind in ("detour", "jump", "loitering", "speed")]
        cells = [f"{row['recall']:.2f}", f"{row['precision']:.2f}", f"{row['false_alarm_rate']:.1%}".replace("%", " %")]
        assert f"| {title} | {' | '.join([*cells, *kinds])} |" in text
    assert found["tracks"] == {"train": 600, "valid": 100, "calibrate": 500, "new": 2000, "deviating": 40}
