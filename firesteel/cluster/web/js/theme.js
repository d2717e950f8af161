// Before anything is drawn: the theme that was chosen, else the system's. No module, so that it runs at once.
"use strict";
(() => {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const apply = () => { document.documentElement.dataset.theme = chosen() || (system.matches ? "dark" : "light"); };
  system.addEventListener("change", apply);
  apply();
})();
