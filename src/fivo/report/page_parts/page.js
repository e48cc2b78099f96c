const { charts: specs, rolls } = JSON.parse(document.getElementById("data").textContent);

function swatch(look) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", "svg"), line = document.createElementNS("http://www.w3.org/2000/svg", "path");
  for (const [key, value] of Object.entries({ width: 24, height: 8, "aria-hidden": "true" })) made.setAttribute(key, value);
  const dash = look.dots ? "3 4" : look.dash.join(" ");
  for (const [key, value] of Object.entries({ d: "M1 4H23", style: `stroke: var(${look.colour})${look.edge ? "; stroke-opacity: .25; stroke-width: 8" : ""}`, "stroke-dasharray": dash })) line.setAttribute(key, value);
  made.append(line);
  return made;
}

// A line of a legend is shown unless it was pressed, or is not what a reader searches for.
class Entry {
  constructor(host, group, label, look) {
    Object.assign(this, { group, label, wanted: true, found: true });
    this.button = button("", label, () => { this.wanted = !this.wanted; this.apply(); });
    this.button.prepend(swatch(look));
    host.append(this.button);
    this.apply();
  }

  apply() {
    this.button.setAttribute("aria-pressed", String(this.wanted));
    this.button.hidden = !this.found;
    this.group.charts.forEach(chart => chart.show(this.label, this.wanted && this.found));
  }
}

const groups = new Map();
for (const { group: name, lines } of specs) {
  if (!groups.has(name)) groups.set(name, { charts: [], ranks: new Map(), entries: [] });
  const { ranks } = groups.get(name);
  for (const { label } of lines) if (!ranks.has(label)) ranks.set(label, ranks.size);
}
for (const spec of specs) {
  const group = groups.get(spec.group);
  group.charts.push(new Chart(document.getElementById(spec.id), spec, group.ranks));
}
for (const group of groups.values()) {
  const host = html("div", "legend"), lines = group.charts.flatMap(chart => chart.lines);
  group.charts[0].host.parentElement.before(host);
  for (const label of group.ranks.keys()) group.entries.push(new Entry(host, group, label, lines.find(line => line.label === label).look));
}

document.querySelectorAll("table").forEach(table => {
  sortable(table);
  const csv = button("screen", "CSV", () => download(`${document.title} table.csv`.replace(/[^\w.-]+/g, "-"), tableCsv(table), "text/csv"));
  csv.title = "Download this table";
  table.closest("section").querySelector("h2").append(csv);
});

document.querySelectorAll("[data-roll]").forEach(figure => {
  const name = figure.dataset.roll, notes = rolls[name], tools = html("span", "tools screen");
  tools.append(
    button("", "SVG", () => download(`${name}.svg`, rollSvg(name, notes), "image/svg+xml")),
    button("", "CSV", () => download(`${name}.csv`, csvOf([["note", "first step", "steps"], ...notes]), "text/csv")),
  );
  figure.querySelector("figcaption").append(tools);
});

// The search narrows the table of runs, and the runs in the charts of training.
const search = document.getElementById("search");
search?.addEventListener("input", () => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean), rows = [...document.querySelectorAll("#runs tbody tr")];
  const matching = new Set();
  for (const row of rows) {
    row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word));
    if (!row.hidden) matching.add(row.cells[0].textContent);
  }
  for (const entry of groups.get("")?.entries ?? []) {
    entry.found = matching.has(entry.label);
    entry.apply();
  }
  document.getElementById("matching").textContent = `${matching.size} of ${rows.length}`;
});

// A canvas does not follow the colours of the page by itself.
for (const query of ["(prefers-color-scheme: dark)", "print"]) {
  matchMedia(query).addEventListener("change", () => groups.forEach(({ charts }) => charts.forEach(chart => chart.plot.redraw(false))));
}
