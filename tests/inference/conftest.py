"""Tiny runs for the tests of this folder."""

from tests.music import cache as cache
from tests.music import elbo_run as elbo_run
from tests.music import fivo_run as fivo_run
from tests.music import music as music
from tests.music import music_file as music_file
from tests.music import quickly_compiled as quickly_compiled
