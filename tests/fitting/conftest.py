"""Quick compilation for the tests of this folder."""

import pytest

from fivo.data import Dataset
from tests.fitting.own import tiny_waves
from tests.music import cache as cache
from tests.music import fivo_run as fivo_run
from tests.music import music as music
from tests.music import quickly_compiled as quickly_compiled


@pytest.fixture(scope="session")
def waves() -> Dataset:
    """Swings of a pendulum."""
    return tiny_waves()
