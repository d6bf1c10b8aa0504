// What every page does: messages, one click one request, the title, menus and dialogs. Pages work without it.
"use strict";
(() => {
  // The messages are the one part that a screen reader is told of: a sentence, said once.
  window.say = (sentence, tone = "error", link = null) => {
    const place = document.getElementById("messages"), line = document.createElement("p");
    line.className = `banner ${tone}`;
    line.append(sentence);
    if (link) {
      const anchor = document.createElement("a");
      anchor.href = link.href;
      anchor.textContent = link.words;
      line.append(" ", anchor);
    }
    for (const said of place.children) if (said.textContent === line.textContent) return said;
    place.append(line);
    if (line.getBoundingClientRect().top < 0) line.scrollIntoView({ block: "center" });
    return line;
  };

  // One click, one request: the button rests until the next page is there.
  document.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (button && event.target.method === "post") setTimeout(() => { button.disabled = true; button.dataset.sent = ""; }, 0);
  });
  window.addEventListener("pageshow", () => {
    for (const button of document.querySelectorAll("button[data-sent]")) button.disabled = false;
  });

  // A live part says in data-title how things stand; a tab in the background shows it.
  function title() {
    const words = document.querySelector("main [data-title]")?.dataset.title;
    const whole = words ? `${words} · Tidegate` : document.title;
    if (document.title !== whole) document.title = whole;
  }
  document.addEventListener("htmx:afterSwap", title);
  title();

  // On a narrow screen the row of pages scrolls: where one is stands in view.
  const row = document.querySelector("nav"), here = row?.querySelector("[aria-current]");
  if (here) row.scrollLeft = here.offsetLeft - row.offsetLeft - (row.clientWidth - here.offsetWidth) / 2;

  // Dialogs are opened by buttons that name them; menus close by Escape and by a click elsewhere.
  const menus = () => document.querySelectorAll("details.menu[open]");
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-opens]");
    const dialog = opener && document.getElementById(opener.dataset.opens);
    if (dialog && !dialog.open) dialog.showModal();
    if (event.target.matches("dialog.dialog")) event.target.close(); // the dimmed page around it
    for (const menu of menus()) if (!menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of menus()) {
      if (menu.contains(document.activeElement)) menu.querySelector("summary").focus();
      menu.open = false;
    }
  });
  document.addEventListener("focusin", (event) => {
    for (const menu of menus()) if (!menu.contains(event.target)) menu.open = false;
  });
})();
