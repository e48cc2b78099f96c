// The first number of a cell, or its words.
function sortKey(cell) {
  const words = cell.textContent.trim(), number = parseFloat(words.replaceAll(",", ""));
  return Number.isNaN(number) ? words.replace(/^–$/, "") : number;
}

// Rows by a column: upwards, downwards, and as they were; what is empty comes last.
function sortable(table) {
  const body = table.tBodies[0], original = [...body.rows], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const press = button("sort", head.textContent, () => {
      const order = { ascending: "descending", descending: null }[head.getAttribute("aria-sort")];
      const next = order === undefined ? "ascending" : order;
      heads.forEach(other => other.removeAttribute("aria-sort"));
      if (next) head.setAttribute("aria-sort", next);
      const compare = (a, b) => {
        const [x, y] = [a, b].map(row => sortKey(row.cells[column]));
        if (x === "" || y === "") return (x === "") - (y === "");
        return (next === "ascending" ? 1 : -1) * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true }));
      };
      body.append(...(next ? original.toSorted(compare) : original));
    });
    head.replaceChildren(press);
  });
}

const oneLine = cell => cell.textContent.replace(/\s+/g, " ").trim();
const tableCsv = table => csvOf([...table.rows].map(row => [...row.cells].map(oneLine)));
