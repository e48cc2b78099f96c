"""Generated tracks of vessels: what a receiver of their position reports would have, and a few that deviate."""

from typing import Any

import numpy as np

from fivo.data.tables.backend import polars
from fivo.errors import InputError

PORTS = {"Alby": (0.0, 0.0), "Bruk": (70.0, 15.0), "Cove": (15.0, 65.0), "Dorn": (80.0, 75.0)}
"""Kilometres east and north of 10° E, 55° N."""
BENDS = {
    ("Alby", "Bruk"): (38.0, -6.0),
    ("Alby", "Cove"): (-8.0, 36.0),
    ("Alby", "Dorn"): (30.0, 45.0),
    ("Bruk", "Cove"): (52.0, 48.0),
    ("Bruk", "Dorn"): (88.0, 42.0),
    ("Cove", "Dorn"): (45.0, 80.0),
}
"""Where the lane between two ports turns."""
KNOTS = {"cargo": 12.0, "tanker": 10.0, "ferry": 17.0}
DEVIATIONS = ("detour", "loitering", "jump", "speed")
KM_PER_DEGREE = 111.32
KM_PER_KNOT_MINUTE = 1.852 / 60
LATITUDE, LONGITUDE = 55.0, 10.0
MOST_ROWS = 200


def vessel_tracks(num_tracks: int, *, deviating: float = 0.02, seed: int = 0) -> Any:
    """Position reports of vessels that sail between four ports, at irregular times.

    A vessel follows the lane of its route with its own offset (standard deviation 400 m) and wanders about it
    (200 m), at the cruising speed of its type within a few per cent, slower near ports; it reports every 3 to 9
    minutes, its position with an error of 15 m, its speed with one of 0.2 knots and its course with one of 2 degrees. A
    deviating track has one of four deviations, in turns: a `detour` of 3 to 7 km, `loitering` at a walking pace for an
    hour, a `jump` (silence for an hour, after which it is 3 to 6 km off its lane), or a `speed` that is a third too
    low or too high throughout.

    Args:
        num_tracks: How many tracks.
        deviating: The share of tracks that deviate, rounded to whole tracks.
        seed: Random seed.

    Returns:
        A `polars.DataFrame` with a row for each report: `track`, `minute` since departure, `lat` and `lon` in degrees,
        `speed` in knots, `course` in degrees, the `route` and `type` that vessels report, and `deviation`, which is
        empty for ordinary tracks.
    """
    if not 0 <= deviating <= 1:
        raise InputError(f"deviating must be a share from 0 to 1, got {deviating!r:.40}.")
    rng = np.random.default_rng(seed)
    strange = rng.permutation(num_tracks)[: round(deviating * num_tracks)]
    kinds = {int(track): DEVIATIONS[place % len(DEVIATIONS)] for place, track in enumerate(strange)}
    parts = [_track(rng, track, kinds.get(track, "")) for track in range(num_tracks)]
    return polars().concat([polars().DataFrame(part) for part in parts])


def _track(rng: np.random.Generator, track: int, deviation: str) -> dict[str, Any]:
    lane = list(BENDS)[rng.integers(len(BENDS))]
    begin, end = lane if rng.random() < 0.5 else lane[::-1]
    kind = list(KNOTS)[rng.integers(len(KNOTS))]
    path, length = _path(np.array([PORTS[begin], BENDS[lane], PORTS[end]]))
    knots = KNOTS[kind] * (1 + 0.04 * rng.normal())
    if deviation == "speed":
        knots *= 0.67 if rng.random() < 0.5 else 1.33
    gaps = rng.uniform(3, 9, MOST_ROWS)
    wander, pace = _drifting(rng, MOST_ROWS, 0.9), _drifting(rng, MOST_ROWS, 0.8)
    side, size, where = 0.4 * rng.normal(), rng.uniform(3, 7) * rng.choice([-1, 1]), rng.uniform(0.3, 0.6)
    loiter, along, minute, beside = 0, 0.0, 0.0, 0.0
    rows = []
    for step in range(MOST_ROWS):
        share = along / length
        if deviation == "detour":
            beside = size * np.sin(np.pi * np.clip((share - where + 0.25) / 0.5, 0, 1)) ** 2
        if deviation == "jump" and share > where:
            beside = 0.85 * size * np.exp(-(share - where) / 0.15)
        place = path(along, side + 0.2 * wander[step] + beside)
        near = min(along, length - along) < 3
        now = knots * (1 + 0.03 * pace[step]) * (0.6 if near else 1.0)
        if deviation == "loitering" and share > where and loiter < 60:
            now, loiter = 1.5 + 0.3 * pace[step], loiter + gaps[step]
        rows.append((minute, *(place + 0.015 * rng.normal(size=2)), now + 0.2 * rng.normal()))
        silent = 60.0 if deviation == "jump" and share < where <= share + gaps[step] * now * 3e-2 / length else 0.0
        minute += gaps[step] + silent
        along += (gaps[step] + silent) * now * KM_PER_KNOT_MINUTE
        if along >= length:
            break
    minutes, east, north, speed = np.array(rows).T
    ahead = np.arctan2(np.gradient(east), np.gradient(north))
    course = np.degrees(ahead) + 2 * rng.normal(size=len(rows))
    latitude = LATITUDE + north / KM_PER_DEGREE
    scale = KM_PER_DEGREE * np.cos(np.radians(LATITUDE))
    return {
        "track": [f"v{track:05}"] * len(rows),
        "minute": minutes.round(2),
        "lat": latitude.round(5),
        "lon": (LONGITUDE + east / scale).round(5),
        "speed": np.maximum(speed, 0).round(1),
        "course": (course % 360).round(1),
        "route": [f"{begin}-{end}"] * len(rows),
        "type": [kind] * len(rows),
        "deviation": [deviation] * len(rows),
    }


def _path(corners: np.ndarray) -> tuple[Any, float]:
    """The point at a distance along a lane and beside it, and the lane's length."""
    # A quadratic curve by the bend: lanes have no corners.
    t = np.linspace(0, 1, 400)[:, None]
    points = (1 - t) ** 2 * corners[0] + 2 * t * (1 - t) * corners[1] + t**2 * corners[2]
    along = np.append(0, np.cumsum(np.hypot(*np.diff(points, axis=0).T)))
    slopes = np.gradient(points, along, axis=0)

    def at(distance: float, beside: float) -> np.ndarray:
        place, slope = (np.array([np.interp(distance, along, a[:, i]) for i in (0, 1)]) for a in (points, slopes))
        slope = slope / np.hypot(*slope)
        return place + beside * np.array([slope[1], -slope[0]])

    return at, float(along[-1])


def _drifting(rng: np.random.Generator, steps: int, keep: float) -> np.ndarray:
    noise = rng.normal(size=steps)
    found = np.empty(steps)
    found[0] = noise[0]
    for step in range(1, steps):
        found[step] = keep * found[step - 1] + np.sqrt(1 - keep**2) * noise[step]
    return found
