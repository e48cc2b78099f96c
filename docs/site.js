// Formulas: what arithmatex marked, by the KaTeX that is shipped with the site.
document$.subscribe(() =>
  renderMathInElement(document.body, {
    delimiters: [
      { left: "\\[", right: "\\]", display: true },
      { left: "\\(", right: "\\)", display: false },
    ],
  }),
);
