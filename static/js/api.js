// The API's page: typing hides what does not match, and a link to a shape or an operation opens it.
(() => {
  const field = document.getElementById("api-find");
  const count = document.getElementById("api-count");
  const operations = [...document.querySelectorAll(".operation[data-sought]")];

  function show() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const one of operations) {
      const there = words.every((word) => one.dataset.sought.includes(word));
      one.classList.toggle("api-hidden", !there);
      shown += there;
    }
    for (const noun of document.querySelectorAll(".api-noun")) {
      noun.classList.toggle("api-hidden", !noun.querySelector(".operation:not(.api-hidden)"));
    }
    count.textContent = `${shown} operation${shown === 1 ? "" : "s"}`;
  }

  function open() {
    const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (named instanceof HTMLDetailsElement) {
      named.open = true;
      named.scrollIntoView({ block: "start" });
    }
  }

  field.addEventListener("input", show);
  window.addEventListener("hashchange", open);
  open();
})();
