"""The bootstrap filter of another library has the same mean and variance of log p̂ under the same scheme."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

import fivo
from fivo.bounds import FIVO
from fivo.models import LinearGaussian
from fivo.resampling import Always, ESSBelow
from tests.covering import covering
from tests.fast import fast_jit
from tests.helpers import repeated

pytest.importorskip("cuthbert", reason="cuthbert is a development dependency; `make test` installs it")
pytestmark = pytest.mark.usefixtures("x64")

FROZEN = json.loads((Path(__file__).parents[1] / "oracles" / "dynamax.json").read_text())["linear_gaussian"]
NUM_RUNS, NUM_PARTICLES = 3000, 24
# Above one, cuthbert's threshold always resamples.
CRITERIA = {"always": (Always(), 1.5), "ess": (ESSBelow(0.5), 0.5)}


def variance_and_error(samples):
    """The sample variance and its standard error, which the fourth central moment decides."""
    squares = (samples - samples.mean()) ** 2
    return squares.mean(), squares.std() / np.sqrt(len(samples))


@covering("scheme, criterion", ["multinomial", "systematic"], CRITERIA, strength=1)
def test_mean_and_variance_of_the_log_evidence(scheme, criterion):
    from tests.oracles.cuthbert_filter import bootstrap_log_evidence

    frozen = FROZEN[0]
    parameters = {name: np.array(value) for name, value in frozen["parameters"].items()}
    x = np.array(frozen["observations"])
    ours_when, theirs_when = CRITERIA[criterion]

    batch = repeated(fivo.Batch.from_sequences([x]), NUM_RUNS)
    run = fast_jit(lambda key: FIVO(NUM_PARTICLES, scheme, ours_when)(LinearGaussian(**parameters), batch, key=key))
    ours = np.asarray(run(jax.random.key(0)).log_evidence)
    keys = jax.random.split(jax.random.key(1), NUM_RUNS)
    theirs = np.asarray(bootstrap_log_evidence(parameters, x, NUM_PARTICLES, scheme, theirs_when, keys))

    mean_error = np.sqrt((ours.var() + theirs.var()) / NUM_RUNS)
    assert abs(ours.mean() - theirs.mean()) < 4 * mean_error
    (our_variance, our_error), (their_variance, their_error) = variance_and_error(ours), variance_and_error(theirs)
    assert abs(our_variance - their_variance) < 4 * np.hypot(our_error, their_error)
    # The test has power: a fifteenth of a nat, or a third of the variance, would be seen.
    assert mean_error < 1 / 15 / 4
    assert np.hypot(our_error, their_error) < their_variance / 3 / 4
