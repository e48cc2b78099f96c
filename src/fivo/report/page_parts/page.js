"use strict";
(() => {
  const COLOURS = 6, DASHES = [[], [7, 4], [2, 4], [9, 4, 2, 4]];
  const HEIGHT = 240, MOST_IN_TIP = 8;
  const styles = getComputedStyle(document.documentElement), css = name => styles.getPropertyValue(name).trim();
  const quiet = { stroke: () => css("--quiet"), grid: { stroke: () => css("--rule"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif", labelFont: "11px system-ui, sans-serif", labelSize: 16, labelGap: 0 };

  // Text only ever becomes text: names of runs and datasets are not ours.
  function html(name, className, text = "") {
    const made = document.createElement(name);
    made.className = className;
    made.textContent = text;
    return made;
  }

  // A run has the same colour and dashes in every chart of its group, whichever charts it is missing from.
  const colourOf = rank => `--line${rank % COLOURS}`, dashOf = rank => DASHES[Math.floor(rank / COLOURS) % DASHES.length];

  // Points that the line does not reach: those between two gaps.
  function lonePoints(plot, index) {
    const known = [];
    plot.data[index].forEach((y, at) => { if (y !== undefined) known.push([at, y]); });
    return known.filter(([, y], i) => y !== null && (known[i - 1]?.[1] ?? null) === null && (known[i + 1]?.[1] ?? null) === null).map(([at]) => at);
  }

  class Chart {
    constructor(host, spec, { ranks }) {
      // What is no number, which JSON has as null, has no place; nor has what a logarithm cannot show.
      const lines = this.lines = spec.lines.map(({ label, x, y }) => ({ label, x, y: y.map(value => spec.log && !(value > 0) ? null : value) }));
      const xs = lines.flatMap(line => line.x);
      this.whole = [xs.reduce((a, b) => Math.min(a, b), Infinity), xs.reduce((a, b) => Math.max(a, b), -Infinity)];
      this.tip = html("div", "tip");
      this.tip.hidden = true;
      this.reset = html("button", "screen", "all");
      this.reset.type = "button";
      this.reset.hidden = true;
      this.reset.addEventListener("click", () => this.plot.setScale("x", { min: this.whole[0], max: this.whole[1] }));
      host.append(html("figcaption", "title", spec.title), this.tip, this.reset);
      this.host = host;
      const series = lines.map(({ label }) => ({
        label, scale: "y", width: 1.6, stroke: () => css(colourOf(ranks.get(label))), dash: dashOf(ranks.get(label)),
        points: { show: false, filter: lonePoints, size: 5, fill: () => css(colourOf(ranks.get(label))) },
      }));
      this.plot = new uPlot({
        width: this.width(), height: HEIGHT, legend: { show: false }, series: [{}, ...series],
        cursor: { y: false, points: { show: false }, drag: { x: true, y: false, dist: 8 } },
        scales: { x: { time: false, range: (plot, low, high) => this.range(plot, low, high) }, y: spec.log ? { distr: 3, range: logRange } : {} },
        axes: [{ ...quiet, scale: "x", label: "step", size: 30 }, { ...quiet, scale: "y", label: spec.y || null, size: 56 }],
        hooks: {
          setCursor: [() => this.hover()],
          setScale: [(plot, key) => { if (key === "x") this.reset.hidden = plot.scales.x.min <= this.whole[0] && plot.scales.x.max >= this.whole[1]; }],
        },
      }, uPlot.join(lines.map(line => [line.x, line.y])), host);
      const canvas = this.plot.ctx.canvas;
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", spec.title);
      host.chart = this;
      new ResizeObserver(() => this.plot.setSize({ width: this.width(), height: HEIGHT })).observe(host);
    }

    width() { return Math.max(this.host.clientWidth, 240); }

    range(plot, low, high) {
      const [first, last] = this.whole, { min, max } = plot.scales.x;
      if (!(last > first)) return Number.isFinite(first) ? [first - 1, first + 1] : [0, 1];
      // Narrower than a pixel of the whole there is nothing to see, and numbers run out of digits.
      return high - low < 1e-4 * (last - first) ? [min ?? first, max ?? last] : [low, high];
    }

    show(label, visible) {
      this.lines.forEach((line, index) => { if (line.label === label) this.plot.setSeries(index + 1, { show: visible }); });
    }

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
      this.tip.replaceChildren(html("div", "", `step ${near[0].x}`), ...near.slice(0, MOST_IN_TIP).map(point => html("div", "", `${point.label}: ${+point.y.toPrecision(5)}`)));
      const place = this.plot.over.offsetLeft + this.plot.valToPos(near[0].x, "x") + 10;
      this.tip.style.left = `${Math.max(0, Math.min(place, this.host.clientWidth - this.tip.offsetWidth))}px`;
    }
  }

  function logRange(plot, low, high) { return low === null ? [1, 10] : uPlot.rangeLog(low, high, 10, false); }

  function swatch(rank) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", "svg"), line = document.createElementNS("http://www.w3.org/2000/svg", "path");
    for (const [key, value] of Object.entries({ width: 24, height: 8, "aria-hidden": "true" })) made.setAttribute(key, value);
    for (const [key, value] of Object.entries({ d: "M1 4H23", style: `stroke: var(${colourOf(rank)})`, "stroke-dasharray": dashOf(rank).join(" ") })) line.setAttribute(key, value);
    made.append(line);
    return made;
  }

  function legend(host, { charts, ranks }) {
    for (const [label, rank] of ranks) {
      const button = html("button", "", label);
      button.type = "button";
      button.prepend(swatch(rank));
      button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", () => {
        const visible = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(visible));
        charts.forEach(chart => chart.show(label, visible));
      });
      host.append(button);
    }
  }

  const groups = new Map();
  const specs = JSON.parse(document.getElementById("data").textContent);
  for (const { group: name, lines } of specs) {
    if (!groups.has(name)) groups.set(name, { charts: [], ranks: new Map() });
    const { ranks } = groups.get(name);
    for (const { label } of lines) if (!ranks.has(label)) ranks.set(label, ranks.size);
  }
  for (const spec of specs) {
    const group = groups.get(spec.group);
    group.charts.push(new Chart(document.getElementById(spec.id), spec, group));
  }
  for (const [name, group] of groups) {
    let host = name === "" ? document.getElementById("legend") : null;
    if (host === null) {
      host = html("div", "legend");
      group.charts[0].host.parentElement.before(host);
    }
    legend(host, group);
  }
  // A canvas does not follow the colours of the page by itself.
  for (const query of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(query).addEventListener("change", () => groups.forEach(({ charts }) => charts.forEach(chart => chart.plot.redraw(false))));
  }
})();
