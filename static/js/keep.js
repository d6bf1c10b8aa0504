// What a swap must not take away: focus and caret, what was typed or ticked, a box pulled larger, open parts, scroll
// positions. By id. (What style a person's hand gave may be set again by a script, never as an attribute.)
"use strict";
(() => {
  const FIELDS = "input[id]:not([type=hidden]), textarea[id], select[id]";
  const atEnd = (box) => box.scrollHeight - box.scrollTop - box.clientHeight < 40;
  let pressed = null, kept = null;

  addEventListener("pointerdown", (event) => { pressed = event.target; }, true);
  for (const end of ["pointerup", "pointercancel", "blur"]) addEventListener(end, () => { pressed = null; }, true);

  function selecting(part) {
    const chosen = document.getSelection();
    return Boolean(chosen) && !chosen.isCollapsed && part.contains(chosen.anchorNode);
  }

  // Whoever is at work in a part gets its next version when they are done.
  function busy(part) {
    return selecting(part) || (pressed && part.contains(pressed))
      || Boolean(part.querySelector("dialog[open], details.menu[open], :is(select:open)"));
  }

  function changed(field) {
    if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
    if (field.tagName === "SELECT") return [...field.options].some((o) => o.selected !== o.defaultSelected);
    return field.value !== field.defaultValue;
  }

  function remember(part) {
    const active = document.activeElement;
    return {
      open: [...part.querySelectorAll("details[id]")].map((one) => [one.id, one.open]),
      scrolled: [...part.querySelectorAll("[id]")].filter((one) => one.scrollTop || one.scrollLeft || one.dataset.tail)
        .map((one) => [one.id, one.scrollTop, one.scrollLeft, one.dataset.tail === "1" && atEnd(one)]),
      sizes: [...part.querySelectorAll("textarea[id]")].filter((one) => one.style.height || one.style.width)
        .map((one) => [one.id, one.style.height, one.style.width]),
      fields: [...part.querySelectorAll(FIELDS)].filter(changed).map((one) => [one.id, one.value, one.checked]),
      focus: active && part.contains(active) && active.id
        ? [active.id, caret(active, "selectionStart"), caret(active, "selectionEnd")] : null,
    };
  }

  function caret(field, edge) {
    try { return field[edge] ?? null; } catch { return null; } // some kinds of input have none
  }

  function restore({ open, scrolled, sizes, fields, focus }) {
    const find = (id) => document.getElementById(id);
    for (const [id, was] of open) { const one = find(id); if (one && one.open !== was) one.open = was; }
    for (const [id, height, width] of sizes) { const one = find(id); if (one) { one.style.height = height; one.style.width = width; } }
    for (const [id, value, checked] of fields) {
      const one = find(id);
      if (!one) continue;
      if (one.type === "checkbox" || one.type === "radio") one.checked = checked;
      else one.value = value;
    }
    for (const [id, top, left, follow] of scrolled) {
      const one = find(id);
      if (one) { one.scrollTop = follow && one.dataset.tail === "1" ? one.scrollHeight : top; one.scrollLeft = left; }
    }
    const known = new Set(scrolled.map(([id]) => id));
    for (const one of document.querySelectorAll("[id][data-tail='1']")) {
      if (!known.has(one.id) && !one.scrollTop) one.scrollTop = one.scrollHeight;
    }
    const field = focus && find(focus[0]);
    if (!field) return;
    if (document.activeElement !== field) field.focus({ preventScroll: true });
    if (focus[1] !== null) try { field.setSelectionRange(focus[1], focus[2]); } catch { /* it has no caret */ }
  }

  // What an element swaps: its target, or, where its answer changes several places, what data-covers names.
  const covered = (element, target) => (element.dataset.covers && document.querySelector(element.dataset.covers)) || target;

  document.addEventListener("htmx:beforeRequest", (event) => {
    const { elt } = event.detail;
    if (elt.hasAttribute("data-poll") && busy(covered(elt, elt))) event.preventDefault();
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { elt, target, shouldSwap } = event.detail;
    if (!shouldSwap) return;
    const part = covered(elt, target);
    if (elt.hasAttribute("data-poll") && busy(part)) { event.detail.shouldSwap = false; return; }
    kept = remember(part);
  });
  document.addEventListener("htmx:afterSwap", () => {
    if (!kept) return;
    restore(kept);
    kept = null;
    document.dispatchEvent(new CustomEvent("kept")); // scripts that count ticked boxes look again
  });

  for (const box of document.querySelectorAll("[data-tail='1']")) box.scrollTop = box.scrollHeight;
})();
