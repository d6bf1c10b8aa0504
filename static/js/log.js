// The output of a job: follows its end until somebody scrolls up, keeps its place when earlier lines come, wraps or not.
"use strict";
(() => {
  const MOST = 6000; // lines kept in the page while it follows; earlier ones can be loaded again
  const atEnd = (box) => box.scrollHeight - box.scrollTop - box.clientHeight < 24;
  const boxes = () => [...document.querySelectorAll("#log .output")];
  let following = true, wraps = true;
  try { wraps = localStorage.getItem("wrap") !== "off"; } catch { /* then the default */ }

  function toEnd() {
    for (const box of boxes()) if ("end" in box.dataset) box.scrollTop = box.scrollHeight;
  }

  function show() {
    const log = document.getElementById("log");
    if (!log) return;
    log.classList.toggle("nowrap", !wraps);
    const wrap = document.getElementById("log-wrap"), follow = document.getElementById("log-follow");
    if (wrap) { wrap.hidden = false; wrap.setAttribute("aria-pressed", String(wraps)); }
    if (follow) {
      follow.hidden = !log.querySelector("[data-poll]");
      follow.setAttribute("aria-pressed", String(following));
    }
  }

  // What a person scrolls decides; what a new line moves does not.
  document.addEventListener("scroll", (event) => {
    const box = event.target;
    if (!(box instanceof Element) || !box.matches("#log .output[data-end]")) return;
    const now = boxes().every((one) => !("end" in one.dataset) || atEnd(one));
    if (now !== following) { following = now; show(); }
  }, true);

  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("button") : null;
    if (button?.id === "log-wrap") {
      wraps = !wraps;
      try { localStorage.setItem("wrap", wraps ? "on" : "off"); } catch { /* then only for this page */ }
    } else if (button?.id === "log-follow") {
      following = !following;
    } else {
      return;
    }
    show();
    if (following) toEnd();
  });

  // Numbers stand left of their lines: a click there makes the line the address.
  document.addEventListener("click", (event) => {
    if (!(event.target instanceof Element) || !event.target.matches("#log ol.lines")) return;
    const line = [...event.target.children].find((one) => {
      const { top, bottom } = one.getBoundingClientRect();
      return one.id && !one.matches(".edge, .more") && top <= event.clientY && event.clientY < bottom;
    });
    if (line) location.hash = line.id;
  });

  let above = null, ours = false; // a box and its place while earlier lines are put before it; a swap within the log
  document.addEventListener("htmx:beforeSwap", (event) => {
    const edge = event.detail.target.closest?.("#log li.edge");
    ours = Boolean(event.detail.target.closest?.("#log"));
    const box = edge?.closest(".output");
    above = box && edge.id.endsWith("-earlier") ? { box, height: box.scrollHeight, top: box.scrollTop } : null;
  });

  // Not before: until then htmx lends new parts the classes of old ones that had their ids.
  document.addEventListener("htmx:afterSettle", (event) => {
    const log = document.getElementById("log");
    const { target } = event.detail;
    if (!log || !ours) return;
    if (above) {
      above.box.scrollTop = above.top + above.box.scrollHeight - above.height;
      above = null;
      return;
    }
    for (const box of boxes()) {
      if (box.classList.contains("none") && box.querySelector("li:not(.none)")) {
        box.classList.remove("none");
        box.parentElement.querySelector(".empty")?.remove();
      }
      if (following && "end" in box.dataset) trim(box);
    }
    show();
    if (target?.id === "log") arrive();
    else if (following) toEnd();
  });

  // The last answer may bring nothing: then nothing settles, and yet there is nothing more to follow.
  document.addEventListener("htmx:afterRequest", () => setTimeout(show, 50));

  function trim(box) {
    const lines = box.querySelectorAll("li:not(.edge, .more)");
    for (let i = 0; i < lines.length - MOST; i += 1) lines[i].remove();
    if (lines.length > MOST) {
      const first = lines[lines.length - MOST];
      if (first.id) first.value = Number(first.id.replace(/^.*L/, ""));
      box.querySelector("li.edge")?.remove(); // it would load what stands before the lines that went
    }
  }

  // A hit is shown in the middle of its box; the page itself stays where it is.
  function arrive() {
    const hit = document.querySelector("#log .hit");
    const box = hit?.closest(".output");
    if (box) {
      box.scrollTop += hit.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 3;
    } else if (document.querySelector("#log .output[data-end]")) {
      following = true;
      toEnd();
      show();
    }
  }

  show();
  if (document.querySelector("#log .hit")) arrive();
  else if (!location.hash.includes("L")) toEnd();
})();
