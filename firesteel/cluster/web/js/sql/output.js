// What a statement gave: a table that changes, a text, a job, an error at its place.
import * as format from "../format.js";
import { href } from "../router.js";
import { Action, html } from "../ui.js";
import { stop } from "./session.js";

const SHOWN = 100;
const words = { PENDING: "Waits", RUNNING: "Running", FINISHED: "Done", FAILED: "Failed", SKIPPED: "Not run", STOPPED: "Stopped", LOST: "Lost" };
const numeric = new Set(["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL"]);

const Cell = ({ value }) => (value === null ? html`<span class="faint">NULL</span>` : value);

function Table({ output, rows, from, changes }) {
  const kinds = output.columns.map((one) => (numeric.has(one.logicalType.type) ? "num" : "wide"));
  return html`
    <div class="scroll"><table class="result">
      <thead><tr>${changes && html`<th>op</th>`}${output.columns.map((one, index) => html`<th key=${index} class=${kinds[index]} title=${one.logicalType.type}>${one.name}</th>`)}<th class="rest"></th></tr></thead>
      <tbody>${rows.slice(from, from + SHOWN).map((row) => html`
        <tr key=${`${row.place}/${row.version ?? ""}`} class=${row.version ? "changed" : ""}>
          ${changes && html`<td class="op ${row.kind[0] === "+" ? "plus" : "minus"}">${row.kind}</td>`}
          ${row.fields.map((value, index) => html`<td key=${index} class=${kinds[index]}><${Cell} value=${value} /></td>`)}<td></td></tr>`)}</tbody>
    </table></div>`;
}

function Rows({ output, onChange }) {
  const changes = output.mode === "changes";
  // The newest change comes first, so that what happens is in sight.
  const rows = changes ? output.changes.log.toReversed() : output.changes.table();
  const last = Math.max(0, Math.floor((rows.length - 1) / SHOWN)) * SHOWN;
  const from = Math.min(output.page, last);
  const turn = (page) => onChange({ page });
  if (!rows.length) return html`<div class="body soft">${output.state === "RUNNING" ? "No rows yet." : "No rows."}</div>`;
  return html`
    <${Table} output=${output} rows=${rows} from=${from} changes=${changes} />
    ${rows.length > SHOWN && html`<div class="body row spread soft">
      <span>${format.count(from + 1)} to ${format.count(Math.min(rows.length, from + SHOWN))} of ${format.count(rows.length)}</span>
      <span class="row"><button disabled=${!from} onClick=${() => turn(from - SHOWN)}>Before</button><button disabled=${from >= last} onClick=${() => turn(from + SHOWN)}>Next</button></span></div>`}
    ${output.changes.dropped > 0 && html`<div class="body faint">${format.count(output.changes.dropped)} rows came before these and are not kept.</div>`}`;
}

/** The line that is wrong, and a mark below it. */
function Caret({ error, text }) {
  const line = text.split("\n")[error.at.line - 1] ?? "";
  const before = line.slice(0, error.at.column - 1).replace(/[^\t]/g, " ");
  const length = Math.max(1, Math.min(error.length, line.length - error.at.column + 1));
  return html`<pre class="code caret">${`${line}\n${before}${"^".repeat(length)}`}</pre>`;
}

function Failure({ error, text, onPlace }) {
  return html`<div class="body stack" role="alert">
    <p class="failure">${error.message}${error.at && html` <button class="quiet place" onClick=${onPlace}>line ${error.at.line}, column ${error.at.column}</button>`}</p>
    ${error.at && html`<${Caret} error=${error} text=${text} />`}</div>`;
}

const summary = (output) => {
  const { changes } = output;
  const rows = changes.rows.size - (changes.free === null ? 0 : 1);
  const counted = `${format.count(rows)} ${rows === 1 ? "row" : "rows"}`;
  return changes.count > rows ? `${counted}, ${format.count(changes.count)} changes` : counted;
};

export function Output({ output, text, onChange, onPlace }) {
  const { state, query, job, error } = output;
  const first = output.changes.log[0]?.fields[0] ?? "";
  const plain = !query && output.columns.length === 1 && output.changes.count === 1;
  const long = plain && String(first).includes("\n");
  // What is no query is done when there is a result.
  const shown = state === "RUNNING" && !query ? "FINISHED" : state;
  const segments = query && html`<span class="segments" role="group" aria-label="Show">
    ${[["table", "Table"], ["changes", "Changes"]].map(([key, label]) => html`
      <button key=${key} aria-pressed=${output.mode === key ? "true" : "false"} onClick=${() => onChange({ mode: key, page: 0 })}>${label}</button>`)}</span>`;
  return html`
    <section class="panel output ${shown}" aria-label="Result">
      <header>
        <span class="pill ${shown}">${job && shown === "FINISHED" ? "Submitted" : words[shown]}</span>
        <code class="statement" title=${output.statement}>${output.statement.replace(/\s+/g, " ")}</code>
        <div class="end">
          ${query && html`<span class="soft nowrap">${summary(output)}</span>${segments}`}
          ${plain && !long && !job && html`<span class="soft">${first}</span>`}
          ${job && html`<a class="link" href=${href("jobs", job)}>Open the job</a>`}
          ${query && state === "RUNNING" && html`<${Action} class="danger" busy="Stopping …" run=${() => stop(output)}>Stop<//>`}
        </div>
      </header>
      ${error && html`<${Failure} error=${error} text=${text} onPlace=${onPlace} />`}
      ${long && html`<div class="body"><pre class="code">${first}</pre></div>`}
      ${(query || (output.columns.length > 0 && !plain)) && html`<${Rows} output=${output} onChange=${onChange} />`}
    </section>`;
}
