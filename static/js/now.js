// Ticked jobs: all of a list at once, how many there are, and which acts fit them. Without it the form works, too.
"use strict";
(() => {
  const form = document.getElementById("bulk"), count = document.getElementById("bulk-count");
  if (!form) return;
  const boxes = (part = document) => [...part.querySelectorAll('input[name="job"][form="bulk"]')];
  const ticked = () => boxes().filter((box) => box.checked);
  const none = document.getElementById("bulk-none");

  // A job moves from one list to another while it is ticked; what is on no list any more is ticked no more.
  const chosen = new Set();

  function show() {
    const now = ticked(), kinds = {};
    for (const box of now) kinds[box.dataset.is] = (kinds[box.dataset.is] ?? 0) + 1;
    form.classList.toggle("idle", now.length === 0);
    const words = now.length ? `${now.length} selected` : "";
    if (count.textContent !== words) count.textContent = words;
    for (const button of form.querySelectorAll("[data-for]")) {
      button.disabled = !button.dataset.for.split(" ").some((kind) => kinds[kind]);
    }
    for (const all of document.querySelectorAll("[data-all]")) {
      const list = boxes(document.getElementById(all.dataset.all)), some = list.filter((box) => box.checked).length;
      all.disabled = list.length === 0;
      all.checked = some > 0 && some === list.length;
      all.indeterminate = some > 0 && some < list.length;
    }
  }

  function again() {
    for (const box of boxes()) box.checked = chosen.has(box.value);
    const there = new Set(boxes().map((box) => box.value));
    for (const name of chosen) if (!there.has(name)) chosen.delete(name);
    show();
  }

  document.addEventListener("change", (event) => {
    const { target } = event;
    const list = target.dataset.all && document.getElementById(target.dataset.all);
    if (list) for (const box of boxes(list)) box.checked = target.checked;
    else if (target.name !== "job") return;
    for (const box of boxes()) box.checked ? chosen.add(box.value) : chosen.delete(box.value);
    show();
  });
  none.addEventListener("click", () => {
    const last = ticked().at(-1);
    chosen.clear();
    again();
    last?.focus();
  });

  // Back to what is shown now, which filters may have changed since the page came.
  form.addEventListener("submit", (event) => {
    form.elements.back.value = location.pathname + location.search;
    const runs = ticked().filter((box) => box.dataset.is === "running").length, all = ticked().length;
    if (event.submitter?.value !== "cancel" || all < 2 || !runs) return;
    if (!confirm(`Cancel ${all} jobs? ${runs} of them ${runs === 1 ? "runs" : "run"} and would be stopped.`)) {
      event.preventDefault();
      event.stopImmediatePropagation(); // the button does not rest
    }
  });

  document.addEventListener("htmx:afterSwap", again);
  document.addEventListener("kept", again);
  none.hidden = false;
  for (const box of ticked()) chosen.add(box.value); // those that the browser remembers
  again();
})();
