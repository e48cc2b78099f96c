function download(name, text, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// A spreadsheet must take text for text, never for a formula.
function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = /^\s*[=+\-@]/.test(value) && Number.isNaN(Number(value)) ? `'${value}` : value;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
const csvOf = rows => rows.map(row => row.map(csvCell).join(",") + "\r\n").join("");

// All of a chart's numbers, whatever is zoomed or hidden.
function chartCsv({ spec }) {
  const columns = uPlot.join(spec.lines.map(line => [line.x, line.y]));
  const x = spec.time ? columns[0].map(value => new Date(value * 1e3).toISOString()) : columns[0];
  return csvOf([[spec.x, ...spec.lines.map(line => line.name ?? line.label)], ...x.map((value, at) => [value, ...columns.slice(1).map(column => column[at])])]);
}

const escaped = text => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
function element(name, attributes, content = "") {
  return `<${name} ${Object.entries(attributes).map(([key, value]) => `${key}="${escaped(value)}"`).join(" ")}>${content}</${name}>`;
}
function svgOf(width, height, content) {
  return element("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "sans-serif", "font-size": 11 }, element("rect", { width, height, fill: css("--paper") }) + content);
}

// The chart as it is shown: its range, its axes and the lines that are not hidden.
function chartSvg({ plot, spec, lines, bands }) {
  const scale = plot.bbox.width / plot.over.clientWidth, top = plot.bbox.top / scale + 20, left = plot.bbox.left / scale;
  const wide = plot.over.clientWidth, high = plot.over.clientHeight, ink = css("--ink"), rule = css("--rule");
  const px = x => (left + plot.valToPos(x, "x")).toFixed(2), py = y => (top + plot.valToPos(y, "y")).toFixed(2);
  const text = (x, y, content, more = {}) => element("text", { x, y, fill: ink, ...more }, escaped(content));
  let drawn = text(left, 14, spec.title, { "font-weight": "bold" });
  for (const [axis, place] of [[plot.axes[0], x => [px(x), top + high + 14, "middle"]], [plot.axes[1], y => [left - 5, +py(y) + 4, "end"]]]) {
    axis._splits?.forEach((value, at) => {
      const label = axis._values[at];
      if (label === null || label === "" || value === null) return;
      const [x, y, anchor] = place(value);
      drawn += element("path", { d: axis === plot.axes[0] ? `M${px(value)} ${top}v${high}` : `M${left} ${py(value)}h${wide}`, stroke: rule });
      String(label).split("\n").forEach((part, line) => { drawn += text(x, +y + 12 * line, part, { "text-anchor": anchor }); });
    });
  }
  drawn += text(left + wide / 2, top + high + 40, spec.x, { "text-anchor": "middle" });
  if (spec.y) drawn += text(12, top + high / 2, spec.y, { "text-anchor": "middle", transform: `rotate(-90 12 ${top + high / 2})` });
  const shown = index => plot.series[index].show;
  const pieces = index => {
    const found = [[]];
    plot.data[0].forEach((x, at) => {
      const y = plot.data[index][at];
      if (y === null) found.push([]);
      else if (y !== undefined) found.at(-1).push([px(x), py(y)]);
    });
    return found.filter(piece => piece.length);
  };
  const path = points => points.map(point => point.join(" ")).join("L");
  let inside = "";
  for (const { series: [upper, lower] } of bands) {
    if (!shown(upper)) continue;
    const below = pieces(lower);
    pieces(upper).forEach((piece, at) => { inside += element("path", { d: `M${path(piece)}L${path(below[at].toReversed())}Z`, fill: css("--line0"), "fill-opacity": 0.22 }); });
  }
  const legend = new Map();
  lines.forEach(({ label, look }, at) => {
    if (!shown(at + 1)) return;
    legend.set(label, look);
    if (look.edge) return;
    const colour = css(look.colour);
    for (const piece of pieces(at + 1)) {
      if (look.dots || piece.length === 1) piece.forEach(([cx, cy]) => { inside += element("circle", { cx, cy, r: (look.dots ?? 5) / 2, stroke: colour, fill: look.dots > 5 ? "none" : colour }); });
      else inside += element("path", { d: `M${path(piece)}`, fill: "none", stroke: colour, "stroke-width": look.width, "stroke-dasharray": look.dash.join(" ") || "none" });
    }
  });
  // A nested picture cuts off what lies beyond the axes.
  drawn += element("svg", { x: left, y: top - 3, width: wide, height: high + 6, viewBox: `${left} ${top - 3} ${wide} ${high + 6}` }, inside);
  let row = top + high + 60;
  for (const [label, look] of legend) {
    drawn += element("path", { d: `M${left} ${row - 4}h24`, stroke: css(look.colour), "stroke-width": look.edge ? 8 : 3, "stroke-opacity": look.edge ? 0.22 : 1, "stroke-dasharray": look.dots ? "3 4" : look.dash.join(" ") || "none" }) + text(left + 32, row, label);
    row += 15;
  }
  return svgOf(Math.ceil(left + wide + 20), Math.ceil(row), drawn);
}

// A pianoroll of [MIDI note, first step, steps].
function rollSvg(title, notes) {
  const low = notes.reduce((a, [note]) => Math.min(a, note), 108), high = notes.reduce((a, [note]) => Math.max(a, note), 21), steps = notes.reduce((a, [, start, length]) => Math.max(a, start + length), 1);
  const blocks = notes.map(([note, start, length]) => element("rect", { x: 10 + 8 * start, y: 24 + 6 * (high - note), width: 8 * length - 1, height: 5, fill: css("--line0") })).join("");
  return svgOf(20 + 8 * steps, 36 + 6 * Math.max(1, high - low + 1), element("text", { x: 10, y: 14, fill: css("--ink") }, escaped(title)) + blocks);
}
