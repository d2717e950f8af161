// Log files of a job: the end of one as it grows, or lines with a text.
import { get, own, usePolled } from "../api.js";
import * as format from "../format.js";
import { Empty, Panel, Problem, html, useEffect, useLayoutEffect, useRef, useState } from "../ui.js";

const KEPT = 20000;
const level = (line) => /\b(CRITICAL|ERROR|WARNING|WARN|DEBUG)\b/.exec(line.slice(0, 120))?.[1] ?? "";

function Line({ text, search }) {
  if (!search) return html`<div class=${level(text)}>${text || " "}</div>`;
  const parts = [];
  const lower = text.toLowerCase();
  const wanted = search.toLowerCase();
  let from = 0;
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
    parts.push(text.slice(from, at), html`<mark>${text.slice(at, at + wanted.length)}</mark>`);
    from = at + wanted.length;
  }
  return html`<div class=${level(text)}>${parts}${text.slice(from)}</div>`;
}

const linesOf = (text) => (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");

function Viewer({ id, file, follow, search }) {
  const box = useRef();
  const path = own(id, `/logs/${encodeURIComponent(file)}`);
  const [part, setPart] = useState(null);
  const [error, setError] = useState(null);
  const [found, setFound] = useState(null);
  useEffect(() => {
    let over = false;
    let timer = null;
    let end = null;
    const step = async () => {
      try {
        const next = await get(end == null ? path : `${path}?start=${end}&length=262144`);
        if (over) return;
        // A file that is shorter than before was begun anew.
        const anew = end == null || next.start !== end;
        end = next.end;
        if (anew || next.text) setPart((now) => anew || !now ? next : { ...next, start: now.start, text: now.text + next.text });
        setError(null);
      } catch (failure) {
        if (!over) setError(failure);
      }
      if (!over && follow) timer = setTimeout(step, 1500);
    };
    step();
    return () => { over = true; clearTimeout(timer); };
  }, [path, follow]);
  useEffect(() => {
    if (!search) { setFound(null); return undefined; }
    let over = false;
    const timer = setTimeout(async () => {
      try {
        const answer = await get(`${path}?search=${encodeURIComponent(search)}`);
        if (!over) setFound(answer.lines);
      } catch (failure) { if (!over) setError(failure); }
    }, 250);
    return () => { over = true; clearTimeout(timer); };
  }, [path, search]);
  useLayoutEffect(() => { if (follow && !search) box.current?.scrollTo(0, box.current.scrollHeight); }, [part, follow, search]);
  const earlier = async () => {
    const start = Math.max(0, part.start - 131072);
    const before = await get(`${path}?start=${start}&length=${part.start - start}`);
    setPart((now) => ({ ...now, start: before.start, text: before.text + now.text }));
  };
  if (!part) return error ? html`<${Problem} error=${error} />` : html`<div class="log"><div class="soft">Reading …</div></div>`;
  const lines = search ? (found ?? []).map((one) => one.text) : linesOf(part.text).slice(-KEPT);
  return html`
    <div class="log" ref=${box} tabindex="0" aria-label="Lines of the log">
      ${search
        ? html`<div class="soft">${found == null ? "Searching …" : `${format.count(found.length)} lines with “${search}”${found.length === 500 ? ", the last ones" : ""}`}</div>`
        : part.start > 0 && html`<div><button class="quiet" onClick=${earlier}>Earlier lines (${format.bytes(part.start)} before these)</button></div>`}
      ${lines.map((text, index) => html`<${Line} key=${index} text=${text} search=${search} />`)}
      ${!search && !part.text && html`<div class="soft">Nothing has been written yet.</div>`}
    </div>`;
}

export function Logs({ id, data }) {
  const { data: known, error } = usePolled(() => get(own(id, "/logs")), [id], 5000);
  const [chosen, setChosen] = useState(null);
  const [follow, setFollow] = useState(data.job.ended == null);
  const [search, setSearch] = useState("");
  if (!known) return error ? html`<${Problem} error=${error} />` : html`<p class="soft">Asking for log files …</p>`;
  if (!known.files.length) return html`<${Empty} title="No log files"><p>This job was not started by the job manager: what it writes goes to its own terminal. Jobs that are started with <code>firesteel run -d</code>, or submitted here, keep a log for each attempt.</p><//>`;
  const file = known.files.find((one) => one.name === chosen) ?? known.files.at(-1);
  const end = html`
    <input type="search" placeholder="Search" aria-label="Search the log" data-filter value=${search} onInput=${(event) => setSearch(event.target.value)} />
    <label class="check"><input type="checkbox" checked=${follow} onChange=${(event) => setFollow(event.target.checked)} /> Follow</label>`;
  return html`
    <section class="panel">
      <header>
        <select aria-label="Log file" value=${file.name} onChange=${(event) => setChosen(event.target.value)}>
          ${known.files.map((one) => html`<option key=${one.name} value=${one.name}>${one.name}${one.attempt != null ? ` · attempt ${one.attempt}` : ""} · ${format.bytes(one.size)}</option>`)}
        </select>
        <div class="end">${end}</div>
      </header>
      <${Viewer} key=${file.name} id=${id} file=${file.name} follow=${follow} search=${search.trim()} />
    </section>`;
}
