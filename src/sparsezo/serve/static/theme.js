// Light or dark: as the system has it, until the button says otherwise. Loaded before the page is drawn.
(() => {
  "use strict";
  const KEY = "sparsezo.theme";
  const root = document.documentElement;
  const read = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // no storage: the system's choice
    }
  };
  const kept = read();
  if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  const dark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const name = () => {
      button.textContent = dark() ? "Light" : "Dark";
      button.setAttribute("aria-label", dark() ? "Change to light colours" : "Change to dark colours");
    };
    name();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
    button.addEventListener("click", () => {
      root.dataset.theme = dark() ? "light" : "dark";
      name();
      try {
        localStorage.setItem(KEY, root.dataset.theme);
      } catch {
        // for this page only, then
      }
    });
  });
})();
