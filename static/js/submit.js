// What a choice fills in, as long as the person has not touched the field.
"use strict";
(() => {
  const form = document.getElementById("submit-form");
  const touched = new Set();
  form.addEventListener("input", (event) => { if (event.isTrusted) touched.add(event.target.name); });
  if (form.querySelector(".error, .banner.error")) for (const field of form.elements) touched.add(field.name);

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
