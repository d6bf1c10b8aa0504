// The submit form: Enter, what a choice fills in, a dropped script, and an estimate that says when it is slow.
"use strict";
(() => {
  const form = document.getElementById("submit-form"), button = document.getElementById("submit-button");
  const command = document.getElementById("id_command"), pane = document.getElementById("estimate");
  const touched = new Set();
  form.addEventListener("input", (event) => { if (event.isTrusted) touched.add(event.target.name); });
  form.addEventListener("click", (event) => { // what is chosen already changes nothing when it is chosen, and yet it was
    if (event.isTrusted && event.target.type === "radio") touched.add(event.target.name);
  });
  if (form.querySelector(".error, .banner.error, #again-note")) for (const field of form.elements) touched.add(field.name);
  document.addEventListener("draft", (event) => { for (const name of event.detail) touched.add(name); });
  const changed = (field) => field.dispatchEvent(new Event("input", { bubbles: true }));

  // Enter submits a command of one line. In a longer text it is a new line, and with Ctrl it submits anyhow.
  command.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing || event.shiftKey || event.altKey) return;
    if (command.value.includes("\n") && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    if (command.value.trim() && !button.disabled) form.requestSubmit(button);
  });
  if (document.activeElement === document.body && !location.hash && !form.querySelector("#wrong")) {
    command.focus({ preventScroll: true });
    command.setSelectionRange(command.value.length, command.value.length);
  }
  document.getElementById("wrong")?.scrollIntoView({ block: "center" });

  // A link to a field that is folded away unfolds it.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#id_']");
    const field = link && document.getElementById(link.hash.slice(1));
    if (!field) return;
    event.preventDefault();
    for (let part = field.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
    field.focus();
    field.scrollIntoView({ block: "center" });
  });

  document.addEventListener("preselect", (event) => {
    const { gpu, why, group } = event.detail;
    const radio = form.querySelector(`[name="gpu"][value="${["one", "group"].includes(gpu) ? gpu : "none"}"]`);
    document.getElementById("gpu-why").textContent = touched.has("gpu") ? "" : why;
    if (touched.has("gpu") || !radio || radio.checked) return;
    radio.checked = true;
    for (const [name, value] of Object.entries(group || {})) if (!touched.has(name)) form.elements[name].value = value;
    radio.dispatchEvent(new Event("change", { bubbles: true }));
  });

  const before = new Map(); // what stood where a workload filled something in
  let filled = null;
  function put(field, value) {
    if (field.type === "checkbox") field.checked = value === "True";
    else {
      if (field.options && ![...field.options].some((one) => one.value === value)) field.add(new Option(value, value));
      field.value = value;
    }
  }
  document.addEventListener("prefill", (event) => {
    filled = event.detail;
    for (const [name, value] of Object.entries(filled)) {
      const field = form.elements[name];
      if (!field || touched.has(name) || typeof value !== "string") continue;
      if (!before.has(name)) before.set(name, field.type === "checkbox" ? (field.checked ? "True" : "") : field.value);
      put(field, value);
      const part = (field.closest ? field : field[0]).closest("details");
      if (part && !["", "no", "auto", "False"].includes(value)) part.open = true;
    }
    changed(form.elements.workload ?? command);
  });

  // What a workload filled in goes with it, and comes back with it: nobody who types a command asked for that.
  form.addEventListener("change", (event) => {
    if (event.target.name !== "kind") return;
    if (event.target.value === "workload" && filled) {
      document.dispatchEvent(new CustomEvent("prefill", { detail: filled }));
    } else if (event.target.value === "command" && before.size) {
      for (const [name, value] of before) if (!touched.has(name)) put(form.elements[name], value);
      before.clear();
      changed(command);
    }
  });

  // A script: its text becomes the command, its head fills fields that nobody has filled.
  const told = document.getElementById("script-told"), drop = document.getElementById("drop"), most = 131071;
  const chooser = document.getElementById("id_script");
  chooser.removeAttribute("name"); // it is sent by itself

  function refuse(sentence) {
    const line = document.createElement("p");
    line.className = "error";
    line.textContent = sentence;
    told.replaceChildren(line);
  }

  function take(file) {
    if (file.size > most) {
      return refuse(`${file.name} has ${file.size.toLocaleString("en")} bytes; ${most.toLocaleString("en")} are the most. `
        + `Leave it where it is and run: bash ${file.name}`);
    }
    const sent = new FormData();
    sent.append("script", file);
    const headers = { "X-CSRFToken": form.elements.csrfmiddlewaretoken.value, "HX-Request": "true" };
    return fetch("/submit/script", { method: "POST", body: sent, headers }).then(async (answer) => {
      if (!answer.ok) throw new Error(String(answer.status));
      told.replaceChildren(...new DOMParser().parseFromString(await answer.text(), "text/html").body.childNodes);
      const fields = JSON.parse(answer.headers.get("HX-Trigger") || "{}").script;
      if (fields) fill(fields);
    }).catch(() => refuse(`${file.name} could not be sent. Nothing was changed; try again, or paste its text.`));
  }

  function fill(fields) {
    const kind = form.querySelector('[name="kind"][value="command"]');
    if (kind) kind.checked = true;
    for (const [name, value] of Object.entries(fields)) {
      const field = form.elements[name];
      if (!field || (name !== "command" && touched.has(name) && field.value)) continue;
      field.value = value;
      touched.add(name);
      const part = field.closest?.("details");
      if (part) part.open = true;
    }
    command.focus();
    changed(command);
  }

  chooser.addEventListener("change", () => { if (chooser.files[0]) take(chooser.files[0]); });
  const files = (event) => [...(event.dataTransfer?.types || [])].includes("Files");
  document.addEventListener("dragover", (event) => {
    if (!files(event)) return;
    event.preventDefault(); // a file that misses the field does not replace the page
    drop.classList.add("over");
  });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) drop.classList.remove("over"); });
  document.addEventListener("drop", (event) => {
    if (!files(event)) return;
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files.length !== 1) return refuse("One script at a time, please.");
    take(event.dataTransfer.files[0]);
  });

  // The estimate: one line of it stays in view, a screen reader hears a verdict once, and slowness is said.
  const slow = document.getElementById("estimate-slow"), short = document.getElementById("verdict-short");
  const said = document.getElementById("verdict-said");
  let timer = 0;
  function waiting(words) { slow.textContent = words; slow.hidden = !words; }
  function settled() { clearTimeout(timer); pane.setAttribute("aria-busy", "false"); }
  function show() {
    const verdict = pane.querySelector(".verdict"), words = verdict?.dataset.short || verdict?.textContent.trim() || "";
    const when = pane.querySelector(".when")?.textContent.trim();
    short.textContent = when ? `${words}, starts ${when}` : words;
    short.className = `short ${["ok", "wait", "stop"].find((tone) => verdict?.classList.contains(tone)) || ""}`;
    if (said.textContent !== words) said.textContent = words;
  }
  pane.addEventListener("htmx:beforeRequest", () => {
    pane.setAttribute("aria-busy", "true");
    clearTimeout(timer);
    timer = setTimeout(() => waiting("The estimate takes longer than usual. You can submit all the same."), 2500);
  });
  pane.addEventListener("htmx:afterSwap", () => { settled(); waiting(""); show(); });
  const failed = "The estimate could not be made: what is above is of before. You can submit all the same.";
  for (const name of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) {
    pane.addEventListener(name, (event) => {
      settled();
      if (event.detail.xhr?.status !== 401) waiting(failed);
      pane.querySelector(".skeleton")?.remove();
    });
  }
  pane.addEventListener("htmx:sendAbort", settled);
  // What fits now may not fit in a minute: it is asked again now and then, but not of a hidden tab or while somebody reads.
  function again() {
    const chosen = document.getSelection();
    const reading = pane.contains(document.activeElement) || (!chosen.isCollapsed && pane.contains(chosen.anchorNode));
    if (!document.hidden && !reading && pane.querySelector(".verdict")) htmx.trigger(pane, "ask");
  }
  document.addEventListener("visibilitychange", again);
  setInterval(again, 15000);
  show();
})();
