"""Rows one by one beside the same rows as a table, of series that come in turns."""

import datetime
import math

import jax
import numpy as np
import polars as pl
import pytest

import fivo
from fivo.data import Dataset, apply_schema
from fivo.inference import Calibration, RowStream
from fivo.models import SRNN, VRNN, LinearGaussian, MixedEmission, NormalEmission, PoissonEmission
from tests.inference.known import Known

PARTICLES = 8
START = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC).replace(tzinfo=None)


def fleet(rows: int = 24, seed: int = 0) -> pl.DataFrame:
    """Two ships in turns, at irregular times, with holes in values and inputs."""
    rng = np.random.default_rng(seed)
    minutes = np.cumsum(rng.integers(1, 20, rows))
    table = pl.DataFrame(
        {
            "ship": [("anna", "bert")[i % 2] for i in range(rows)],
            "time": [START + datetime.timedelta(minutes=int(m)) for m in minutes],
            "speed": np.where(rng.random(rows) < 0.2, np.nan, 12 + 3 * rng.normal(size=rows)),
            "calls": rng.poisson(2.0, rows),
            "wind": np.where(rng.random(rows) < 0.2, np.nan, rng.normal(size=rows)),
            "sky": [("clear", "rain", None)[i] for i in rng.integers(0, 3, rows)],
            "type": [("cargo", "tanker")[i % 2] for i in range(rows)],
        }
    )
    return table.with_columns(pl.col("speed", "wind").fill_nan(None))


ROLES = {"id": "ship", "time": "time", "values": ["speed", "calls"], "inputs": ["wind", "sky"], "static": ["type"]}
SCHEMA = Dataset.from_table(fleet(), **ROLES).table


def network(kind=VRNN, schema=SCHEMA, **options):
    emission = MixedEmission((NormalEmission(np.zeros(1)), [0]), (PoissonEmission(np.full(1, 2.0)), [1]))
    return kind(emission, 4, num_inputs=len(schema.input_columns), key=jax.random.key(0), **options)


def streamed(scorer: RowStream, table: pl.DataFrame) -> pl.DataFrame:
    return pl.DataFrame([scorer(row).to_dict() for row in table.iter_rows(named=True)])


def assert_same(made: pl.DataFrame, whole: pl.DataFrame, tolerance: float = 1e-9) -> None:
    assert made["log_likelihood"].is_finite().all()
    for name in made.columns:
        if made[name].dtype.is_float():
            np.testing.assert_allclose(made[name], whole[name], rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("kind", [VRNN, SRNN])
def test_rows_are_those_of_a_filtered_table(kind, x64):
    model = network(kind)
    scorer = RowStream(model, SCHEMA, num_particles=PARTICLES, seed=3, state_quantiles=True)
    whole = fivo.filtered(Known(model, SCHEMA), fleet(), num_particles=PARTICLES, key=jax.random.key(3)).to_frame()
    made = streamed(scorer, fleet())
    assert set(made.columns) == set(whole.columns)
    assert_same(made, whole)
    assert scorer.series == ("anna", "bert")


def exact(schema, inputs: int) -> LinearGaussian:
    rng = np.random.default_rng(1)
    return LinearGaussian(
        transition_matrix=0.8 * np.eye(2),
        transition_covariance=0.3 * np.eye(2),
        emission_matrix=rng.normal(size=(len(schema.values), 2)),
        emission_covariance=0.4 * np.eye(len(schema.values)),
        initial_mean=np.array([0.3, -0.1]),
        initial_covariance=np.eye(2),
        input_matrix=rng.normal(size=(2, inputs)) if inputs else None,
        emission_input_matrix=rng.normal(size=(len(schema.values), inputs)) if inputs else None,
        proposal="optimal",
    )


def test_an_exact_stream_scores_what_a_table_does(x64):
    roles = {**ROLES, "values": ["speed"], "static": []}
    schema = Dataset.from_table(fleet(), **roles).table
    model = exact(schema, len(schema.input_columns))
    run = Known(model, schema)
    made = streamed(RowStream(model, schema), fleet())
    scored = fivo.score(run, fleet()).to_frame()
    assert_same(made.select("log_likelihood"), scored)
    assert_same(made, fivo.filtered(run, fleet()).to_frame())


def test_rows_on_a_grid_are_as_in_a_table(x64):
    table = fleet().with_columns(time=pl.Series([3 * i + (i > 9) * 17 for i in range(24)]))
    schema = Dataset.from_table(table, every=6, **{**ROLES, "values": ["speed"], "static": []}).table
    model = exact(schema, len(schema.input_columns))
    scored = fivo.score(Known(model, schema), table).to_frame()
    assert_same(streamed(RowStream(model, schema), table).select("log_likelihood"), scored)
    assert len(apply_schema(schema, table).sequences[0]) > 12  # some steps of the grid are empty


def test_cells_may_be_texts_as_in_a_csv():
    texts = fleet().with_columns(
        pl.col("speed", "wind", "calls").cast(pl.String), pl.col("time").dt.strftime("%Y-%m-%d %H:%M:%S")
    )
    scorers = [RowStream(network(), SCHEMA, num_particles=PARTICLES) for _ in range(2)]
    first, second = (streamed(scorer, table.head(6)) for scorer, table in zip(scorers, (fleet(), texts), strict=True))
    np.testing.assert_allclose(first["log_likelihood"], second["log_likelihood"], rtol=1e-5)


WRONG = {
    "a column that is not there": (lambda row: row.pop("speed"), "must have a cell 'speed'"),
    "text among numbers": (lambda row: row.update(speed="fast"), "must be one or empty, got 'fast'"),
    "an infinite number": (lambda row: row.update(speed=math.inf), "finite"),
    "no count": (lambda row: row.update(calls=1.5), "whole numbers"),
    "a new category": (lambda row: row.update(sky="hail"), "the category 'hail'"),
    "another static attribute": (lambda row: row.update(type="tanker"), "has changed"),
    "the same time": (lambda row: row.update(time=fleet()["time"][2]), "the same time as"),
    "an earlier time": (lambda row: row.update(time="2023-12-31"), "earlier than"),
    "a time of another kind": (lambda row: row.update(time=7), "must be a date or a time"),
    "no time": (lambda row: row.update(time=None), "it is missing"),
    "no id": (lambda row: row.update(ship=" "), "it is missing"),
    "a number with a fraction for an id": (lambda row: row.update(ship=1.5), "a text or a whole number"),
}


@pytest.fixture(scope="module")
def begun():
    scorer = RowStream(network(), SCHEMA, num_particles=PARTICLES)
    streamed(scorer, fleet().head(4))
    return scorer


@pytest.mark.parametrize(("change", "words"), WRONG.values(), ids=WRONG)
def test_rows_that_are_refused_change_nothing(begun, change, words):
    before, row = begun.to_bytes(), dict(fleet().row(4, named=True))
    change(row)
    with pytest.raises(fivo.InputError, match=words):
        begun(row)
    assert begun.to_bytes() == before


def test_a_row_must_be_a_mapping(begun):
    with pytest.raises((fivo.InputError, TypeError)):
        begun([1, 2])


def test_a_stream_goes_on_from_what_was_saved(begun, tmp_path):
    later = [dict(row) for row in fleet().slice(4).iter_rows(named=True)]
    begun.save(tmp_path / "state.safetensors")
    copies = [
        RowStream(network(), SCHEMA, num_particles=PARTICLES).restore(begun.to_bytes()),
        RowStream(network(), SCHEMA, num_particles=PARTICLES).restore(tmp_path / "state.safetensors"),
    ]
    whole = RowStream(network(), SCHEMA, num_particles=PARTICLES)
    expected = streamed(whole, fleet())["log_likelihood"][4:].to_list()
    for copy in copies:
        assert [copy(row).log_likelihood for row in later] == expected
    copies[0].forget("anna")
    assert copies[0].series == ("bert",)
    with pytest.raises(fivo.InputError, match="the same model and settings, but its particles"):
        RowStream(network(), SCHEMA, num_particles=9).restore(begun.to_bytes())
    with pytest.raises(fivo.InputError, match="its model differs"):
        RowStream(network(SRNN), SCHEMA, num_particles=PARTICLES).restore(begun.to_bytes())
    with pytest.raises(fivo.InputError, match="checksum is wrong"):
        RowStream(network(), SCHEMA, num_particles=PARTICLES).restore(begun.to_bytes()[:-1] + b"?")


def test_smoothing_models_are_refused():
    with pytest.raises(fivo.InputError, match="must not read future frames"):
        RowStream(network(smoothing=True), SCHEMA)


def test_p_values_and_alarms():
    schema = Dataset.from_table(fleet(), **{**ROLES, "values": ["speed"], "inputs": [], "static": []}).table
    model = exact(schema, len(schema.input_columns))
    calibration = Calibration(np.random.default_rng(0).random(999))
    scorer = RowStream(model, schema, calibration=calibration, rate=0.01)
    made = [scorer(row) for row in fleet().iter_rows(named=True)]
    p = np.array([row.p_value for row in made])
    assert ((p > 0) & (p <= 1)).all()
    assert p.std() > 0.1
    strange = dict(fleet().row(23, named=True), time=START + datetime.timedelta(days=1), speed=300.0)
    found = scorer(strange)
    assert found.alarm
    assert found.p_value <= 2 / 1000
    assert found.quantile(0.1)["speed"] < found.mean["speed"] < found.quantile(0.9)["speed"]
    with pytest.raises(fivo.InputError, match="needs at least"):
        RowStream(model, schema, calibration=calibration, rate=1e-6)


def test_an_impossible_row_is_scored_and_then_taken_for_missing():
    schema = Dataset.from_table(fleet(), **{**ROLES, "values": ["speed"], "inputs": [], "static": []}).table
    scorer = RowStream(exact(schema, len(schema.input_columns)), schema)
    rows = [dict(row) for row in fleet().iter_rows(named=True)]
    scorer(rows[0])
    assert scorer(rows[2] | {"speed": 1e25}).log_likelihood == -math.inf
    assert math.isfinite(scorer(rows[4] | {"speed": 12.0}).log_likelihood)


def test_a_gap_in_regular_time_is_a_warning():
    table = fleet().with_columns(time=pl.Series(np.repeat(np.arange(12), 2)))
    schema = Dataset.from_table(table, **{**ROLES, "values": ["speed"], "inputs": [], "static": []}).table
    sentences = []
    scorer = RowStream(exact(schema, 0), schema, warn=sentences.append)
    rows = [dict(row) for row in table.iter_rows(named=True)]
    scorer(rows[0])
    scorer(rows[4])
    scorer(rows[8])
    assert len(sentences) == 1
    assert "advance by 1 as it did in training, but here it does by 2" in sentences[0]
