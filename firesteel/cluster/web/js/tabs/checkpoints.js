// Checkpoints and savepoints.
import { get, own, usePolled } from "../api.js";
import * as format from "../format.js";
import { Copy, Empty, Figure, Panel, Problem, Time, html } from "../ui.js";

export function Checkpoints({ id, data: job }) {
  const { data, error } = usePolled(() => get(own(id, "/checkpoints")), [id], 2500);
  if (!data) return error ? html`<${Problem} error=${error} />` : html`<p class="soft">Asking for checkpoints …</p>`;
  const history = [...data.history].reverse();
  const last = history.find((one) => one.completed);
  const durations = history.filter((one) => one.completed).map((one) => one.duration_ms);
  const folder = job.job.checkpoint_folder;
  return html`
    <div class="stack">
      <${Problem} error=${error} />
      <div class="figures">
        <${Figure} label="Completed" value=${format.count(data.completed)} />
        <${Figure} label="Failed" value=${format.count(data.failed)} kind=${data.failed ? "bad" : ""} />
        <${Figure} label="Restored" value=${format.count(data.restored)} more="times the job went on from one" />
        <${Figure} label="Last duration" value=${last ? format.duration(last.duration_ms) : "–"} more=${durations.length ? `longest of the last ${durations.length}: ${format.duration(Math.max(...durations))}` : null} />
        <${Figure} label="Size of all state" value=${last?.state_size != null ? format.bytes(last.state_size) : "–"} />
      </div>
      ${folder
        ? html`<${Panel} title="Where they are"><div class="body"><${Copy} text=${folder} /></div><//>`
        : html`<div class="note soft">This job keeps no checkpoint on disk: after its process ends it begins anew. Set <code>execution.checkpointing.dir</code>, or take a savepoint before you stop it.</div>`}
      ${history.length ? html`<${Panel} title="The last ones"><div class="scroll"><table>
        <thead><tr><th class="num">Checkpoint</th><th>Began</th><th class="num">Took</th><th class="num">Records</th><th class="num">Written</th><th class="num">All state</th><th>Outcome</th></tr></thead>
        <tbody>${history.map((one) => html`<tr key=${`${one.checkpoint_id}-${one.trigger_timestamp}`}>
          <td class="num">${format.count(one.checkpoint_id)}</td><td><${Time} at=${one.trigger_timestamp} /></td><td class="num">${format.duration(one.duration_ms)}</td>
          <td class="num">${format.count(one.records)}</td><td class="num">${format.bytes(one.checkpointed_size)}</td><td class="num">${format.bytes(one.state_size)}</td>
          <td>${one.completed ? html`<span class="pill RUNNING">completed</span>` : html`<span class="pill FAILED">failed</span> <span class="soft">${one.failure}</span>`}</td></tr>`)}</tbody>
      </table></div><//>` : html`<${Empty} title="No checkpoint yet"><p>Each micro-batch ends with one.</p><//>`}
    </div>`;
}
