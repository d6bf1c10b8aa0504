// Times in the reader's own zone, and spans that stay current, without asking the server.
"use strict";
(() => {
  const pad = (n) => String(n).padStart(2, "0");
  const clock = (at) => `${pad(at.getHours())}:${pad(at.getMinutes())}`;
  const day = (at) => `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;

  const DAY = 86400000;

  // Near times as a clock, others with their day, those of another season as a day alone.
  function near(at, now) {
    if (day(at) === day(now)) return clock(at);
    return at - now > 30 * DAY ? day(at) : `${day(at)} ${clock(at)}`;
  }

  function ahead(at, now) {
    if (at - now < 60000) return "any moment now";
    return at - now < 2 * DAY ? `in about ${span((at - now) / 1000)}` : `about ${near(at, now)}`;
  }

  function span(seconds) {
    const whole = Math.max(0, Math.round(seconds));
    if (whole < 60) return `${whole} s`;
    if (whole < 3600) return `${Math.floor(whole / 60)} min`;
    const hours = Math.floor(whole / 3600), minutes = Math.floor((whole % 3600) / 60);
    if (hours < 24) return minutes ? `${hours} h ${minutes} min` : `${hours} h`;
    return hours % 24 ? `${Math.floor(hours / 24)} d ${hours % 24} h` : `${Math.floor(hours / 24)} d`;
  }

  function text(element, now) {
    const at = new Date(element.dateTime);
    if (Number.isNaN(at.getTime())) return element.textContent;
    if (element.dataset.form === "since") return span((now - at) / 1000);
    if (element.dataset.form === "ahead") return ahead(at, now);
    if (element.dataset.form === "long") return `${day(at)} ${clock(at)}:${pad(at.getSeconds())}`;
    return near(at, now);
  }

  function show(root) {
    const now = new Date();
    for (const element of root.querySelectorAll("time[datetime]")) {
      const shown = text(element, now);
      if (element.textContent !== shown) element.textContent = shown;
    }
  }

  show(document);
  setInterval(() => { if (!document.hidden) show(document); }, 1000);
  document.addEventListener("htmx:afterSwap", () => show(document));
})();
