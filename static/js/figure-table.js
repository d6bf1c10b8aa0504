// A figure's values as a table, for whoever cannot see or point at the drawing. Built when it is opened.
"use strict";
(() => {
  const MOST = 200; // rows
  const pad = (n) => String(n).padStart(2, "0");
  const stamp = (ms) => {
    const at = new Date(ms);
    return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())} ${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
  };

  function cell(kind, text, scope) {
    const made = document.createElement(kind);
    made.textContent = text;
    if (scope) made.scope = scope;
    return made;
  }

  // One row per place on the axis; where a trace has a place twice, a row for each.
  function rows(figure) {
    const across = figure.data.some((trace) => trace.orientation === "h");
    const found = new Map();
    figure.data.forEach((trace, column) => {
      const seen = new Map(), places = across ? trace.y : trace.x, values = across ? trace.x : trace.y;
      places.forEach((place, i) => {
        const nth = seen.get(place) || 0;
        seen.set(place, nth + 1);
        const key = `${place} ${nth}`;
        if (!found.has(key)) found.set(key, { place, values: [] });
        found.get(key).values[column] = values[i];
      });
    });
    const list = [...found.values()];
    if (list.every((row) => typeof row.place === "number")) list.sort((a, b) => a.place - b.place);
    return { across, list };
  }

  window.figureTable = (details, figure) => {
    const { across, list } = rows(figure);
    const every = Math.ceil(list.length / MOST), kept = list.filter((_, i) => (list.length - 1 - i) % every === 0);
    const { xaxis = {}, yaxis = {} } = figure.layout || {}, dates = xaxis.type === "date";
    const unit = (across ? xaxis : yaxis).ticksuffix || "", title = (across ? yaxis : xaxis).title;
    const show = (value) => (value === null || value === undefined ? "–" : typeof value === "number" ? `${Math.round(value * 1000) / 1000}${unit}` : value);
    const table = document.createElement("table"), head = document.createElement("tr"), body = document.createElement("tbody");
    table.className = "owners figure-values";
    head.append(cell("th", (typeof title === "string" ? title : title?.text) || (dates ? "time" : "at"), "col"));
    figure.data.forEach((trace, i) => head.append(cell("th", trace.name || `series ${i + 1}`, "col")));
    for (const row of kept) {
      const line = document.createElement("tr");
      line.append(cell("th", dates && typeof row.place === "number" ? stamp(row.place) : row.place, "row"));
      figure.data.forEach((_, column) => line.append(cell("td", show(row.values[column]))));
      body.append(line);
    }
    const top = document.createElement("thead"), box = document.createElement("div");
    top.append(head);
    table.append(top, body);
    box.className = "figure-scroll";
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "Values of the chart");
    if (every > 1) box.append(cell("p", `Each ${every}th of ${list.length} rows.`));
    box.append(table);
    const before = details.querySelector(".figure-scroll"), top0 = before ? before.scrollTop : 0;
    before ? before.replaceWith(box) : details.append(box);
    box.scrollTop = top0;
  };
})();
