// The chosen theme, set before anything is painted: loaded in the head, not deferred. And the tokens' colours for script.
"use strict";
(() => {
  const root = document.documentElement, system = matchMedia("(prefers-color-scheme: dark)");
  const tell = () => document.dispatchEvent(new CustomEvent("theme"));
  let chosen = null, probe = null;
  try { chosen = localStorage.getItem("theme"); } catch { /* storage may be closed: the system's choice stands */ }
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  system.addEventListener("change", tell);

  document.addEventListener("click", (event) => {
    if (!event.target.closest("#theme")) return;
    root.dataset.theme = (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark" ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* then only for this page */ }
    tell();
  });

  // A token as rgb() or rgba(): light-dark() is resolved by an element, not by reading the property.
  window.tone = (name, alpha = 1) => {
    if (!probe?.isConnected) {
      probe = document.createElement("i");
      probe.hidden = true;
      document.body.append(probe);
    }
    probe.style.color = `var(--${name})`;
    const [red, green, blue] = getComputedStyle(probe).color.match(/[\d.]+/g);
    return alpha < 1 ? `rgba(${red}, ${green}, ${blue}, ${alpha})` : `rgb(${red}, ${green}, ${blue})`;
  };
})();
