"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const COLOURS = 6, DASHES = ["", "7 4", "2 4", "9 4 2 4"];
  const HEIGHT = 260, LEFT = 52, RIGHT = 12, TOP = 28, BOTTOM = 34, MOST_IN_TIP = 8;

  // Text only ever becomes text: names of runs and datasets are not ours.
  function element(name, attributes = {}, text = null) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== null) made.textContent = text;
    return made;
  }

  function html(name, className, text = "") {
    const made = document.createElement(name);
    made.className = className;
    made.textContent = text;
    return made;
  }

  function ticks(low, high, count) {
    const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(factor => factor * power).find(size => size >= rough);
    const first = Math.ceil(low / step), places = Math.floor((high - first * step) / step + 1e-9) + 1;
    return Array.from({ length: Math.max(0, Math.min(places, 2 * count + 2)) }, (_, index) => (first + index) * step);
  }

  // The logarithms of round numbers, or evenly spaced ones where there are too few of those.
  function logarithmicTicks(low, high) {
    const found = [];
    for (let power = Math.floor(low); power <= high; power++) {
      for (const factor of high - low > 4 ? [1] : [1, 2, 5]) {
        const place = power + Math.log10(factor);
        if (place >= low && place <= high) found.push(place);
      }
    }
    return found.length > 1 ? found : ticks(low, high, 4);
  }

  const short = value => {
    const size = Math.abs(value);
    if (size >= 1e4) return `${+(value / 1e3).toPrecision(4)}k`;
    return size !== 0 && size < 1e-3 ? value.toExponential(1) : String(+value.toPrecision(4));
  };

  // A run has the same colour and dashes in every chart of its group, whichever charts it is missing from.
  const strokeOf = rank => ({ style: `stroke: var(--line${rank % COLOURS})`, "stroke-dasharray": DASHES[Math.floor(rank / COLOURS) % DASHES.length] });

  class Chart {
    constructor(host, spec, { hidden, ranks }) {
      Object.assign(this, { host, spec, hidden, ranks, range: null });
      this.tip = html("div", "tip");
      this.tip.hidden = true;
      this.reset = html("button", "screen", "all");
      this.reset.type = "button";
      this.reset.hidden = true;
      this.reset.addEventListener("click", () => this.zoom(null));
      host.append(this.tip, this.reset);
      new ResizeObserver(() => this.draw()).observe(host);
      this.draw();
    }

    get lines() { return this.spec.lines.filter(line => !this.hidden.has(line.label)); }

    zoom(range) {
      // Narrower than a pixel of the whole there is nothing to see, and numbers run out of digits.
      if (range !== null && range[1] - range[0] < 1e-4 * (this.whole[1] - this.whole[0])) range = this.range;
      this.range = range;
      this.reset.hidden = range === null;
      this.draw();
    }

    measure() {
      const xs = this.lines.flatMap(line => line.x);
      this.whole = [xs.reduce((a, b) => Math.min(a, b), Infinity), xs.reduce((a, b) => Math.max(a, b), -Infinity)];
      let [left, right] = this.range ?? this.whole;
      if (!(right > left)) [left, right] = [Number.isFinite(left) ? left - 1 : 0, Number.isFinite(left) ? left + 1 : 1];
      let low = Infinity, high = -Infinity;
      for (const line of this.lines) line.x.forEach((x, index) => {
        const y = this.place(line.y[index]);
        if (x >= left && x <= right && Number.isFinite(y)) [low, high] = [Math.min(low, y), Math.max(high, y)];
      });
      if (!(high - low > 1e-9 * Math.abs(high))) [low, high] = Number.isFinite(low) ? [low - 1, low + 1] : [0, 1];
      const margin = 0.05 * (high - low);
      Object.assign(this, { left, right, low: low - margin, high: high + margin });
    }

    // What is no number, which JSON has as null, has no place.
    place(y) { return y === null ? NaN : this.spec.log ? Math.log10(y) : y; }
    toX(x) { return LEFT + (x - this.left) / (this.right - this.left) * (this.width - LEFT - RIGHT); }
    fromX(pixel) { return this.left + (pixel - LEFT) / (this.width - LEFT - RIGHT) * (this.right - this.left); }
    toY(y) { return HEIGHT - BOTTOM - (this.place(y) - this.low) / (this.high - this.low) * (HEIGHT - TOP - BOTTOM); }

    draw() {
      this.width = Math.max(this.host.clientWidth, 240);
      this.measure();
      const svg = element("svg", { viewBox: `0 0 ${this.width} ${HEIGHT}`, height: HEIGHT, role: "img" });
      svg.append(element("title", {}, this.spec.title), element("text", { class: "title", x: 4, y: 14 }, this.spec.title));
      for (const tick of this.spec.log ? logarithmicTicks(this.low, this.high) : ticks(this.low, this.high, 5)) {
        const value = this.spec.log ? 10 ** tick : tick, y = this.toY(value);
        svg.append(element("path", { class: "grid", d: `M${LEFT} ${y}H${this.width - RIGHT}` }));
        svg.append(element("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, short(value)));
      }
      for (const tick of ticks(this.left, this.right, Math.max(2, Math.floor(this.width / 110)))) {
        svg.append(element("text", { x: this.toX(tick), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, short(tick)));
      }
      svg.append(element("text", { x: this.width - RIGHT, y: HEIGHT - 4, "text-anchor": "end" }, "step"));
      if (this.spec.y) svg.append(element("text", { x: 4, y: HEIGHT - 4 }, this.spec.y));
      const inner = element("svg", { x: LEFT, y: TOP, width: this.width - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM, viewBox: `${LEFT} ${TOP} ${this.width - LEFT - RIGHT} ${HEIGHT - TOP - BOTTOM}` });
      for (const line of this.lines) inner.append(this.path(line));
      this.cross = element("path", { class: "cross", d: "" });
      this.box = element("rect", { class: "zoom", y: TOP, height: HEIGHT - TOP - BOTTOM, width: 0 });
      inner.append(this.cross, this.box);
      svg.append(inner);
      this.listen(svg);
      this.host.querySelector("svg")?.remove();
      this.host.prepend(svg);
      this.host.dataset.drawn = this.lines.length;
    }

    path(line) {
      let d = "", pen = "M";
      line.x.forEach((x, index) => {
        const y = this.toY(line.y[index]);
        if (!Number.isFinite(y)) { pen = "M"; return; }
        d += `${pen}${this.toX(x).toFixed(1)} ${y.toFixed(1)}`;
        // A point between gaps is a dot of the line's width.
        if (pen === "M" && !Number.isFinite(this.toY(line.y[index + 1] ?? null))) d += "h0.1";
        pen = "L";
      });
      const path = element("path", { class: "line", d, ...strokeOf(this.ranks.get(line.label)) });
      path.append(element("title", {}, line.label));
      return path;
    }

    listen(svg) {
      const at = event => {
        const box = svg.getBoundingClientRect();
        return [(event.clientX - box.left) * this.width / box.width, (event.clientY - box.top) * HEIGHT / box.height];
      };
      let start = null;
      svg.addEventListener("pointerdown", event => { if (event.pointerType !== "touch") start = at(event)[0]; });
      svg.addEventListener("pointermove", event => {
        const [x, y] = at(event);
        if (start !== null) {
          this.box.setAttribute("x", Math.min(start, x));
          this.box.setAttribute("width", Math.abs(x - start));
        }
        this.hover(x, y);
      });
      svg.addEventListener("pointerup", event => {
        const [x] = at(event), from = start;
        start = null;
        this.box.setAttribute("width", 0);
        if (from !== null && Math.abs(x - from) > 8) this.zoom([this.fromX(Math.min(x, from)), this.fromX(Math.max(x, from))]);
      });
      svg.addEventListener("pointerleave", () => {
        start = null;
        this.tip.hidden = true;
        this.cross.setAttribute("d", "");
        this.box.setAttribute("width", 0);
      });
      svg.addEventListener("dblclick", () => this.zoom(null));
    }

    hover(x, y) {
      const wanted = this.fromX(x);
      const points = this.lines.flatMap(line => {
        let best = -1, distance = Infinity;
        line.x.forEach((value, index) => {
          const d = Math.abs(value - wanted);
          if (d < distance && Number.isFinite(this.toY(line.y[index]))) [best, distance] = [index, d];
        });
        return best < 0 ? [] : [{ label: line.label, x: line.x[best], y: line.y[best], away: distance, far: Math.abs(this.toY(line.y[best]) - y) }];
      });
      // Lines that have ended, or not begun, have nothing to say here.
      const closest = Math.min(...points.map(point => point.away)), reach = closest + 0.03 * (this.right - this.left);
      const near = points.filter(point => point.away <= reach).sort((a, b) => a.far - b.far);
      if (!near.length || x < LEFT) { this.tip.hidden = true; return; }
      const place = this.toX(near[0].x);
      this.cross.setAttribute("d", `M${place} ${TOP}V${HEIGHT - BOTTOM}`);
      this.tip.replaceChildren(html("div", "", `step ${near[0].x}`), ...near.slice(0, MOST_IN_TIP).map(point => html("div", "", `${point.label}: ${+point.y.toPrecision(5)}`)));
      this.tip.hidden = false;
      const scale = this.host.clientWidth / this.width;
      this.tip.style.left = `${Math.max(0, Math.min(place * scale + 10, this.host.clientWidth - this.tip.offsetWidth))}px`;
      this.tip.style.top = `${TOP}px`;
    }
  }

  function legend(host, { charts, hidden, ranks }) {
    for (const [label, rank] of ranks) {
      const button = html("button", "", label);
      button.type = "button";
      const swatch = element("svg", { width: 24, height: 8, "aria-hidden": "true" });
      swatch.append(element("path", { class: "line", d: "M1 4H23", ...strokeOf(rank) }));
      button.prepend(swatch);
      button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", () => {
        if (!hidden.delete(label)) hidden.add(label);
        button.setAttribute("aria-pressed", String(!hidden.has(label)));
        charts.forEach(chart => chart.draw());
      });
      host.append(button);
    }
  }

  const groups = new Map();
  const specs = JSON.parse(document.getElementById("data").textContent);
  for (const { group: name, lines } of specs) {
    if (!groups.has(name)) groups.set(name, { charts: [], hidden: new Set(), ranks: new Map() });
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
})();
