"""Scores while training: what they are, and that they change nothing."""

import jax
import numpy as np
import pytest

from fivo.inference import Curves, evaluate
from fivo.inference.curves import UnresampledKL
from fivo.training import Watchers
from tests.helpers import linear_gaussian, one_sequence
from tests.music import train_tiny
from tests.training.runs import arrays

NAMES = ["test_elbo", "test_iwae", "test_fivo", "test_kl"]


def test_a_probe_adds_its_scores_to_validations_and_changes_no_bit(fivo_run, music, tmp_path):
    probe = Curves(fivo_run.settings, music, particles=2, kl=True)
    train_tiny(tmp_path, music, watchers=Watchers(probe=probe))
    probed = type(fivo_run.directory)(tmp_path)
    assert arrays(probed) == arrays(fivo_run.directory)
    for row, plain in zip(probed.metrics(), fivo_run.directory.metrics(), strict=True):
        assert [name for name in row if name not in plain] == (NAMES if "validation" in row else [])
        assert all(np.isfinite(row[name]) for name in NAMES if name in row)


def test_the_bounds_are_those_of_evaluation(fivo_run):
    # Different random numbers: equal up to what four hundred particles leave of the noise.
    probe = Curves(fivo_run.settings, fivo_run.dataset, particles=400, bounds=["elbo"])
    expected = evaluate(fivo_run, particles=400, bounds=["elbo"], repeats=3).bounds["elbo"]
    noise = 5 * 2 * max(expected.standard_error, 1e-3)
    assert probe(fivo_run.model)["test_elbo"] == pytest.approx(expected.nats_per_step, abs=noise)


def test_only_the_first_sequences(fivo_run):
    probe = Curves(fivo_run.settings, fivo_run.dataset, particles=2, sequences=1)
    assert len(probe.frames) == len(probe.lengths) == 1


def test_the_kl_of_a_proposal_that_is_the_prior_is_zero():
    batch = one_sequence(linear_gaussian(), 4)
    bootstrap = UnresampledKL(3)(linear_gaussian("prior"), batch, key=jax.random.key(0)).log_evidence
    guided = UnresampledKL(200)(linear_gaussian("optimal"), batch, key=jax.random.key(0)).log_evidence
    assert np.asarray(bootstrap) == 0
    assert np.asarray(guided) > 0
