// The processes of one job, with their memory.
import { get, own, usePolled } from "../api.js";
import * as format from "../format.js";
import { Empty, Meter, Panel, Problem, Time, html } from "../ui.js";

export const ProcessTable = ({ processes }) => {
  const most = Math.max(...processes.map((one) => one.memory), 1);
  return html`<div class="scroll"><table>
    <thead><tr><th>Process</th><th class="num">Id</th><th>Memory</th><th class="num">CPU time</th><th class="num">Threads</th><th>Since</th></tr></thead>
    <tbody>${processes.map((one) => html`<tr key=${one.pid}>
      <td><span class="name">${one.kind}</span></td><td class="num">${one.pid}</td>
      <td class="nowrap"><${Meter} plain=${true} share=${one.memory / most} label="memory" /> ${format.bytes(one.memory)}</td>
      <td class="num">${format.duration(one.cpu_seconds * 1000)}</td><td class="num">${one.threads}</td><td><${Time} at=${one.started} /></td></tr>`)}</tbody>
  </table></div>`;
};

export function Processes({ id, data: job }) {
  const { data, error } = usePolled(() => get(own(id, "/processes")), [id], 3000);
  if (!data) return error ? html`<${Problem} error=${error} />` : html`<p class="soft">Asking for processes …</p>`;
  if (!data.processes.length) {
    return html`<${Empty} title="No processes on this machine"><p>${job.job.ended != null ? "The job has ended." : `The job runs elsewhere: ${data.where}.`}</p><//>`;
  }
  const total = data.processes.reduce((sum, one) => sum + one.memory, 0);
  return html`<${Panel} title="Driver, JVM and Python workers" end=${html`<span class="soft">${data.where} · ${format.bytes(total)} in all</span>`}><${ProcessTable} processes=${data.processes} /><//>`;
}
