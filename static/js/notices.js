// The bell: asks now and then, says in passing what is new, and, where that was allowed, outside of the page.
"use strict";
(() => {
  const bell = document.getElementById("bell");
  const ask = document.getElementById("browser-notices"), said = document.getElementById("browser-said");
  const AWAY = 8000; // milliseconds until a passing word goes
  const memory = (() => { try { return window.localStorage; } catch { return null; } })();
  const wanted = () => "Notification" in window && Notification.permission === "granted" && memory?.getItem("notices") === "on";

  // Permission is asked for by a click alone.
  function browser() {
    if (!ask) return;
    if (!("Notification" in window) || !window.isSecureContext) {
      said.textContent = "This browser shows notices outside of a page only over https or on the machine itself.";
      return;
    }
    ask.hidden = Notification.permission === "denied";
    ask.textContent = wanted() ? "Stop showing them" : "Show them";
    if (Notification.permission === "denied") {
      said.textContent = "This browser was told not to show notices of this site. Allow them in its settings for the site.";
    } else if (wanted()) {
      said.textContent = "This browser shows notices outside of the page while a tab with Tidegate is open.";
    }
  }
  ask?.addEventListener("click", async () => {
    if (wanted()) memory?.setItem("notices", "off");
    else if ((await Notification.requestPermission()) === "granted") memory?.setItem("notices", "on");
    browser();
  });
  browser();

  if (!bell) return;
  let version = "", busy = false, stopped = false;

  function toasts() {
    let place = document.getElementById("toasts");
    if (!place) {
      place = document.createElement("div");
      place.id = "toasts";
      place.className = "toasts";
      place.setAttribute("role", "status");
      document.body.append(place);
    }
    return place;
  }

  function toast({ title, sentence, href, tone }) {
    const box = document.createElement("div"), link = document.createElement("a");
    const close = document.createElement("button"), words = document.createElement("p");
    box.className = `toast ${tone}`;
    link.href = href;
    link.textContent = title;
    close.type = "button";
    close.className = "plain";
    close.setAttribute("aria-label", "Close");
    close.textContent = "×";
    words.textContent = sentence;
    box.append(link, close, words);
    const place = toasts();
    place.prepend(box); // above the others, which stay where they are
    while (place.children.length > 3) place.lastElementChild.remove();
    close.addEventListener("click", () => box.remove());
    let timer = setTimeout(() => box.remove(), AWAY);
    for (const name of ["pointerenter", "focusin"]) box.addEventListener(name, () => clearTimeout(timer));
    for (const name of ["pointerleave", "focusout"]) {
      box.addEventListener(name, () => { clearTimeout(timer); timer = setTimeout(() => box.remove(), AWAY); });
    }
  }

  function outside({ title, sentence, href, id }) {
    try {
      const shown = new Notification(title, { body: sentence, tag: `tidegate-${id}`, icon: document.querySelector("link[rel=icon]")?.href });
      shown.onclick = () => { window.focus(); location.assign(href); };
    } catch { /* some browsers show them only from a worker: then the page's word has to do */ }
  }

  function take(html) {
    const part = new DOMParser().parseFromString(html, "text/html").querySelector("[data-version]");
    if (!part) return;
    const { unread, count, newest } = part.dataset;
    version = part.dataset.version;
    document.getElementById("bell-count").textContent = unread === "0" ? "" : count;
    document.getElementById("bell-words").textContent = unread === "0" ? "Notices" : `Notices, ${count} new`;
    // What one tab has said no other says again, and nothing of before the first visit is news.
    const told = memory?.getItem("notices-told");
    try { memory?.setItem("notices-told", String(Math.max(Number(newest), Number(told)))); } catch { return; }
    if (told === null || told === undefined) return;
    const news = [...part.querySelectorAll("[data-id]")].filter((one) => Number(one.dataset.id) > Number(told)).reverse()
      .map((one) => ({ ...one.dataset, sentence: one.textContent }));
    for (const one of news) {
      if (!document.hidden) toast(one);
      if (wanted() && (document.hidden || !document.hasFocus())) outside(one);
    }
  }

  async function look() {
    // A hidden tab rests, unless it is to speak outside of the page.
    if (busy || stopped || (document.hidden && !wanted()) || window.sessionOver?.()) return;
    busy = true;
    try {
      const answer = await fetch(`${bell.dataset.bell}?v=${version}`, { headers: { "HX-Request": "true" } });
      if (answer.status === 200) take(await answer.text());
      else if (answer.status === 401) stopped = true; // the page's other parts say so
    } catch { /* the page's other parts say that the service is away */ } finally { busy = false; }
  }
  setInterval(look, Number(bell.dataset.every) * 1000);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) { stopped = false; look(); } });
  document.addEventListener("htmx:afterRequest", (event) => {
    if (!event.detail.pathInfo?.requestPath?.endsWith("/notices/seen")) return;
    document.getElementById("bell-count").textContent = ""; // at once: what is asked for may be a moment old
    document.getElementById("bell-words").textContent = "Notices";
  });
  look();
})();
