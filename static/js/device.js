// The chart of one pool: the whole range once, then a point a second, added to what is drawn. It can be paused and saved.
"use strict";
(() => {
  const LENGTH = { "10m": 600, "1h": 3600, "24h": 86400, "30d": 2592000 }; // seconds
  const AWAY = 120; // seconds after which the whole range is asked for again
  const { anything, ask, colour, dress, draw, parts, say } = window.figures;
  const chart = document.getElementById("chart"), pause = document.getElementById("pause"), says = document.getElementById("chart-says");
  const range = chart.dataset.range;
  let known = null, last = null, busy = false, paused = false, over = false;

  // New points in the traces that are drawn: whoever left has nothing, the many small ones are summed. Null: somebody came.
  function aligned(figure) {
    const fresh = new Map(figure.data.map((trace) => [trace.meta.key, trace.y]));
    const { x } = figure.data[0], summed = new Set(known.data.flatMap((trace) => trace.meta.of || []));
    const drawn = new Set(known.data.map((trace) => trace.meta.key));
    if ([...fresh.keys()].some((key) => !drawn.has(key) && !summed.has(key))) return null;
    const sum = (keys) => x.map((_, i) => keys.reduce((all, key) => all + (fresh.get(key)?.[i] || 0), 0));
    const mark = ({ meta }) => meta.key.startsWith("mark") && x.map(() => null); // stands where it stands
    return { x, ys: known.data.map((trace) => mark(trace) || fresh.get(trace.meta.key) || sum(trace.meta.of || [])) };
  }
  const span = () => { const end = Date.now(); return [end - LENGTH[range] * 1000, end]; };

  function failed({ trouble, over: ended }) {
    over = Boolean(ended);
    if (over) document.dispatchEvent(new CustomEvent("session-over"));
    if (!known) say(chart, trouble);
    else says.textContent = trouble;
  }

  async function whole() {
    const answer = await ask(chart.dataset.series, { range });
    if (!answer.figure) return failed(answer);
    if (known && paused) return null;
    known = answer.figure;
    last = known.last;
    says.textContent = `A point is ${known.says}.`;
    await draw(chart, known);
    if (anything(known) && !chart.listens) {
      chart.listens = true;
      chart.on("plotly_click", open);
    }
  }

  async function more() {
    if (!known || last === null || Date.now() / 1000 - last > AWAY + known.step) return whole();
    if (Date.now() / 1000 - last < (known.step > 1 ? 2 * known.step : 1)) return null; // a step is told when it is over
    const answer = await ask(chart.dataset.series, { range, since: last });
    if (!answer.figure) return failed(answer);
    if (paused) return null; // was under way when somebody paused: it is asked for again when they go on
    const { figure } = answer;
    if (figure.last === null) return Plotly.relayout(chart, { "xaxis.range": span() });
    const added = figure.step === known.step ? aligned(figure) : null;
    if (!added) return whole();
    last = figure.last;
    const most = Math.ceil(LENGTH[range] / known.step) + 10;
    known.data.forEach((trace, i) => { // what the table and another theme are made of
      trace.x = [...trace.x, ...added.x].slice(-most);
      trace.y = [...trace.y, ...added.ys[i]].slice(-most);
    });
    known.layout.xaxis.range = span();
    await Plotly.extendTraces(chart, { x: known.data.map(() => added.x), y: added.ys }, known.data.map((_, i) => i), most);
    return Plotly.relayout(chart, { "xaxis.range": span() });
  }

  // Which area lies under the pointer: the first whose upper edge is above it. Its owner's page opens.
  function open({ points, event }) {
    const { yaxis } = chart._fullLayout, at = points[0]?.pointNumber;
    const amount = yaxis.p2d(event.clientY - chart.getBoundingClientRect().top - yaxis._offset);
    let edge = 0;
    for (const trace of known.data.filter((one) => one.stackgroup)) {
      edge += trace.y[at] || 0;
      if (amount <= edge) {
        if (trace.meta.href) location.assign(trace.meta.href);
        return;
      }
    }
  }

  async function round() {
    if (busy || paused || over || document.hidden || window.sessionOver?.()) return;
    busy = true;
    try { await more(); } catch (error) { console.debug(error); }
    busy = false;
  }

  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Go on" : "Pause";
    if (!paused) round();
  });

  document.getElementById("png").addEventListener("click", async () => {
    if (!known || !anything(known)) return;
    const layout = {
      ...chart.layout, paper_bgcolor: colour("card"), plot_bgcolor: colour("card"), showlegend: true, legend: { orientation: "h", y: -0.15 },
      title: { text: window.figures.plain(document.querySelector("h1").textContent.trim()), font: { size: 15 } }, margin: { l: 60, r: 20, t: 50, b: 60 },
    };
    const drawn = { data: known.data.map(dress), layout, config: {} };
    const address = await Plotly.toImage(drawn, { format: "png", width: 1400, height: 620, scale: 2 });
    const link = document.createElement("a");
    link.href = address;
    link.download = `${chart.dataset.name.replace(/[^\w.-]+/g, "-")}.png`;
    link.click();
  });

  document.addEventListener("theme", () => { if (known && anything(known)) draw(chart, known); });
  parts(chart);
  round();
  setInterval(round, 1000);
})();
