"""Builds `src/fivo/data/energy/`, the tables of `fivo demo tables`: the hourly electricity of three made-up buildings.

    python scripts/build_energy.py [FOLDER]

Load in kW is a daily profile that differs between workdays and weekends, a level of each building that drifts, heating
below 15 °C, and noise that lasts for a few hours. `history.csv` is what a model is trained on, five weeks. `new.csv` is
the week after it, with 3 % of the cells missing, an outage of a meter for 14 hours, and four injected events that the
column `event` names; no command reads that column. `next.csv` has the calendar and the temperature, as a weather
forecast would have them, of the two days that follow. The same seed and numpy give the same files, byte for byte.
"""

import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parents[1] / "src" / "fivo" / "data" / "energy"
SEED = 7
BEGIN = np.datetime64("2024-02-05T00", "h")  # a Monday
HISTORY, NEW, NEXT = 5 * 7 * 24, 7 * 24, 2 * 24
BUILDINGS = {"library": 22.0, "school": 28.0, "townhall": 25.0}
WORKDAY = [0, 0, 0, 0, 0, 1, 4, 9, 14, 16, 17, 17, 15, 16, 17, 16, 13, 9, 6, 4, 3, 2, 1, 0]
WEEKEND = [0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 5, 6, 6, 6, 5, 5, 4, 3, 2, 1, 1, 0, 0, 0]
HEATING = 0.6
"""kW for every degree below 15."""
EVENTS = {
    "school": [("spike", 31, 2), ("left on", 116, 10)],
    "townhall": [("meter stuck", 56, 12)],
    "library": [("power cut", 83, 3)],
}
"""What happens, at which hour of the new week, and for how many."""
OUTAGE = ("library", 124, 14)
MISSING = 0.03


def drifting(rng: np.random.Generator, steps: int, keep: float, deviation: float) -> np.ndarray:
    """An autoregression of the first order with a standard deviation."""
    found = np.zeros(steps)
    found[0] = deviation * rng.normal()
    for t in range(1, steps):
        found[t] = keep * found[t - 1] + deviation * np.sqrt(1 - keep**2) * rng.normal()
    return found


def happened(kind: str, load: np.ndarray, begin: int, hours: int) -> np.ndarray:
    """The load with an event in it."""
    load, during = load.copy(), slice(begin, begin + hours)
    load[during] = {
        "spike": load[during] * 1.8,
        "left on": np.maximum(load[during], 38.0),
        "meter stuck": np.full(hours, load[begin - 1]),
        "power cut": load[during] * 0.15,
    }[kind]
    return load


def main(folder: Path) -> None:
    """Write the three tables."""
    rng = np.random.default_rng(SEED)
    steps = HISTORY + NEW + NEXT
    times = BEGIN + np.arange(steps)
    hour, weekend = np.arange(steps) % 24, np.arange(steps) // 24 % 7 >= 5
    daily = -3.5 * np.cos(2 * np.pi * (hour - 3) / 24)
    temperature = np.round(6.0 + daily + drifting(rng, steps, 0.99, 4.0), 1)
    calendar = [f"{'weekend' if w else 'workday'} {h:02}h" for w, h in zip(weekend, hour, strict=True)]
    rows: dict[str, list[str]] = {"history": [], "new": [], "next": []}
    for building, base in BUILDINGS.items():
        profile = np.where(weekend, np.array(WEEKEND)[hour], np.array(WORKDAY)[hour])
        load = base + profile + HEATING * np.maximum(15 - temperature, 0)
        load = load + drifting(rng, steps, 0.997, 1.5) + drifting(rng, steps, 0.8, 1.0) + 0.4 * rng.normal(size=steps)
        event = np.full(steps, "", dtype=object)
        for kind, begin, hours in EVENTS[building]:
            load = happened(kind, load, HISTORY + begin, hours)
            event[HISTORY + begin : HISTORY + begin + hours] = kind
        missing = (rng.random(steps) < MISSING) & (event == "")
        if building == OUTAGE[0]:
            missing[HISTORY + OUTAGE[1] : HISTORY + OUTAGE[1] + OUTAGE[2]] = True
        for t in range(steps):
            known = f"{building},{str(times[t]).replace('T', ' ')}:00,{calendar[t]},{temperature[t]:g}"
            cell = "" if missing[t] else f"{load[t]:.1f}"
            if t < HISTORY:
                rows["history"].append(f"{known},{cell}")
            elif t < HISTORY + NEW:
                rows["new"].append(f"{known},{cell},{event[t]}")
            else:
                rows["next"].append(known)
    header = "building,time,calendar,temperature"
    headers = {"history": f"{header},load", "new": f"{header},load,event", "next": header}
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in rows.items():
        (folder / f"{name}.csv").write_text("\n".join([headers[name], *lines]) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
