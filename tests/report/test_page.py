"""The page: what it contains, that it is only text to a browser, and what it does in one."""

import base64
import csv
import hashlib
import html
import io
import json
import math
import re
import shutil
import subprocess
from xml.etree import ElementTree

import numpy as np
import pytest
import soundfile

from fivo.errors import InputError
from fivo.experiments.tables import write_summary
from fivo.report import Track, read_sources, report_page
from fivo.report.page import UPLOT
from fivo.runs import Alarms, Excerpt, FilledGaps, Forecasts, LatentStates, write_excerpt
from fivo.training import RunDirectory
from tests.experiments.made import ODD, made_experiment, write_metrics, write_sweep, write_training
from tests.sentences import assert_one_sentence

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# Plays a reader: hovers, hides a run, zooms and resets; what came of it, and every error, goes into the page itself.
READER = """
<script>
window.problems = [];
window.addEventListener("error", event => window.problems.push(String(event.message)));
window.addEventListener("securitypolicyviolation", event => window.problems.push("refused " + event.violatedDirective));
const complain = console.error;
console.error = (...words) => { window.problems.push(words.join(" ")); complain(...words); };
</script>
"""
POINT = """
  document.querySelectorAll("details").forEach(part => { part.open = true; });
  await new Promise(done => setTimeout(done, 50));
  const charts = [...document.querySelectorAll(".chart")].map(host => host.chart);
  const settled = () => new Promise(done => setTimeout(done, 20));
  const point = (chart, part, kind) => {
    const box = chart.plot.over.getBoundingClientRect();
    const place = { clientX: box.left + part * box.width, clientY: box.top + box.height / 2 };
    chart.plot.over.dispatchEvent(new MouseEvent(kind, { ...place, movementX: 1, button: 0, bubbles: true }));
  };
  const tip = (chart, part) => {
    point(chart, part, "mousemove");
    return chart.tip.hidden ? null : chart.tip.innerText;
  };
  // What is downloaded, without a file.
  const saved = {};
  const texts = [];
  window.Blob = class extends Blob {
    constructor(parts, options) { super(parts, options); texts.push(parts.join("")); }
  };
  HTMLAnchorElement.prototype.click = function () { saved[this.download.split(".").at(-1)] = texts.at(-1); };
  const save = async host => {
    for (const press of host.querySelectorAll("button")) if (/^(SVG|CSV)$/.test(press.textContent)) press.click();
    await settled();
    return { ...saved };
  };
  const range = chart => [chart.plot.scales.x.min, chart.plot.scales.x.max].join(" ");
  const drag = async (chart, from, to) => {
    point(chart, from, "mousedown");
    point(chart, to, "mousemove");
    point(chart, to, "mouseup");
    await settled();
  };
  // How much of a colour there is in a column of pixels, over the step x.
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const plain = colour => {
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data];
  };
  const strokeOf = (chart, index) => plain(chart.plot.series[index].stroke(chart.plot, index));
  const ink = (chart, index, x) => {
    const wanted = strokeOf(chart, index), { ctx } = chart.plot, column = Math.round(chart.plot.valToPos(x, "x", true));
    const data = ctx.getImageData(column, 0, 1, ctx.canvas.height).data;
    let found = 0;
    for (let at = 0; at < data.length; at += 4) {
      if (data[at + 3] > 100 && [0, 1, 2].every(band => Math.abs(data[at + band] - wanted[band]) < 40)) found++;
    }
    return found;
  };
"""
PLAY = """
  const lines = () => charts.map(chart => chart.plot.series.slice(1).filter(series => series.show).length);
  outcome.lines = lines();
  outcome.ink = charts.map(chart => chart.plot.series.slice(1).map((_, index) => ink(chart, index + 1, 50)));
  outcome.titles = charts.map(chart => chart.host.innerText.trim().length);
  const last = charts.at(-1);
  outcome.tip = tip(last, 0.5);
  const before = range(last);
  await drag(last, 0.4, 0.6);
  outcome.zoomed = range(last) !== before;
  outcome.button = [last.reset.hidden];
  last.reset.click();
  await settled();
  outcome.button.push(last.reset.hidden, range(last) === before);
  await drag(last, 0.4, 0.6);
  point(last, 0.5, "dblclick");
  await settled();
  outcome.reset = range(last) === before;
  const button = document.querySelector("details .legend button[aria-pressed]:not(figure *)");
  button.click();
  await settled();
  outcome.toggled = [button.getAttribute("aria-pressed"), lines()];
  button.click();
  await settled();
  outcome.back = lines();
  outcome.images = [...document.images].map(image => image.naturalWidth);
  // The page counts as loaded only after the metadata of its sounds are.
  outcome.sounds = [...document.querySelectorAll("audio")].map(audio => audio.readyState ? audio.duration : -1);
  outcome.width = window.innerWidth;
  outcome.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
"""
ODD_LINES = """
  const styles = {};
  const note = (label, colour, dash) => (styles[label] ??= new Set()).add(`${colour} ${dash}`);
  for (const chart of charts) {
    chart.plot.series.slice(1).forEach(({ label, dash }, at) => note(label, strokeOf(chart, at + 1), dash.join(" ")));
  }
  for (const button of document.querySelectorAll(".legend button")) {
    const path = button.querySelector("path");
    note(button.textContent, plain(getComputedStyle(path).stroke), path.getAttribute("stroke-dasharray"));
  }
  outcome.styles = Object.fromEntries(Object.entries(styles).map(([label, found]) => [label, [...found]]));
  const first = charts[0], places = [10.3, 15, 19.7, 30, 45, 50, 55, 65, 99.7];
  outcome.ink = Object.fromEntries(first.plot.series.slice(1).map((series, index) =>
    [series.label, places.filter(x => ink(first, index + 1, x))]));
  outcome.tips = [0.5, 0.95].map(part => tip(first, part));
  point(first, 0.5, "mouseleave");
  outcome.left = first.tip.hidden;
  for (let time = 0; time < 40; time++) await drag(first, 0.45, 0.55);
  outcome.range = range(first).split(" ").map(Number);
"""
NOTE = """
  outcome.problems = window.problems;
  const written = top.document.createElement("pre");
  written.id = "outcome";
  written.textContent = JSON.stringify(outcome);
  top.document.body.append(written);
"""
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")


@pytest.fixture
def sweep(tmp_path):
    experiment = made_experiment()
    write_sweep(tmp_path, experiment)
    write_summary(experiment, tmp_path)
    figure = made_experiment(
        name="picture",
        place="Figure 3",
        grid=[{"bound": ["elbo", "fivo"]}],
        evaluation={"splits": []},
        published=[],
        table=None,
        figure={"fields": ["test_elbo", "test_fivo"], "panels": "bound", "y_label": "nats per timestep"},
    )
    for run in figure.runs:
        write_training(tmp_path, run, -7.0, ("test_elbo", "test_fivo"))
    write_summary(figure, tmp_path)
    return tmp_path


def test_the_page_holds_everything(sweep):
    page = report_page(read_sources([sweep]))
    words = html.unescape(re.sub(r"<[^>]+>", " ", page))
    for expected in ("Table 9", "Figure 3", "-7.000", "paper -6.90", "+1.60", "optimistic", "c0ffee", "fivo evaluate"):
        assert expected in words
    assert "test elbo . Trained by c0ffee" in words
    assert page.count("<audio ") == page.count("<img ") > 0
    assert len(report_page(read_sources([sweep]), audio=False)) < 350_000


def test_the_music_of_selected_runs_comes_first(tmp_path):
    """Of more datasets than there is room for."""
    experiment = made_experiment(
        grid=[{"dataset": list("abcdef"), "bound": "fivo", "learning_rate": [1e-3, 1e-4]}], published=[]
    )
    write_sweep(tmp_path, experiment)
    for run in experiment.runs:
        if dict(run.cell)["dataset"] != "f":
            (tmp_path / run.slug / "evaluation.json").unlink()
    write_summary(experiment, tmp_path)
    page = report_page(read_sources([tmp_path]), audio=False)
    shown = re.findall(r"<figcaption>(\w)-", page)
    assert shown[:2] == ["f", "f"]  # its data and its sample
    assert len(set(shown)) == 4


def test_music_of_every_bound_comes_before_more_of_one(tmp_path):
    experiment = made_experiment(
        grid=[{"dataset": "jsb", "bound": ["elbo", "fivo"], "learning_rate": [1e-3, 1e-4]}], published=[]
    )
    roll = np.eye(4, 88, dtype=np.uint8)
    for run in experiment.runs:
        write_excerpt(write_training(tmp_path, run, -7.0) / "sample.npz", Excerpt(roll, roll, 1))
    page = report_page(read_sources([tmp_path]), audio=False)
    shown = re.findall(r"<figcaption>jsb-(\w+)-", page)
    assert shown[:6] == ["elbo", "elbo", "fivo", "fivo", "elbo", "elbo"]  # data and sample of each


def test_nothing_is_fetched_and_names_are_text(sweep):
    page = report_page(read_sources([sweep]))
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!data:)""", page)
    assert not re.search(r"@import|url\(", page)
    assert '<script>alert("1")' not in page
    assert html.escape(ODD, quote=False)[:20] in page
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    assert {chart["group"] for chart in json.loads(data[1])["charts"]} == {"", "picture"}


def test_many_long_runs_make_a_small_page(tmp_path):
    experiment = made_experiment(
        grid=[{"bound": ["elbo", "fivo"], "dataset": "jsb", "seed": list(range(72)), "learning_rate": [1e-3]}]
    )
    row = {"bound": -7.123456789, "validation": -7.1, "kl": 1.23456789, "ess": 3.21, "gradient_norm": 0.123456}
    rows = [{"step": step, **row} for step in range(100, 100_001, 100)]
    for run in experiment.runs:
        write_metrics(write_training(tmp_path, run, -7.0), rows)
    write_summary(experiment, tmp_path)
    sources = read_sources([tmp_path])
    assert {len(run.metrics) for run in sources.runs} == {1000}
    assert len(report_page(sources).encode()) < 2_000_000


def test_a_summary_alone_is_enough_for_its_table(sweep, tmp_path):
    page = report_page(read_sources([sweep / "made.json"]))
    assert "-7.000" in page
    assert "<audio" not in page


@pytest.mark.parametrize("content", [None, "", "[1, 2", '{"format": 1}', "[" * 100_000], ids=lambda text: str(text)[:9])
def test_what_is_no_result_is_one_sentence(tmp_path, content):
    path = tmp_path / "x.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError) as stop:
        read_sources([path])
    assert_one_sentence(stop.value, "x.json")


def test_damaged_files_of_a_run_do_not_stop_the_page_but_are_named(sweep, caplog):
    for number, path in enumerate(sweep.glob("*/sample.npz")):
        content = bytearray(path.read_bytes())
        content[60:90] = bytes(30)  # within the compressed data of the first array
        path.write_bytes(b"PK\x03\x04 damaged" if number % 2 else content)
    for number, path in enumerate(sweep.glob("*/metrics.jsonl")):
        content = path.read_text()
        path.unlink()
        if number % 2:
            path.mkdir()
        else:
            path.write_text(content + '{"step": 1000, "bou')
    for path in sweep.glob("*/run.json"):
        path.write_text("{")
    assert "<audio" not in report_page(read_sources([sweep]))
    said = [record.getMessage() for record in caplog.records]
    for sentence in said:
        assert_one_sentence(sentence)
    damaged = [
        *sweep.glob("*/sample.npz"),
        *sweep.glob("*/run.json"),
        *(path for path in sweep.glob("*/metrics.jsonl") if path.is_dir()),
    ]
    assert {path for path in damaged if not any(repr(str(path)) in sentence for sentence in said)} == set()
    assert len(said) == len(damaged)


def test_a_damaged_line_of_metrics_is_left_out_and_said(sweep, caplog):
    path = next(sweep.glob("*/metrics.jsonl"))
    lines = path.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b"40", b"41", 1)
    path.write_bytes(b"".join(lines))
    (run,) = [run for run in read_sources([sweep]).runs if run.directory == path.parent]
    assert [row["step"] for row in run.metrics] == [10, 20, 30, *range(50, 101, 10)]
    (said,) = [record.getMessage() for record in caplog.records]
    assert_one_sentence(said, "metrics.jsonl", "1 damaged line")
    path.write_bytes(b"".join(lines[:3]))
    caplog.clear()
    read_sources([sweep])
    (said,) = [record.getMessage() for record in caplog.records]
    assert_one_sentence(said, "metrics.jsonl", "ends at step 30 of 100")


def test_a_damaged_summary_among_runs_is_said(sweep, caplog):
    path = sweep / "made.json"
    path.write_text(path.read_text()[:-3])
    assert [summary["name"] for summary in read_sources([sweep]).summaries] == ["picture"]
    (said,) = [record.getMessage() for record in caplog.records]
    assert_one_sentence(said, "made.json", "left out")


def test_one_changed_digit_of_a_summary_is_refused(sweep):
    path = sweep / "made.json"
    path.write_text(path.read_text().replace("-8.6", "-8.5", 1))
    with pytest.raises(InputError) as stop:
        read_sources([sweep])
    assert_one_sentence(stop.value, "made.json", "checksum")


def test_a_summary_that_lacks_something_is_one_sentence(sweep):
    summary = json.loads((sweep / "made.json").read_text())
    for cell in summary["cells"]:
        for evidence in cell["selected"]:
            del evidence["result"]
    (sweep / "made.json").write_text(json.dumps(summary))
    with pytest.raises(InputError) as stop:
        report_page(read_sources([sweep]))
    assert_one_sentence(stop.value, "damaged")


def played(page, play, folder, width=1280):
    """What a script that plays a reader of the page has found, in a frame: windows are never as narrow as a phone."""
    work = (
        f"const outcome = {{}}; try {{ {POINT}{play} }} catch (error) {{ window.problems.push(String(error)); }}{NOTE}"
    )
    script = f'<script>window.addEventListener("load", async () => {{ {work} }});</script>'
    page = page.replace("<head>", "<head>" + READER, 1).replace("</body>", script + "</body>")
    file = folder / "page.html"
    file.write_text(f'<!doctype html><iframe width="{width}" height="900" srcdoc="{html.escape(page)}"></iframe>')
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000", "--dump-dom"]
    command += ["--virtual-time-budget=20000"]
    command += [f"--user-data-dir={folder / 'profile'}", file.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True).stdout
    found = re.search(r'<pre id="outcome">(.*?)</pre>', shown, re.DOTALL)
    assert found is not None, shown[-2000:]
    outcome = json.loads(html.unescape(found[1]))
    assert outcome["problems"] == []
    return outcome


@in_a_browser
def test_lines_with_gaps_lone_points_and_early_ends(tmp_path):
    """Three runs: the 50th step of one is no number, one ended at 20, one has a single row without validation."""
    bounds = ("elbo", "iwae", "fivo")
    figure = made_experiment(
        grid=[{"bound": list(bounds)}],
        evaluation={"splits": []},
        published=[],
        table=None,
        figure={"fields": ["test_kl"], "lines": "bound", "y_label": "nats"},
    )
    steps = {"elbo": [10], "iwae": [10, 20], "fivo": range(10, 101, 10)}
    heights = {"elbo": 2.0, "iwae": 1.5, "fivo": 1.0}
    for run in figure.runs:
        directory = write_training(tmp_path, run, -7.0)
        rows = [
            {
                "step": step,
                "bound": -7.0 - 1 / step,
                "test_kl": math.nan if step == 50 else heights[run.settings.bound.kind] + step / 100,
            }
            | ({} if run.settings.bound.kind == "elbo" else {"validation": -7.5})
            for step in steps[run.settings.bound.kind]
        ]
        write_metrics(directory, rows)
    write_summary(figure, tmp_path)
    outcome = played(report_page(read_sources([tmp_path])), ODD_LINES, tmp_path)
    assert {label: len(found) for label, found in outcome["styles"].items()} == dict.fromkeys(outcome["styles"], 1)
    assert len({found[0] for found in outcome["styles"].values()}) == 3
    assert outcome["ink"] == {"elbo": [10.3], "iwae": [10.3, 15, 19.7], "fivo": [10.3, 15, 19.7, 30, 65, 99.7]}
    middle, end = outcome["tips"]
    assert "fivo" in middle
    assert "step 50" not in middle
    assert end.split() == ["step", "100", "fivo:", "2"]
    assert outcome["left"]
    low, high = outcome["range"]
    assert 10 < low < high < 100
    assert high - low > 1e-4 * 90, "zoom ends where there is nothing more to see"


@in_a_browser
@pytest.mark.parametrize("width", [1280, 390], ids=["desktop", "phone"])
def test_in_a_browser(sweep, tmp_path, width):
    outcome = played(report_page(read_sources([sweep])), PLAY, tmp_path, width)
    assert outcome["width"] == width
    assert outcome["lines"] == [2, 2, *[10] * 5]
    assert all(pixels > 0 for chart in outcome["ink"][:2] for pixels in chart)
    assert all(max(chart) > 0 for chart in outcome["ink"])  # the last of ten equal lines covers the others
    assert all(outcome["titles"])
    assert "step 50" in outcome["tip"] or "step 60" in outcome["tip"]
    assert outcome["zoomed"]
    assert outcome["button"] == [False, True, True]
    assert outcome["reset"]
    assert outcome["toggled"] == ["false", [2, 2, *[9] * 5]]
    assert outcome["back"] == outcome["lines"]
    assert all(pixels > 100 for pixels in outcome["images"])
    assert outcome["sounds"]
    assert all(seconds > 1 for seconds in outcome["sounds"])
    assert outcome["overflow"] <= 0


def test_the_charting_library_is_the_published_one():
    listed = re.findall(r"\| `(.+?)` \| `(\w{64})` \|", (UPLOT / "README.md").read_text())
    assert len(listed) == 2
    for name, digest in listed:
        assert hashlib.sha256((UPLOT / name).read_bytes()).hexdigest() == digest
    assert "MIT" in (UPLOT / "LICENSE").read_text()


def test_embedded_sound_is_compressed(sweep):
    sounds = re.findall(r"data:audio/mpeg;base64,([^\"]+)", report_page(read_sources([sweep])))
    assert sounds
    for sound in sounds:
        waveform, rate = soundfile.read(io.BytesIO(base64.b64decode(sound)))
        assert len(waveform) / rate > 1
        assert np.abs(waveform).max() > 0.1
    assert sum(map(len, sounds)) < 100_000 * len(sounds)


def written_series(directory):
    """A forecast of two quantities, one over dates and one over numbers, and alarms of one series."""
    hours = np.datetime64("2024-03-01T00", "h") + np.arange(30)
    observed = np.where(np.arange(30) < 24, np.arange(30.0), np.nan)
    mean = np.where(np.arange(30) < 24, np.nan, 24.0)
    ends = {0.1: mean - 1, 0.9: mean + 1}
    tracks = [
        Track("=house", "°C", hours, observed, mean, ends),
        Track("b", "m", np.arange(30.0), observed, mean, ends),
    ]
    run = RunDirectory(directory)
    run.write(Forecasts("my.csv", "time", [track.record() for track in tracks]))
    p = np.where(np.arange(30) == 7, 1e-5, 0.5)
    alarms = Track("a", "m", np.arange(30.0), np.arange(30.0), p_values=p)
    run.write(Alarms("mine.csv", "t", [alarms.record()], 0.01))


SERIES = """
  const [dated, counted, raised, p] = charts;
  outcome.tip = tip(dated, 0.9);
  outcome.files = await save(dated.host);
  outcome.alarms = raised.lines.at(-1).y.filter(y => y !== null);
  outcome.log = [p.log, counted.log];
  counted.scale.click();
  await settled();
  outcome.log.push(counted.log, counted.plot.scales.y.distr);
  outcome.lowest = counted.plot.scales.y.min > 0;
  const search = document.getElementById("search"), rows = [...document.querySelectorAll("#runs tbody tr")];
  const shown = () => rows.filter(row => !row.hidden).map(row => row.cells[0].textContent);
  const lines = () => charts.at(-1).plot.series.slice(1).filter(series => series.show).length;
  outcome.before = [shown(), lines()];
  search.value = "ELBO jsb";
  search.dispatchEvent(new Event("input"));
  await settled();
  outcome.found = [shown(), lines(), document.getElementById("matching").textContent];
  search.value = "";
  search.dispatchEvent(new Event("input"));
  const order = () => [...document.querySelectorAll("#runs tbody tr")].map(row => row.cells[6].textContent);
  const press = document.querySelectorAll("#runs thead button")[6];
  outcome.order = [order()];
  for (let time = 0; time < 3; time++) { press.click(); outcome.order.push(order()); }
  outcome.table = (await save(document.getElementById("runs").closest("section"))).csv;
"""


def test_filled_gaps_and_states_are_drawn(tmp_path):
    experiment = made_experiment(grid=[{"bound": ["fivo", "elbo"], "dataset": "jsb", "learning_rate": [1e-3, 1e-4]}])
    place = write_training(tmp_path, experiment.runs[0], -7.0)
    x, run = np.arange(5.0), RunDirectory(place)
    gap = np.array([np.nan, np.nan, 2.0, np.nan, np.nan])
    filled = Track("a", "m", x, np.where(np.isnan(gap), x, np.nan), gap, {0.1: gap - 1, 0.9: gap + 1})
    run.write(FilledGaps("my.csv", "t", [filled.record()]))
    run.write(
        LatentStates("my.csv", "t", [Track("a", "state 0", x, None, x, {0.1: x - 1, 0.9: x + 1}).record()], "smoothed")
    )
    page = report_page(read_sources([place]))
    assert "<h2>Filled gaps: my.csv</h2>" in page
    assert "<h2>Smoothed states: my.csv</h2>" in page
    assert "given all rows; a shaded band" in page
    assert '"label": "imputed"' in page.replace('":"', '": "')
    assert page.count('"label": "observed"') + page.count('"label":"observed"') == 1


@in_a_browser
def test_series_search_order_and_downloads_in_a_browser(tmp_path):
    """Runs alone: the answer, forecasts, alarms, the table and what can be taken away."""
    experiment = made_experiment(grid=[{"bound": ["fivo", "elbo"], "dataset": "jsb", "learning_rate": [1e-3, 1e-4]}])
    made = [write_training(tmp_path, run, -7.0 + place) for place, run in enumerate(experiment.runs)]
    written_series(made[0])
    page = report_page(read_sources(made))
    assert "1 alarm in 30 rows of mine.csv, at a false-alarm rate of 0.01." in page
    assert f"Best on the validation data of jsb: {made[3].name}, -4.0000 nats per timestep at step 80 of 100." in page
    outcome = played(page, SERIES, tmp_path)
    assert "2024-03-02 0" in outcome["tip"]
    assert "80 % interval: 23 to 25" in outcome["tip"]
    rows = list(csv.reader(io.StringIO(outcome["files"]["csv"])))
    assert rows[0] == ["time", "80 % interval, lower end", "80 % interval, upper end", "forecast", "observed"]
    assert rows[1] == ["2024-03-01T00:00:00.000Z", "", "", "", "0"]
    assert rows[-1] == ["2024-03-02T05:00:00.000Z", "23", "25", "24", ""]
    assert len(rows) == 31
    drawing = ElementTree.fromstring(outcome["files"]["svg"])
    texts = [text.text for text in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert {"=house: °C", "observed", "forecast", "80 % interval", "time"} <= set(texts)
    assert len(list(drawing.iter("{http://www.w3.org/2000/svg}path"))) > 4
    assert outcome["alarms"] == [7]
    assert outcome["log"] == [True, False, True, 3]
    assert outcome["lowest"]
    (before, all_lines), (found, few_lines, count) = outcome["before"], outcome["found"]
    assert (len(before), all_lines) == (4, 4)
    assert sorted(found) == sorted(run.name for run in made if "elbo" in run.name)
    assert (few_lines, count) == (2, "2 of 4")
    first, rising, falling, last = outcome["order"]
    assert rising == ["0.0001", "0.0001", "0.001", "0.001"]
    assert falling == rising[::-1]
    assert last == first
    assert outcome["table"].startswith("run,data,model,bound,N,")
