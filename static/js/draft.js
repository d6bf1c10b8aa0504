// What was typed and not submitted waits in this browser: for a session that ends, a page that is left, a way back.
// Variables may hold secrets: they are in no draft.
"use strict";
(() => {
  const form = document.getElementById("submit-form"), note = document.getElementById("draft-note");
  const KEY = `tidegate-draft:${form.dataset.user}`, NEVER = ["csrfmiddlewaretoken", "form_key", "environment", "kept_from", "keep"];
  const kept = (field) => field.name && field.type !== "file" && field.type !== "submit" && !NEVER.includes(field.name);
  const storage = (act) => { try { return act(localStorage); } catch { return null; } };
  const drop = () => storage((s) => s.removeItem(KEY));
  const sent = () => document.cookie.match(/(?:^|; )tidegate_sent=([^;]*)/)?.[1];
  const read = () => { try { return JSON.parse(storage((s) => s.getItem(KEY)) || "null"); } catch { return null; } };

  function restore({ typed }) {
    const chosen = form.elements.workload;
    if (chosen && typed.kind === "workload" && typed.workload && chosen.value !== typed.workload) {
      // Its parameters are fields that come from the service; then they are filled, too.
      document.addEventListener("htmx:afterSettle", () => put(typed), { once: true });
      put(typed);
      chosen.dispatchEvent(new Event("change", { bubbles: true }));
    } else put(typed);
    note.hidden = false;
  }

  function put(typed) {
    const filled = [];
    for (const field of form.elements) {
      if (!kept(field) || !(field.name in typed)) continue;
      const ticked = field.type === "radio" || field.type === "checkbox", before = ticked ? field.checked : field.value;
      if (ticked) field.checked = field.value === typed[field.name];
      else field.value = typed[field.name];
      if ((ticked ? field.checked : field.value) === before) continue;
      filled.push(field.name);
      const part = field.closest("details");
      if (part) part.open = true;
    }
    document.dispatchEvent(new CustomEvent("draft", { detail: filled }));
    document.getElementById("id_command").dispatchEvent(new Event("input", { bubbles: true }));
  }

  const draft = read();
  if (draft?.key && draft.key === sent()) drop();
  else if (draft && form.dataset.fresh === "1") restore(draft);

  function save() {
    const typed = {};
    for (const field of form.elements) {
      if (kept(field) && (!["radio", "checkbox"].includes(field.type) || field.checked)) typed[field.name] = field.value;
    }
    storage((s) => s.setItem(KEY, JSON.stringify({ key: form.elements.form_key.value, typed })));
  }
  form.addEventListener("input", save);
  form.addEventListener("change", save);
  form.addEventListener("submit", save);

  document.getElementById("draft-drop").addEventListener("click", () => { drop(); location.assign("/submit"); });

  // A page that comes back as it was left has a form that may have been taken already: it is a new one then.
  addEventListener("pageshow", (event) => {
    const key = form.elements.form_key;
    if (!event.persisted || key.value !== sent()) return;
    key.value = [...crypto.getRandomValues(new Uint8Array(24))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    drop();
  });
})();
