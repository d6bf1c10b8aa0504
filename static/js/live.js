// Parts that ask for their next version: they rest in hidden tabs, say what failed, and end with the session.
"use strict";
(() => {
  const lamp = document.getElementById("live");
  const polls = (element) => element.hasAttribute("data-poll");
  let lost = false, over = null; // over: the message about a session that ended

  // Seen, not spoken: only what changes for the reader is said, through the messages.
  function show(state, words) {
    if (!lamp) return;
    lamp.hidden = !document.querySelector("[data-poll], [data-live]") && state === "";
    lamp.className = `live ${state}`;
    const text = lamp.lastElementChild;
    if (text.textContent !== words) text.textContent = words;
  }

  function ended(href) {
    if (over) return;
    const login = href || `/login?next=${encodeURIComponent(location.pathname + location.search)}`;
    over = window.say("Your session is over. What you see is no longer kept current, and what you typed is still here.",
      "error", { href: login, words: "Log in again" });
    show("off", "logged out");
  }

  function back() {
    over?.remove();
    over = null;
    lost = false;
    if (document.hidden) show("paused", "paused"); // an answer that was on its way when the tab was left
    else show("", "live");
  }

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (polls(event.detail.elt) && (document.hidden || over)) event.preventDefault();
  });

  // Whoever looks again sees the present; whoever logged in elsewhere meanwhile goes on here.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return show(over ? "off" : "paused", over ? "logged out" : "paused");
    const was = over;
    over = null;
    for (const element of document.querySelectorAll("[data-poll]")) htmx.trigger(element, "wake");
    over = was;
    if (!over) show(lost ? "off" : "", lost ? lamp?.lastElementChild.textContent : "live");
  });

  // A login page is never part of another.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const from = event.detail.xhr.responseURL;
    if (!from || new URL(from).pathname !== "/login" || location.pathname === "/login") return;
    event.detail.shouldSwap = false;
    ended();
  });

  document.addEventListener("htmx:afterRequest", (event) => {
    const { requestConfig, xhr } = event.detail; // the part that asked may be swapped out by now: elt is then the body
    if (!polls(requestConfig.elt) || !xhr || xhr.status === 0 || xhr.status >= 400) return;
    if (over && new URL(xhr.responseURL).pathname === "/login") return;
    back();
  });

  function unanswered(words) {
    return (event) => {
      if (!polls(event.detail.elt)) return window.say(words);
      if (!lost) show("off", `no answer since ${new Date().toTimeString().slice(0, 5)}`);
      lost = true;
      return null;
    };
  }
  document.addEventListener("htmx:sendError", unanswered("The service cannot be reached. Nothing was changed."));
  document.addEventListener("htmx:timeout", unanswered("The service does not answer. Reload the page to see what is so."));

  document.addEventListener("htmx:responseError", (event) => {
    const { elt, xhr } = event.detail;
    const page = new DOMParser().parseFromString(xhr.responseText, "text/html");
    if (xhr.status === 401) return ended(page.querySelector("a[href^='/']")?.getAttribute("href"));
    if (polls(elt) && xhr.status >= 500) { lost = true; return show("off", "the service has trouble"); }
    const told = page.querySelector("[data-message]")?.textContent;
    return window.say(told || `The service refused this (${xhr.status}). Reload the page.`);
  });

  // Other scripts that ask by themselves (charts) tell of a session that is over, and are told.
  document.addEventListener("session-over", () => ended());
  window.sessionOver = () => Boolean(over);
  show("", "live");
})();
