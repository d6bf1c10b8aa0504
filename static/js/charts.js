// One live chart per pool: the whole range once, then a point a second.
"use strict";
(() => {
  const LENGTH = { "10m": 600, "1h": 3600, "24h": 86400, "30d": 2592000 }; // seconds
  const charts = [...document.querySelectorAll(".chart")];
  const colour = window.tone;
  const state = new Map();

  function dress(trace) {
    const tone = colour(trace.meta.tone);
    const dressed = { ...trace, line: { ...trace.line, color: tone } };
    if (trace.stackgroup) dressed.fillcolor = colour(trace.meta.tone, trace.meta.key === "external" ? 0.6 : 0.8);
    return dressed;
  }

  function layout(range) {
    const end = Date.now(), soft = colour("soft"), line = colour("line");
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: soft },
      margin: { l: 44, r: 8, t: 8, b: 28 }, hovermode: "x unified", showlegend: false, dragmode: false,
      hoverlabel: { bgcolor: colour("card"), bordercolor: line, font: { color: colour("ink") } },
      xaxis: { type: "date", range: [end - LENGTH[range] * 1000, end], gridcolor: line, zeroline: false, linecolor: line,
        tickformat: range === "30d" ? "%b %d" : "%H:%M", nticks: 7 },
      yaxis: { rangemode: "tozero", ticksuffix: " GiB", gridcolor: line, zeroline: false },
      uirevision: "kept",
    };
  }

  // Plotly reads numbers on a date axis as UTC; shifting them shows the reader's own time.
  const shift = (at) => at - new Date(at).getTimezoneOffset() * 60000;
  const local = (figure) => figure.data.map((trace) => ({ ...trace, x: trace.x.map(shift) }));

  // Names are data: they become text, never markup.
  function legend(list, traces) {
    list.replaceChildren(...traces.map((trace) => {
      const item = document.createElement("li"), swatch = document.createElement("i");
      swatch.className = trace.stackgroup ? trace.meta.tone : `stroke ${trace.meta.key}`;
      item.append(swatch, trace.name);
      return item;
    }));
  }

  async function ask(chart, since) {
    const query = new URLSearchParams({ range: chart.dataset.range });
    if (since) query.set("since", since);
    const answer = await fetch(`${chart.dataset.url}?${query}`, { headers: { Accept: "application/json" } });
    if (answer.redirected || answer.status === 401) { document.dispatchEvent(new CustomEvent("session-over")); return null; }
    return answer.ok ? answer.json() : null;
  }

  async function whole(chart) {
    const figure = await ask(chart);
    if (!figure) return;
    const look = layout(chart.dataset.range);
    look.xaxis.range = look.xaxis.range.map(shift);
    legend(chart.nextElementSibling, figure.last === null ? [] : figure.data);
    chart.parentElement.querySelector(".note").hidden = figure.last !== null;
    state.set(chart, { last: figure.last, step: figure.step, traces: figure.data.map((t) => t.meta.key).join() });
    await Plotly.react(chart, local(figure).map(dress), look, { displayModeBar: false, responsive: true });
  }

  async function more(chart) {
    const known = state.get(chart);
    if (!known || known.last === null) return whole(chart);
    if (Date.now() / 1000 - known.last < known.step) return null;
    const figure = await ask(chart, known.last);
    if (!figure) return null;
    const end = shift(Date.now());
    const range = [end - LENGTH[chart.dataset.range] * 1000, end];
    if (figure.last === null) return Plotly.relayout(chart, { "xaxis.range": range });
    if (figure.data.map((t) => t.meta.key).join() !== known.traces) return whole(chart); // somebody came or went
    known.last = figure.last;
    const traces = local(figure);
    const most = Math.ceil(LENGTH[chart.dataset.range] / known.step) + 10;
    await Plotly.extendTraces(
      chart, { x: traces.map((t) => t.x), y: traces.map((t) => t.y) }, traces.map((_, i) => i), most);
    return Plotly.relayout(chart, { "xaxis.range": range });
  }

  let busy = false;
  async function round(step) {
    if (busy || document.hidden || window.sessionOver()) return;
    busy = true;
    try { for (const chart of charts) await step(chart); } catch { /* the next second tries again */ }
    busy = false;
  }

  round(whole);
  setInterval(() => round(more), 1000);
  document.addEventListener("theme", () => round(whole));
})();
