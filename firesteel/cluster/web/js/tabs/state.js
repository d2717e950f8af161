// A job's state as tables: keys and values of one snapshot.
import { get, own, send, usePolled } from "../api.js";
import * as format from "../format.js";
import { Action, Empty, Panel, Problem, Time, html, useEffect, useState } from "../ui.js";

const PAGE = 100;
const text = (value) => (value === null ? html`<span class="faint">None</span>` : typeof value === "number" ? format.count(value) === String(value) ? String(value) : value : String(value));

function Rows({ id, state, taken }) {
  const [key, setKey] = useState("");
  const [offset, setOffset] = useState(0);
  const [answer, setAnswer] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => { setOffset(0); }, [key, state.uid, state.name]);
  useEffect(() => {
    let over = false;
    const query = new URLSearchParams({ uid: state.uid, state: state.name, key, offset, limit: PAGE });
    const timer = setTimeout(() => get(own(id, `/state/rows?${query}`))
      .then((data) => { if (!over) { setAnswer(data); setError(null); } })
      .catch((failure) => { if (!over) setError(failure); }), key ? 250 : 0);
    return () => { over = true; clearTimeout(timer); };
  }, [id, state.uid, state.name, key, offset, taken]);
  const end = html`<input type="search" placeholder="Filter by key" aria-label="Filter by key" data-filter value=${key} onInput=${(event) => setKey(event.target.value)} />`;
  return html`
    <${Panel} title=${html`${state.operator} <span class="faint">/</span> ${state.name}`} end=${end}>
      <${Problem} error=${error} />
      ${answer && (answer.rows.length ? html`
        <div class="scroll"><table><thead><tr>${answer.columns.map((name) => html`<th key=${name}>${name.replaceAll("_", " ")}</th>`)}</tr></thead>
          <tbody>${answer.rows.map((row, index) => html`<tr key=${index}>${row.map((value, column) => html`<td key=${column} class="wide"><code>${text(value)}</code></td>`)}</tr>`)}</tbody></table></div>
        <div class="body row spread soft">
          <span>${format.count(offset + 1)} to ${format.count(offset + answer.rows.length)} of ${format.count(answer.matching)}${answer.matching < answer.total ? ` (${format.count(answer.total)} without the filter)` : ""}</span>
          <span class="row"><button disabled=${!offset} onClick=${() => setOffset(Math.max(0, offset - PAGE))}>Before</button>
            <button disabled=${offset + PAGE >= answer.matching} onClick=${() => setOffset(offset + PAGE)}>Next</button></span>
        </div>` : html`<${Empty} title=${key ? "No key fits the filter" : "This state is empty"} />`)}
    <//>`;
}

export function StateTab({ id, data: job }) {
  const { data, error, refresh } = usePolled(() => get(own(id, "/state")), [id], 0);
  const [chosen, setChosen] = useState(null);
  if (!data) return error ? html`<${Problem} error=${error} />` : html`<p class="soft">Asking for state …</p>`;
  const take = html`<${Action} class="primary" busy="Reading state …" run=${async () => { await send("POST", own(id, "/state")); await refresh(); }}>${data.taken ? "Read again" : "Read the state"}<//>`;
  if (data.taken == null) {
    return html`<${Empty} title="Look into the job's state">
      <p>${job.job.ended == null ? "Takes a snapshot of the last checkpoint; the job goes on meanwhile." : "Reads the last checkpoint that the job has left. That starts a Spark, so it takes a while."}</p><p>${take}</p><//>`;
  }
  const same = (one) => one.uid === chosen?.uid && one.name === chosen?.name;
  const state = data.states.find(same) ?? data.states.find((one) => one.rows) ?? data.states[0];
  return html`
    <div class="stack">
      <${Panel} title="States" end=${html`<span class="soft">as of <${Time} at=${data.taken} /></span>${take}`}>
        ${data.states.length ? html`<div class="scroll"><table>
          <thead><tr><th>Operator</th><th>State</th><th>Kind</th><th>Type</th><th class="num">Rows</th><th class="num">Size</th></tr></thead>
          <tbody>${data.states.map((one) => html`<tr key=${`${one.uid}/${one.name}`} class="go" tabindex="0" aria-selected=${one === state ? "true" : "false"}
              onClick=${() => setChosen(one)} onKeyDown=${(event) => event.key === "Enter" && setChosen(one)}>
            <td><span class="name">${one.operator}</span></td><td>${one.name}</td><td class="soft">${one.kind}</td><td><code>${one.type}</code></td>
            <td class="num">${format.count(one.rows)}</td><td class="num">${format.bytes(one.bytes)}</td></tr>`)}</tbody></table></div>`
          : html`<${Empty} title="This job keeps no state"><p>Functions on keyed streams can: see ValueState, ListState and MapState.</p><//>`}
      <//>
      ${state && html`<${Rows} id=${id} state=${state} taken=${data.taken} />`}
    </div>`;
}
