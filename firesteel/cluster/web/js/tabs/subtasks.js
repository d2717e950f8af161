// How the work is spread over the subtasks of each operator.
import { busyOf, figuresOf, workOf } from "../figures.js";
import * as format from "../format.js";
import { Empty, Meter, Panel, html } from "../ui.js";

function Operator({ live }) {
  const { operator, skew } = live;
  const total = operator.subtasks.reduce((sum, one) => sum + workOf(one), 0);
  const most = Math.max(1, ...operator.subtasks.map(workOf));
  const note = skew == null ? null : skew >= 1.5
    ? html`<span class="chip" title="The largest share, as a multiple of a fair one">skew ${format.rate(skew)} ×</span>`
    : html`<span class="faint">even</span>`;
  return html`
    <${Panel} title=${operator.name} end=${html`${note}<span class="faint">${operator.kind ?? ""} · ×${operator.parallelism}</span>`}>
      <div class="scroll"><table>
        <thead><tr><th>Subtask</th><th>Share</th><th class="num">In</th><th class="num">Out</th><th class="num">In, per second</th><th class="num">Busy</th><th class="num">Bytes in</th><th class="num">Bytes out</th><th class="num">State</th><th class="num">Watermark</th></tr></thead>
        <tbody>${operator.subtasks.map((one) => html`<tr key=${one.subtask}>
          <td>${one.subtask}</td>
          <td class="nowrap"><${Meter} plain=${true} share=${workOf(one) / most} label="share" /> ${format.percent(total ? workOf(one) / total : 0)}</td>
          <td class="num">${format.count(one.records_in)}</td>
          <td class="num">${format.count(one.records_out)}</td>
          <td class="num">${format.rate(one.per_second?.records_in)}</td>
          <td class="num">${format.percent(busyOf(one))}</td>
          <td class="num">${format.bytes(one.bytes_in)}</td>
          <td class="num">${format.bytes(one.bytes_out)}</td>
          <td class="num">${one.state_size ? format.bytes(one.state_size) : "–"}</td>
          <td class="num">${format.watermark(one.watermark)}</td>
        </tr>`)}</tbody>
      </table></div>
    <//>`;
}

export function Subtasks({ data }) {
  const figures = [...figuresOf(data.metrics, data.now, data.job.ended == null).values()].filter((one) => one.operator.subtasks.length);
  if (!figures.length) return html`<${Empty} title="No subtask has reported yet"><p>Tasks report at the end of each micro-batch.</p><//>`;
  const order = [...figures].sort((a, b) => (b.skew ?? 0) - (a.skew ?? 0));
  return html`<div class="stack">
    <p class="soft">Operators whose work is spread least evenly come first. Few distinct keys, or one that is very frequent, make one subtask do most of the work.</p>
    ${order.map((one) => html`<${Operator} key=${one.operator.id} live=${one} />`)}
  </div>`;
}
