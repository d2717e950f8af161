// The frame around all pages: header, keys, which page is shown.
import { connected, get, send, session } from "./api.js";
import { Help, Login } from "./frame.js";
import { JobPage } from "./job.js";
import { Overview } from "./overview.js";
import { go, href, route } from "./router.js";
import { leave } from "./sql/session.js";
import { SqlPage } from "./sql/page.js";
import { Submit } from "./submit.js";
import { Toasts, html, render, signal, useEffect } from "./ui.js";
import { Workers } from "./workers.js";

const help = signal(false);
const about = signal(null);
const themed = signal(document.documentElement.dataset.theme);

function switchTheme() {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  try { localStorage.setItem("theme", next); } catch { /* then it lasts as long as the page */ }
  document.documentElement.dataset.theme = themed.value = next;
}

let leader = 0;
function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, textarea, select, dialog")) return;
  const afterG = Date.now() - leader < 1200;
  leader = 0;
  const { path } = route.value;
  if (afterG && event.key === "j") go();
  else if (afterG && event.key === "w") go("workers");
  else if (afterG && event.key === "s") go("submit");
  else if (afterG && event.key === "q") go("sql");
  else if (event.key === "g") leader = Date.now();
  else if (event.key === "t") switchTheme();
  else if (event.key === "?") help.value = true;
  else if (event.key === "/") {
    const filter = document.querySelector("[data-filter]");
    if (filter) { event.preventDefault(); filter.focus(); }
  } else if (/^[0-9]$/.test(event.key) && path[0] === "jobs") {
    document.querySelectorAll(".tabs a")[(Number(event.key) + 9) % 10]?.click();
  }
}

const pages = { jobs: JobPage, workers: Workers, submit: Submit, sql: SqlPage };
const links = [["Jobs", []], ["Workers", ["workers"]], ["Submit", ["submit"]], ["SQL", ["sql"]]];

async function signOut() {
  await leave();
  await send("POST", "firesteel/v1/logout").catch(() => {});
  session.value = "needed";
}

function App() {
  const { path } = route.value;
  useEffect(() => {
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, []);
  const wanted = session.value;
  useEffect(() => { if (wanted !== "needed") get("config").then((answer) => { about.value = answer; }).catch(() => {}); }, [wanted]);
  const Page = pages[path[0]] ?? Overview;
  const here = path[0] === "jobs" ? undefined : path[0];
  return html`
    <header class="top">
      <a class="brand" href="#/" title=${about.value?.["flink-revision"] ?? "Firesteel"}><img src="web/icon.svg" alt="" /><span>Firesteel</span></a>
      <nav aria-label="Pages">
        ${links.filter(([label]) => label !== "SQL" || !about.value?.features?.["web-history"]).map(([label, to]) => html`<a key=${label} href=${href(...to)} aria-current=${here === to[0] ? "page" : null}>${label}</a>`)}
      </nav>
      <div class="end">
        <span class="live ${connected.value ? "" : "off"}"><span>${connected.value ? "Live" : "No answer"}</span></span>
        <button class="quiet hide-small" onClick=${() => { help.value = true; }} aria-label="Keys" title="Keys (?)">?</button>
        <button class="quiet" onClick=${switchTheme} aria-label="Switch theme" title="Dark or light (t)">${themed.value === "dark" ? "☀" : "☾"}</button>
        ${wanted === "open" && html`<button class="quiet" onClick=${signOut}>Sign out</button>`}
      </div>
    </header>
    <main>${wanted === "needed" ? html`<${Login} />` : html`<${Page} key=${path[0] === "jobs" ? path[1] : path[0]} path=${path} />`}</main>
    ${help.value && html`<${Help} onClose=${() => { help.value = false; }} />`}
    <${Toasts} />`;
}

render(html`<${App} />`, document.getElementById("app"));
