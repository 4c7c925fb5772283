// Light or dark: as the system has it, until the button says otherwise. Loaded before the page is drawn.
(() => {
  "use strict";
  const KEY = "sparsezo.theme";
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const read = () => {
    try {
      const kept = localStorage.getItem(KEY);
      return kept === "light" || kept === "dark" ? kept : null;
    } catch {
      return null; // no storage: the system's choice
    }
  };
  let chosen = read();
  const dark = () => (chosen ?? (system.matches ? "dark" : "light")) === "dark";
  const show = () => {
    root.dataset.theme = dark() ? "dark" : "light";
    const button = document.getElementById("theme");
    if (!button) return; // the page is not there yet
    button.textContent = dark() ? "Light" : "Dark";
    button.setAttribute("aria-label", dark() ? "Change to light colours" : "Change to dark colours");
  };
  show();
  system.addEventListener("change", show);

  document.addEventListener("DOMContentLoaded", () => {
    show();
    document.getElementById("theme").addEventListener("click", () => {
      chosen = dark() ? "light" : "dark";
      show();
      try {
        localStorage.setItem(KEY, chosen);
      } catch {
        // for this page only, then
      }
    });
  });
})();
