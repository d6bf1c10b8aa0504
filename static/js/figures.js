// Draws what a URL says: one figure per ".chart[data-figure]", in the tokens' colours. On a time axis x is in
// milliseconds since 1970 (UTC), which Plotly shows in the reader's own zone.
// Names are data: they become text, never markup. Other scripts find the parts under window.figures.
"use strict";
(() => {
  const ALPHA = { area: 0.82, band: 0.18 };
  const probe = document.createElement("i");
  const paper = document.createElement("canvas").getContext("2d");
  const shown = new Map(); // chart to what it shows: the figure as it came, when to ask again, its version
  probe.hidden = true;
  document.body.append(probe);

  // A token as "#rrggbb", whatever notation the stylesheet uses.
  function colour(name) {
    probe.style.color = "";
    probe.style.color = `var(--${name})`;
    paper.fillStyle = "#808080";
    paper.fillStyle = getComputedStyle(probe).color;
    return paper.fillStyle;
  }

  const faded = (hex, share) => hex + Math.round(share * 255).toString(16).padStart(2, "0");
  const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const texts = (value) => (Array.isArray(value) ? value.map(texts) : typeof value === "string" ? plain(value) : value);
  const inBars = (trace) => trace.type === "bar";
  const isArea = (trace) => Boolean(trace.stackgroup || trace.fill);

  function dress(trace) {
    const meta = trace.meta || {}, tone = colour(meta.tone || "soft");
    const dressed = { ...trace, name: plain(trace.name ?? "") };
    for (const part of ["text", "hovertext"]) if (part in trace) dressed[part] = texts(trace[part]);
    for (const axis of ["x", "y"]) if (typeof trace[axis]?.[0] === "string") dressed[axis] = texts(trace[axis]);
    const share = meta.alpha ?? (trace.fill ? ALPHA.band : ALPHA.area);
    if (inBars(trace)) {
      const tones = Array.isArray(meta.tones) ? meta.tones.map(colour) : tone;
      dressed.marker = { line: { color: colour("card"), width: 1 }, ...trace.marker, color: tones, opacity: meta.alpha ?? 1 };
      return dressed;
    }
    dressed.line = { ...trace.line, color: tone };
    dressed.marker = { size: 7, ...trace.marker, color: faded(tone, meta.alpha ?? 1) };
    if (isArea(trace)) dressed.fillcolor = faded(tone, share);
    return dressed;
  }

  // The name of a shape or annotation is its tone: they have no "meta".
  const shape = (one) => {
    const tone = colour(one.name || "soft");
    const line = { width: 1, ...one.line, color: tone };
    return { ...one, line, fillcolor: one.type === "rect" ? faded(tone, 0.12) : undefined };
  };
  const note = (one) => ({
    showarrow: false, ...one, text: plain(one.text).replace(/\n/g, "<br>"), font: { size: 11, ...one.font, color: colour(one.name || "soft") },
  });

  // All of one instant: a minute around it, where Plotly would show milliseconds.
  function around(own, data) {
    if (own?.xaxis?.type !== "date" || own.xaxis.range) return own;
    const all = data.flatMap((trace) => trace.x ?? []), least = Math.min(...all), most = Math.max(...all);
    return most - least < 10_000 ? { ...own, xaxis: { ...own.xaxis, range: [least - 30_000, most + 30_000] } } : own;
  }

  function layout(own = {}, width = 600) {
    const soft = colour("soft"), line = colour("line"), axis = { gridcolor: line, linecolor: line, zerolinecolor: line, automargin: true };
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: soft },
      margin: { l: 44, r: 10, t: 10, b: 28 }, hovermode: "x unified", showlegend: false, dragmode: false, bargap: 0.25,
      hoverlabel: { bgcolor: colour("card"), bordercolor: line, font: { color: colour("ink") }, namelength: 40 },
      uirevision: "kept", ...own, xaxis: { ...axis, zeroline: false, nticks: Math.max(3, Math.min(8, Math.floor(width / 110))), ...(own.xaxis?.type === "date" ? { tickangle: 0 } : {}), ...own.xaxis },
      yaxis: { ...axis, zeroline: false, ...own.yaxis },
      shapes: (own.shapes || []).map(shape), annotations: (own.annotations || []).map(note),
    };
  }

  function swatch(trace) {
    const mark = document.createElement("i"), dash = trace.line?.dash;
    const kind = isArea(trace) || inBars(trace) ? "block" : trace.mode === "markers" ? "dot" : dash && dash !== "solid" ? "line dashed" : "line";
    mark.className = `swatch ${kind} tone-${trace.meta?.tone || "soft"}`;
    return mark;
  }

  function legend(list, traces) {
    const items = traces.filter((trace) => trace.name && trace.meta?.legend !== false).map((trace) => {
      const item = document.createElement("li"), href = trace.meta?.href;
      const text = document.createElement(href ? "a" : "span");
      if (href) text.href = href;
      text.textContent = trace.name;
      item.append(swatch(trace), text);
      return item;
    });
    const before = [...list.children].map((item) => item.textContent).join("\n");
    if (items.length && before === items.map((item) => item.textContent).join("\n")) return; // focus stays where it is
    list.replaceChildren(...items);
  }

  // The parts around a chart: made once, beside it.
  function parts(chart) {
    const made = chart.figureParts;
    if (made) return made;
    const list = document.createElement("ul"), none = document.createElement("p"), more = document.createElement("details");
    list.className = "key figure-key";
    list.setAttribute("aria-label", "What is drawn");
    none.className = "soft note figure-none";
    none.hidden = true;
    more.className = "figure-table";
    more.id = `${chart.id || "figure"}-table`;
    const summary = document.createElement("summary");
    summary.textContent = "as a table";
    more.append(summary);
    more.addEventListener("toggle", () => { if (more.open && more.figure) window.figureTable(more, more.figure); });
    chart.after(list, none, more);
    chart.figureParts = { list, none, more };
    return chart.figureParts;
  }

  const anything = (figure) => figure.data.some((trace) => (inBars(trace) && trace.orientation === "h" ? trace.x : trace.y)?.some((v) => v !== null));

  function say(chart, sentence) {
    const { list, none, more } = parts(chart);
    if (none.textContent !== sentence) none.textContent = sentence;
    none.hidden = sentence === "";
    chart.hidden = sentence !== "";
    list.hidden = more.hidden = chart.hidden;
  }

  async function draw(chart, figure) {
    const { list, more } = parts(chart);
    chart.removeAttribute("aria-busy");
    if (!anything(figure)) return say(chart, chart.dataset.empty || "Nothing to draw yet.");
    say(chart, "");
    legend(list, figure.data);
    more.figure = figure;
    if (more.open) window.figureTable(more, figure);
    return Plotly.react(chart, figure.data.map(dress), layout(around(figure.layout, figure.data), chart.clientWidth), { displayModeBar: false, responsive: true });
  }

  // What a URL answers: {figure}, {current: true} where nothing changed, or {trouble: a sentence}.
  async function ask(url, query = {}) {
    const where = new URL(url, location.href);
    for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== null) where.searchParams.set(name, value);
    let answer = null;
    try { answer = await fetch(where, { headers: { Accept: "application/json" } }); } catch { /* said below */ }
    if (!answer) return { trouble: "The service cannot be reached. The chart is drawn when it is back." };
    if (answer.redirected || answer.status === 401) return { trouble: "Your session is over. Log in again to see this chart.", over: true };
    if (answer.status === 204) return { current: true };
    if (!answer.ok) return { trouble: `The chart could not be read (${answer.status}). It is asked for again.` };
    return { figure: await answer.json() };
  }

  async function load(chart) {
    const state = shown.get(chart) || { figure: null, version: null, over: false, busy: false };
    shown.set(chart, state);
    if (state.busy || state.over) return;
    state.busy = true;
    state.asked = Date.now();
    const { figure, trouble, over } = await ask(chart.dataset.figure, { v: state.version });
    state.over = Boolean(over);
    if (over) document.dispatchEvent(new CustomEvent("session-over"));
    if (figure) {
      state.figure = figure;
      state.version = figure.version ?? null;
      await draw(chart, figure);
    } else if (trouble && !state.figure) say(chart, trouble); // what is drawn stays
    state.wrong = Boolean(trouble);
    state.busy = false;
  }

  function found(root) {
    for (const chart of root.querySelectorAll(".chart[data-figure]")) if (!shown.has(chart)) load(chart);
  }

  function round() {
    if (document.hidden || window.sessionOver?.()) return;
    for (const [chart, state] of shown) {
      if (!chart.isConnected) { Plotly.purge(chart); shown.delete(chart); continue; }
      const every = Number(chart.dataset.every) || (state.wrong ? 5 : 0);
      if (every && Date.now() - state.asked >= every * 1000) load(chart);
    }
  }

  function redraw() {
    for (const [chart, state] of shown) if (state.figure && chart.isConnected) draw(chart, state.figure);
  }

  window.figures = { anything, ask, colour, dress, draw, layout, legend, parts, plain, say };
  found(document);
  setInterval(round, 1000);
  document.addEventListener("htmx:afterSettle", () => found(document));
  document.addEventListener("theme", redraw);
})();
