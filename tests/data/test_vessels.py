"""Generated fleets: what ordinary tracks look like, and what deviating ones do."""

import numpy as np
import polars as pl
import pytest

from fivo.data import vessel_tracks
from fivo.errors import InputError
from tests.sentences import assert_one_sentence


@pytest.fixture(scope="module")
def fleet():
    return vessel_tracks(80, deviating=0.25, seed=3)


def test_as_many_tracks_deviate_as_asked_in_equal_parts(fleet):
    kinds = fleet.group_by("track").agg(pl.col("deviation").first())["deviation"].value_counts()
    assert dict(kinds.iter_rows()) == {"": 60, "detour": 5, "loitering": 5, "jump": 5, "speed": 5}


def test_the_same_seed_gives_the_same_fleet(fleet):
    assert fleet.equals(vessel_tracks(80, deviating=0.25, seed=3))
    assert not fleet.equals(vessel_tracks(80, deviating=0.25, seed=4))


def test_reports_are_in_order_and_irregular(fleet):
    waits = fleet.with_columns(wait=pl.col("minute").diff().over("track"))
    assert (waits["wait"].drop_nulls() > 0).all()
    ordinary = waits.filter(pl.col("deviation") == "")["wait"].drop_nulls().to_numpy()
    assert ordinary.min() >= 3
    assert ordinary.max() <= 9
    jumps = waits.filter(pl.col("deviation") == "jump").group_by("track").agg(pl.col("wait").max())
    assert (jumps["wait"] > 50).all()


def test_reported_speeds_are_those_that_ships_move_at(fleet):
    ordinary = fleet.filter(pl.col("deviation") == "").sort("track", "minute")
    north = pl.col("lat").diff() * 111.32
    east = pl.col("lon").diff() * 111.32 * np.cos(np.radians(55))
    hours = pl.col("minute").diff() / 60
    moved = ordinary.with_columns(knots=((north**2 + east**2).sqrt() / hours / 1.852).over("track")).drop_nulls("knots")
    per_track = moved.group_by("track").agg(pl.col("knots", "speed").mean())
    assert np.abs(per_track["knots"] / per_track["speed"] - 1).max() < 0.1


def test_a_share_that_is_none_is_refused():
    with pytest.raises(InputError) as stop:
        vessel_tracks(10, deviating=2.0)
    assert_one_sentence(stop.value, "from 0 to 1", "2")
