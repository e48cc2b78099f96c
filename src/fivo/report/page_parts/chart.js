const COLOURS = 6, DASHES = [[], [7, 4], [2, 4], [9, 4, 2, 4]];
const HEIGHT = 240, MOST_IN_TIP = 8, MOST_DOTS = 60;
const styles = getComputedStyle(document.documentElement), css = name => styles.getPropertyValue(name).trim();
const quiet = { stroke: () => css("--quiet"), grid: { stroke: () => css("--rule"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif", labelFont: "11px system-ui, sans-serif", labelSize: 16, labelGap: 0 };

// Numbers without a thousandth that rounds to 0; dates as ISO writes them.
const numbers = (plot, values) => values.map(value => value === null ? null : value !== 0 && Math.abs(value) < 1e-3 ? value.toExponential(0) : String(+value.toPrecision(8)));
const DATES = [
  [31536e3, "{YYYY}", null, null, null, null, null, null, 1], [2419200, "{YYYY}-{MM}", null, null, null, null, null, null, 1], [86400, "{MM}-{DD}", "\n{YYYY}", null, null, null, null, null, 1],
  [3600, "{HH}:{mm}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1], [60, "{HH}:{mm}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
  [1, "{HH}:{mm}:{ss}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1], [1e-3, ":{ss}.{fff}", "\n{YYYY}-{MM}-{DD} {HH}:{mm}", null, "\n{MM}-{DD} {HH}:{mm}", null, "\n{HH}:{mm}", null, 1],
];

// Text only ever becomes text: names of runs and datasets are not ours.
function html(name, className, text = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

function button(className, text, press) {
  const made = html("button", className, text);
  made.type = "button";
  made.addEventListener("click", () => press(made));
  return made;
}

// Lines of series have colours of their own; a run has the same colour and dashes in every chart of its group.
const LOOKS = {
  observed: { colour: "--ink" }, mean: { colour: "--line0", width: 2 }, low: { colour: "--line0", edge: true }, high: { colour: "--line0", edge: true },
  dots: { colour: "--ink", dots: 4 }, alarm: { colour: "--bad", dots: 9 }, rate: { colour: "--bad", dash: DASHES[1] },
};
function lookOf(line, rank) {
  return { dash: [], width: 1.6, ...(LOOKS[line.kind] ?? { colour: `--line${rank % COLOURS}`, dash: DASHES[Math.floor(rank / COLOURS) % DASHES.length] }) };
}

// Points that the line does not reach: those between two gaps.
function lonePoints(plot, index) {
  const known = [];
  plot.data[index].forEach((y, at) => { if (y !== undefined) known.push([at, y]); });
  return known.filter(([, y], i) => y !== null && (known[i - 1]?.[1] ?? null) === null && (known[i + 1]?.[1] ?? null) === null).map(([at]) => at);
}

function logRange(plot, low, high) { return low === null ? [1, 10] : uPlot.rangeLog(low, high, 10, false); }

class Chart {
  constructor(host, spec, ranks) {
    this.host = host;
    this.spec = spec;
    this.ranks = ranks;
    this.log = spec.log;
    this.hidden = new Set();
    const xs = spec.lines.flatMap(line => line.x);
    this.whole = [xs.reduce((a, b) => Math.min(a, b), Infinity), xs.reduce((a, b) => Math.max(a, b), -Infinity)];
    this.tip = html("div", "tip");
    this.tip.hidden = true;
    this.reset = button("", "all", () => this.plot.setScale("x", { min: this.whole[0], max: this.whole[1] }));
    this.reset.hidden = true;
    this.scale = button("", "log", () => this.setLog(!this.log));
    this.scale.title = "Logarithmic or linear vertical axis";
    const tools = html("span", "tools screen");
    const downloads = Object.entries({ SVG: () => download(`${this.name}.svg`, chartSvg(this), "image/svg+xml"), CSV: () => download(`${this.name}.csv`, chartCsv(this), "text/csv") });
    tools.append(this.reset, this.scale, ...downloads.map(([text, press]) => button("", text, press)));
    const caption = html("figcaption", "title", spec.title);
    caption.append(tools);
    host.prepend(caption, this.tip);
    this.canvas = html("div", "");
    this.tip.after(this.canvas);
    // Where every number is negative a logarithm shows nothing, so there is no switch.
    this.scale.hidden = !spec.lines.some(line => line.y.some(value => value > 0));
    this.draw();
    host.chart = this;
    new ResizeObserver(() => this.plot.setSize({ width: this.width(), height: HEIGHT })).observe(host);
  }

  get name() { return `${document.title} ${this.spec.title}`.replace(/[^\w.-]+/g, "-").slice(0, 80); }

  draw() {
    const { spec, log } = this;
    // What is no number, which JSON has as null, has no place; nor has what a logarithm cannot show.
    const lines = this.lines = spec.lines.map(line => ({ ...line, y: line.y.map(value => log && !(value > 0) ? null : value), look: lookOf(line, this.ranks.get(line.label)) }));
    const series = lines.map(({ label, y, look, kind }) => {
      const colour = () => css(look.colour), few = kind === "observed" && y.filter(value => value !== null).length <= MOST_DOTS;
      return {
        label, scale: "y", width: look.edge ? 0 : look.width, stroke: look.edge ? () => "transparent" : colour, dash: look.dash, show: !this.hidden.has(label), ...(look.dots ? { paths: () => null } : {}),
        points: { show: !!look.dots || few, filter: look.dots || few ? undefined : look.edge ? () => [] : lonePoints, size: look.dots ?? 5, fill: look.dots > 5 ? () => "transparent" : colour, stroke: colour },
      };
    });
    this.bands = lines.flatMap((line, at) => line.kind === "low" ? [{ series: [at + 2, at + 1], fill: () => `${css("--line0")}38` }] : []);
    const date = value => uPlot.tzDate(new Date(value * 1e3), "Etc/UTC");
    this.plot?.destroy();
    this.plot = new uPlot({
      width: this.width(), height: HEIGHT, legend: { show: false }, series: [{}, ...series], bands: this.bands, tzDate: date,
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, dist: 8 } },
      scales: { x: { time: spec.time, range: (plot, low, high) => this.range(plot, low, high) }, y: log ? { distr: 3, range: logRange } : {} },
      axes: [{ ...quiet, scale: "x", label: spec.x, size: spec.time ? 40 : 30, ...(spec.time ? { values: DATES } : {}) }, { ...quiet, scale: "y", label: spec.y || null, size: 56, values: numbers }],
      hooks: {
        setCursor: [() => this.hover()],
        setScale: [(plot, key) => { if (key === "x") this.reset.hidden = plot.scales.x.min <= this.whole[0] && plot.scales.x.max >= this.whole[1]; }],
      },
    }, uPlot.join(lines.map(line => [line.x, line.y])), this.canvas);
    const { canvas } = this.plot.ctx;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", spec.title);
    this.scale.setAttribute("aria-pressed", String(log));
  }

  setLog(log) {
    const { min, max } = this.plot.scales.x;
    this.log = log;
    this.draw();
    this.plot.setScale("x", { min, max });
  }

  width() { return Math.max(this.host.clientWidth, 240); }

  range(plot, low, high) {
    const [first, last] = this.whole, { min, max } = plot.scales.x;
    if (!(last > first)) return Number.isFinite(first) ? [first - 1, first + 1] : [0, 1];
    // Narrower than a pixel of the whole there is nothing to see, and numbers run out of digits.
    return high - low < 1e-4 * (last - first) ? [min ?? first, max ?? last] : [low, high];
  }

  show(label, visible) {
    this.hidden[visible ? "delete" : "add"](label);
    this.lines.forEach((line, index) => { if (line.label === label) this.plot.setSeries(index + 1, { show: visible }); });
  }

  xText(x) { return this.spec.time ? new Date(x * 1e3).toISOString().slice(0, 19).replace("T", " ") : `${this.spec.x} ${x}`; }

  hover() {
    const { left, top } = this.plot.cursor, { min, max } = this.plot.scales.x;
    const wanted = this.plot.posToVal(left, "x");
    const points = left < 0 ? [] : this.lines.flatMap((line, index) => {
      let best = -1, away = Infinity;
      line.x.forEach((x, at) => {
        const distance = Math.abs(x - wanted);
        if (distance < away && line.y[at] !== null && x >= min && x <= max) [best, away] = [at, distance];
      });
      if (best < 0 || !this.plot.series[index + 1].show) return [];
      return [{ label: line.label, x: line.x[best], y: line.y[best], away, far: Math.abs(this.plot.valToPos(line.y[best], "y") - top) }];
    });
    // Lines that have ended, or not begun, have nothing to say here.
    const reach = Math.min(...points.map(point => point.away)) + 0.03 * (max - min);
    const near = points.filter(point => point.away <= reach).sort((a, b) => a.far - b.far);
    this.tip.hidden = !near.length;
    if (!near.length) return;
    // The two ends of an interval share a line.
    const texts = new Map();
    for (const { label, y } of near) texts.set(label, [...(texts.get(label) ?? []), y]);
    const words = [...texts].slice(0, MOST_IN_TIP).map(([label, ys]) => `${label}: ${ys.sort((a, b) => a - b).map(y => +y.toPrecision(5)).join(" to ")}`);
    this.tip.replaceChildren(html("div", "", this.xText(near[0].x)), ...words.map(text => html("div", "", text)));
    const place = this.plot.over.offsetLeft + this.plot.valToPos(near[0].x, "x") + 10;
    this.tip.style.left = `${Math.max(0, Math.min(place, this.host.clientWidth - this.tip.offsetWidth))}px`;
  }
}
