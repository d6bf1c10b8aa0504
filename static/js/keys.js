// Single keys: what says data-key is clicked, or focused where one types; "?" lists them. Off where somebody wants it so.
"use strict";
(() => {
  const box = document.getElementById("keys-on"), list = document.getElementById("key-list");
  if (!box) return;
  const storage = (act) => { try { return act(localStorage); } catch { return null; } };
  const typing = (element) => Boolean(element?.closest("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]"));
  const listed = () => [...document.querySelectorAll("[data-key]")].filter((one) => !one.closest("[hidden]"));
  const search = () => document.querySelector("main [data-search], main input[type=search]");
  let first = "", timer = 0;

  box.checked = storage((s) => s.getItem("keys")) !== "off";
  box.addEventListener("change", () => storage((s) => s.setItem("keys", box.checked ? "on" : "off")));

  function line(keys, words) {
    const term = document.createElement("dt"), what = document.createElement("dd");
    for (const key of keys.split(" ")) {
      const cap = document.createElement("kbd");
      cap.textContent = key;
      term.append(cap, " ");
    }
    what.textContent = words;
    return [term, what];
  }

  const words = (one) => one.dataset.keySays || one.getAttribute("aria-label") || one.textContent.trim();
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-opens=keys]")) return;
    const lines = listed().map((one) => line(one.dataset.key, words(one)));
    if (search()) lines.push(line("/", "Search"));
    lines.push(line("Esc", "Close a menu or dialog, leave a field"));
    list.replaceChildren(...lines.flat());
  });

  function act(key) {
    const one = key === "/" ? search() : listed().find((each) => each.dataset.key === key);
    if (!one || (document.querySelector("dialog[open]") && !one.closest("dialog[open]"))) return false;
    if (typing(one)) one.focus();
    else one.click();
    return true;
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && typing(document.activeElement) && !document.querySelector("dialog[open]")) {
      return document.activeElement.blur();
    }
    if (!box.checked || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return null;
    if (typing(event.target) || event.key.length !== 1) return null;
    const key = first ? `${first} ${event.key}` : event.key;
    first = "";
    clearTimeout(timer);
    if (act(key)) return event.preventDefault();
    if (listed().some((one) => one.dataset.key.startsWith(`${key} `))) {
      first = key;
      timer = setTimeout(() => { first = ""; }, 1500); // milliseconds for the second key
    }
    return null;
  });
})();
