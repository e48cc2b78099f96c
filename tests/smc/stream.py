"""The stream that `test_online.py` breaks off and `continue_stream.py` takes up."""

from typing import Any

import jax
import numpy as np

import fivo
from fivo.models import SequenceModel
from tests.models.cases import Case

NUM_FRAMES = 8
SETTING = {"num_particles": 6, "resampling": "stratified", "criterion": fivo.resampling.ESSBelow(0.9)}


def start(case: Case, **changes: Any) -> tuple[SequenceModel, fivo.ParticleFilter, fivo.smc.FilterState]:
    model, pf = case.build(np.float64), fivo.ParticleFilter(**SETTING | changes)
    return model, pf, pf.init(model, key=jax.random.key(11))
