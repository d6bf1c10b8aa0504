// What a choice fills in, as long as the person has not touched the field.
"use strict";
(() => {
  const form = document.getElementById("submit-form");
  const touched = new Set();
  form.addEventListener("input", (event) => { if (event.isTrusted) touched.add(event.target.name); });
  if (form.querySelector(".error, .banner.error")) for (const field of form.elements) touched.add(field.name);

  // A session may end while somebody types: what was typed waits in this tab until they are back from the login.
  // Variables may hold secrets and are not kept.
  const KEPT = "submission";
  const kept = (field) => field.name && !["csrfmiddlewaretoken", "form_key", "environment"].includes(field.name);
  const storage = (act) => { try { return act(sessionStorage); } catch { return null; } };
  const draft = storage((s) => JSON.parse(s.getItem(KEPT) || "null"));
  if (draft && new URL(document.referrer || location.href).pathname === "/login") {
    for (const field of form.elements) {
      if (!kept(field) || !(field.name in draft)) continue;
      if (field.type === "radio") field.checked = field.value === draft[field.name];
      else field.value = draft[field.name];
      touched.add(field.name);
    }
  }
  storage((s) => s.removeItem(KEPT));
  form.addEventListener("input", () => {
    const typed = {};
    for (const field of form.elements) {
      if (kept(field) && (field.type !== "radio" || field.checked)) typed[field.name] = field.value;
    }
    storage((s) => s.setItem(KEPT, JSON.stringify(typed)));
  });

  document.addEventListener("preselect", (event) => {
    const { gpu, why } = event.detail;
    const radio = form.querySelector(`[name="gpu"][value="${gpu === "one" ? "one" : "none"}"]`);
    document.getElementById("gpu-why").textContent = touched.has("gpu") ? "" : why;
    if (touched.has("gpu") || !radio || radio.checked) return;
    radio.checked = true;
    radio.dispatchEvent(new Event("change", { bubbles: true }));
  });

  document.addEventListener("prefill", (event) => {
    for (const [name, value] of Object.entries(event.detail)) {
      const field = form.elements[name];
      if (field && !touched.has(name) && typeof value === "string") field.value = value;
    }
    form.elements.workload?.dispatchEvent(new Event("input", { bubbles: true }));
  });
})();
