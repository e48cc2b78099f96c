"""Tables for the tests."""

import numpy as np
import pytest

pl = pytest.importorskip("polars")


def fleet(num_series=3, length=30, seed=0, missing=0.0):
    """Ships: two positions, a count of hits, whether it rains, an input, a static type."""
    rng = np.random.default_rng(seed)
    count = num_series * length
    depth = rng.normal(50.0, 3.0, count)
    frame = pl.DataFrame(
        {
            "ship": np.repeat([f"s{i}" for i in range(num_series)], length),
            "t": np.tile(np.arange(length), num_series),
            "lat": np.where(rng.random(count) < missing, np.nan, depth),
            "lon": rng.normal(-5.0, 9.0, count),
            "hits": rng.poisson(3.0, count),
            "wet": rng.random(count) < 0.3,
            "wind": rng.normal(10.0, 4.0, count),
            "type": np.repeat(rng.choice(["cargo", "tanker", "yacht"], num_series), length),
        }
    )
    return frame.with_columns(pl.col("lat").fill_nan(None))


USES = {"id": "ship", "time": "t", "inputs": ["wind"], "static": ["type"]}
