// Polling that rests, messages for what failed, and a theme to choose. Pages work without it, only not live.
"use strict";
(() => {
  const live = document.getElementById("live");
  let lost = false;

  function lamp(state, words) {
    if (!live) return;
    live.hidden = !document.querySelector("[data-poll]") && state === "";
    live.classList.toggle("off", state === "off");
    live.classList.toggle("paused", state === "paused");
    live.lastElementChild.textContent = words;
  }

  function say(sentence) {
    const place = document.getElementById("messages");
    const line = document.createElement("p");
    line.className = "banner error";
    line.textContent = sentence;
    if (place.lastElementChild?.textContent !== sentence) place.append(line);
  }

  function selecting(element) {
    const chosen = document.getSelection();
    return Boolean(chosen) && !chosen.isCollapsed && element.contains(chosen.anchorNode);
  }

  // A hidden tab asks for nothing; neither does a part in which somebody is selecting text.
  document.addEventListener("htmx:beforeRequest", (event) => {
    const element = event.detail.elt;
    if (element.hasAttribute("data-poll") && (document.hidden || selecting(element))) event.preventDefault();
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return lamp("paused", "paused");
    for (const element of document.querySelectorAll("[data-poll]")) htmx.trigger(element, "wake");
  });

  const open = new Set();
  const atEnd = (element) => element.scrollHeight - element.scrollTop - element.clientHeight < 40;
  let follow = true, left = 0;
  document.addEventListener("htmx:beforeSwap", (event) => {
    open.clear();
    for (const part of event.detail.target.querySelectorAll("details[open][id]")) open.add(part.id);
    const output = document.getElementById("output");
    if (output) { follow = atEnd(output); left = output.scrollTop; }
  });
  document.addEventListener("htmx:afterSwap", () => {
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    const output = document.getElementById("output");
    if (output) output.scrollTop = follow && output.dataset.tail === "1" ? output.scrollHeight : left;
  });

  document.addEventListener("htmx:afterRequest", (event) => {
    if (!event.detail.elt.hasAttribute("data-poll") || !event.detail.xhr) return;
    if (event.detail.xhr.status > 0 && event.detail.xhr.status < 500) {
      lost = false;
      lamp("", "live");
    }
  });
  document.addEventListener("htmx:sendError", (event) => {
    if (!event.detail.elt.hasAttribute("data-poll")) return say("The service cannot be reached. Nothing was changed.");
    if (!lost) lamp("off", `no answer since ${new Date().toTimeString().slice(0, 5)}`);
    lost = true;
  });
  document.addEventListener("htmx:responseError", (event) => {
    const { elt, xhr } = event.detail;
    if (elt.hasAttribute("data-poll") && xhr.status >= 500) return lamp("off", "the service has trouble");
    if (xhr.status === 401) return say("Your session is over. Log in again.");
    const page = new DOMParser().parseFromString(xhr.responseText, "text/html");
    say(page.querySelector("[data-message]")?.textContent || `The service refused this (${xhr.status}). Reload the page.`);
  });

  document.getElementById("theme")?.addEventListener("click", () => {
    const root = document.documentElement;
    const now = root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* then only for this page */ }
    document.dispatchEvent(new CustomEvent("theme"));
  });

  // One click, one request: the button rests until the next page is there.
  document.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (button && event.target.method === "post") setTimeout(() => { button.disabled = true; }, 0);
  });
  window.addEventListener("pageshow", () => {
    for (const button of document.querySelectorAll("button[disabled]")) button.disabled = false;
  });

  const output = document.getElementById("output");
  if (output) output.scrollTop = output.scrollHeight;
  lamp("", "live");
})();
