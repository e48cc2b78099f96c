"""Experiments as data: what is read, what is refused, what a grid becomes."""

from pathlib import Path

import pytest

from fivo.errors import InputError
from fivo.experiments import chosen_runs, read_experiment
from fivo.experiments.experiment import PAPER, make_experiment
from tests.experiments.made import made_experiment
from tests.sentences import assert_one_sentence

FILES = sorted(PAPER.glob("*.toml"))
BASE = {
    "name": "small",
    "title": "Small",
    "place": "Table 0",
    "grid": [
        {"dataset": ["jsb"], "hidden": 32, "bound": ["elbo", "fivo"], "learning_rate": [1e-3, 1e-4], "seed": [0, 1]},
        {"dataset": ["nottingham"], "hidden": 64, "bound": ["elbo", "fivo"], "learning_rate": [1e-3, 1e-4]},
    ],
}
COUNTS = {
    "figure2-left": (2, 0), "figure2-right": (3, 0), "figure3": (3, 0), "table1": (144, 36), "table1-timit": (72, 18),
    "table2": (24, 24), "table2-timit": (6, 6), "table3": (144, 72), "table4": (72, 36), "table5": (24, 48),
    "table5-timit": (6, 12), "weight-decay": (18, 9),
    "tuned": (72, 36), "sixo-drift": (3, 0), "sixo-forex": (9, 6), "sixo-hodgkin-huxley": (9, 6),
}  # fmt: skip


def test_every_table_and_figure_has_a_file():
    assert {path.stem for path in FILES} == set(COUNTS)


def test_an_experiment_is_found_by_its_name_and_a_file_before_it(tmp_path, monkeypatch):
    assert read_experiment("table1").document.place == "Table 1, left"
    monkeypatch.chdir(tmp_path)
    Path("mine").write_text(FILES[0].read_text())
    assert read_experiment("mine").document.name == FILES[0].stem
    for wrong, part in (("tabel1", "weight-decay"), ("tabel1.toml", "tabel1.toml"), ("x/table1", "x/table1")):
        with pytest.raises(InputError) as refused:
            read_experiment(wrong)
        assert_one_sentence(refused.value, part)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_files_of_the_paper(path):
    experiment = read_experiment(path)
    runs, published = COUNTS[path.stem]
    assert (len(experiment.runs), len(experiment.document.published)) == (runs, published)
    assert experiment.document.name == path.stem
    assert len({run.slug for run in experiment.runs}) == runs
    named = {key for row in experiment.document.published for key in row}
    cells = {tuple(pair for pair in run.cell if pair[0] in named) for run in experiment.runs}
    measures = {row.get("measure") for row in experiment.document.published}
    # Every cell of the paper's table has one published number for each split and each measure that was published.
    assert published in (0, len(cells) * len(experiment.document.evaluation.splits) * len(measures))
    keys = [tuple(sorted((key, row[key]) for key in row if key != "value")) for row in experiment.document.published]
    assert len(set(keys)) == published


@pytest.mark.parametrize(
    ("name", "wanted", "value"),
    [
        ("table1", {"dataset": "jsb", "bound": "fivo", "particles": 16}, -6.72),
        ("table1", {"dataset": "musedata", "bound": "iwae", "particles": 8}, -7.15),
        ("table3", {"dataset": "jsb", "bound": "iwae", "particles": 8, "split": "train"}, -4.47),
        ("table4", {"hidden": 256, "bound": "fivo", "particles": 8, "split": "test"}, 62685),
        ("table2", {"dataset": "jsb", "bound": "fivo", "smoothing": True}, -3.83),
        ("table5", {"dataset": "jsb", "bound": "fivo", "smoothing": True, "split": "train"}, -3.83),
        ("table5", {"dataset": "jsb", "bound": "fivo", "smoothing": True, "split": "test"}, -6.91),
    ],
)
def test_published_numbers(name, wanted, value):
    experiment = read_experiment(FILES[0].parent / f"{name}.toml")
    rows = [row for row in experiment.document.published if wanted.items() <= row.items()]
    assert [row["value"] for row in rows] == [value]


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"published": [{"measure": "none", "value": 1.0}]}, "does not have"),
        ({"evaluation": {"measures": {"gap": "a:b"}, "relative_to": {"bound": "elbo"}}}, "leave one out"),
        ({"table": {"rows": ["bound"], "columns": ["split"]}}, "measure"),
    ],
)
def test_measures_have_places_too(changes, part):
    base = {**BASE, "grid": BASE["grid"][:1], "evaluation": {"measures": {"gap": "a:b", "error": "a:c"}}}
    with pytest.raises(InputError) as refused:
        make_experiment({**base, **changes})
    assert_one_sentence(refused.value, part)


def test_tables_that_share_runs_share_directories():
    first, second = (read_experiment(FILES[0].parent / f"{name}.toml") for name in ("table1", "table3"))
    assert first.directory == second.directory
    assert [run.slug for run in first.runs] == [run.slug for run in second.runs]


def test_a_grid_is_expanded_in_order_without_repeats():
    experiment = make_experiment({**BASE, "grid": [*BASE["grid"], BASE["grid"][0]]})
    assert len(experiment.runs) == 8 + 4
    assert experiment.keys == ("dataset", "hidden", "bound")
    first = experiment.runs[0]
    assert first.cell == (("dataset", "jsb"), ("hidden", 32), ("bound", "elbo"))
    assert (first.settings.optimizer.learning_rate, first.settings.training.seed) == (1e-3, 0)
    assert len({run.cell for run in experiment.runs}) == 4


def test_a_longer_sweep_finds_its_runs_again():
    short, long = (make_experiment({**BASE, "settings": {"steps": steps}}) for steps in (100, 200))
    assert [run.slug for run in short.runs] == [run.slug for run in long.runs]
    other = make_experiment({**BASE, "settings": {"batch_size": 8}})
    assert not {run.slug for run in short.runs} & {run.slug for run in other.runs}


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "<script>alert(1)</script>", "..", "a/b\0c", "-rf", "a b", "x" * 300]
)
def test_malicious_data_names_escape_nowhere(name):
    experiment = make_experiment({**BASE, "grid": [{"dataset": [name]}]})
    (run,) = experiment.runs
    assert Path(run.slug).name == run.slug
    assert run.slug.strip(".-") == run.slug
    assert not set(run.slug) & set("/\\<>&\"' \0")
    assert len(run.slug) < 200
    assert dict(run.cell)["dataset"] == name  # shown as it is, as text


@pytest.mark.parametrize("key", ["name", "directory"])
@pytest.mark.parametrize("name", ["../up", "<script>", "a/b", " ", "Ünter", "."])
def test_malicious_names_of_experiments_are_refused(key, name):
    with pytest.raises(InputError) as stop:
        make_experiment({**BASE, key: name})
    assert_one_sentence(stop.value, "name")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"grid": []}, "empty"),
        ({"grid": [{"bound": []}]}, "empty"),
        ({"grid": [{"colour": ["red"]}]}, "'colour'"),
        ({"grid": [{"bound": ["vae"]}]}, "bound"),
        ({"grid": 3}, "grid"),
        ({"settings": {"steps": 0}}, "steps"),
        ({"evaluation": {"splits": ["testing"]}}, "evaluation.splits"),
        ({"evaluation": {"relative_to": {"colour": 1}}}, "relative_to"),
        ({"table": {"rows": ["colour"], "columns": []}}, "'colour'"),
        ({"published": [{"bound": "fivo"}]}, "value"),
        ({"published": [{"bound": "iwae", "value": 1.0}]}, "bound='iwae'"),
        ({"published": [{"bound": "fivo", "split": "tset", "value": 1.0}]}, "split"),
        ({"published": [{"bound": ["fivo"], "value": 1.0}]}, "bound="),
        ({"published": [{"dataset": "jsb", "hidden": 64, "value": 1.0}]}, "hidden=64"),
        ({"published": [{"bound": "fivo", "split": "train", "value": 1.0}]}, "split='train'"),
        ({"evaluation": {"relative_to": {"bound": "elbow"}}}, "one cell of its grid, got 0"),
        ({"evaluation": {"relative_to": {"bound": "elbo"}}}, "one cell of its grid, got 2"),
        ({"table": {"rows": ["bound"], "columns": []}}, "dataset, hidden"),
        (
            {"evaluation": {"splits": ["train", "test"]}, "table": {"rows": ["bound"], "columns": ["dataset"]}},
            "differ in split",
        ),
        ({"figure": {"fields": ["bound"], "y_label": "nats", "panels": "split"}}, "'split'"),
        ({"unknown": 1}, "unknown"),
        ({"title": 3}, "title"),
    ],
    ids=str,
)
def test_mistakes_are_one_sentence(change, said):
    with pytest.raises(InputError) as stop:
        make_experiment({**BASE, **change})
    assert_one_sentence(stop.value, said)


def test_files_that_are_none(tmp_path):
    with pytest.raises(InputError) as stop:
        read_experiment(tmp_path / "nothing.toml")
    assert_one_sentence(stop.value, "does not exist")
    (tmp_path / "bad.toml").write_text("name = ")
    with pytest.raises(InputError) as stop:
        read_experiment(tmp_path / "bad.toml")
    assert_one_sentence(stop.value, "TOML")


@pytest.mark.parametrize(
    ("only", "count"),
    [
        ([], 12),
        (["dataset=jsb"], 8),
        (["dataset=jsb", "learning_rate=1e-3"], 4),
        (["learning_rate=0.001", "bound=FIVO"], 3),
        (["bound=elbo", "bound=fivo"], 12),
        (["hidden=64", "seed=0"], 4),
    ],
    ids=str,
)
def test_only_some_runs(only, count):
    assert len(chosen_runs(make_experiment(BASE), only)) == count


@pytest.mark.parametrize("only", ["jsb", "colour=red", "dataset=bach", "learning_rate=fast"])
def test_only_mistakes(only):
    with pytest.raises(InputError) as stop:
        chosen_runs(make_experiment(BASE), [only])
    assert_one_sentence(stop.value, only)


def test_experiments_of_one_directory_share_what_they_have_in_common():
    table, decay = (read_experiment(FILES[0].parent / f"{name}.toml") for name in ("table1", "weight-decay"))
    assert table.directory == decay.directory
    undecayed = {run.slug for run in decay.runs if run.settings.optimizer.weight_decay == 0}
    assert len(undecayed) == 9
    assert undecayed == {run.slug for run in table.runs} & {run.slug for run in decay.runs}
    rows = [
        {key: row[key] for key in row if key != "dataset"}
        for row in table.document.published
        if row["dataset"] == "jsb"
    ]
    assert decay.document.published == rows


def test_a_recipe_may_be_varied():
    experiment = made_experiment(
        grid=[{"dataset": "jsb", "bound": "fivo", "recipe": ["paper", "tuned"]}],
        table={"rows": ["recipe"], "columns": ["dataset"]},
        published=[],
    )
    paper, tuned = experiment.runs
    assert [dict(run.cell)["recipe"] for run in experiment.runs] == ["paper", "tuned"]
    assert tuned.flat["learning_rate"] == 3e-3
    assert chosen_runs(experiment, ["recipe=tuned"]) == (tuned,)
    assert paper.slug != tuned.slug


def test_the_tuned_table_stands_beside_the_papers():
    table, tuned = (read_experiment(FILES[0].parent / f"{name}.toml") for name in ("table1", "tuned"))
    assert tuned.document.published == table.document.published
    of = {(run.flat["dataset"], run.flat["bound"], run.flat["particles"]) for run in table.runs}
    assert of == {(run.flat["dataset"], run.flat["bound"], run.flat["particles"]) for run in tuned.runs}
    assert {run.settings.optimizer.clip for run in tuned.runs} == {5.0}
