// What works on this machine: the processes of all running jobs.
import { get, own, usePolled } from "./api.js";
import * as format from "./format.js";
import { href } from "./router.js";
import { ProcessTable } from "./tabs/processes.js";
import { Empty, Figure, Panel, Problem, html } from "./ui.js";

export function Workers() {
  const { data, error } = usePolled(async () => {
    const [{ jobs }, cluster, managers] = await Promise.all([
      get("firesteel/v1/jobs"), get("overview").catch(() => null), get("taskmanagers").catch(() => null)]);
    const running = jobs.filter((job) => job.ended == null);
    const processes = await Promise.all(running.map((job) => get(own(job.id, "/processes")).catch(() => ({ processes: [] }))));
    return { jobs: running.map((job, index) => ({ job, processes: processes[index].processes, where: job.where })), cluster, managers };
  }, [], 4000);
  if (!data) return error ? html`<${Problem} error=${error} />` : html`<p class="soft">Asking for processes …</p>`;
  const all = data.jobs.flatMap((one) => one.processes);
  const of = (kind) => all.filter((one) => one.kind === kind);
  const memory = (list) => format.bytes(list.reduce((sum, one) => sum + one.memory, 0));
  return html`
    <div class="stack">
      <h1>Workers</h1>
      <${Problem} error=${error} />
      <div class="figures">
        ${data.cluster && html`<${Figure} label="Slots" value=${format.count(data.cluster["slots-total"])} more=${`${data.cluster["slots-available"]} free`} />`}
        <${Figure} label="Drivers" value=${format.count(of("driver").length)} more=${memory(of("driver"))} />
        <${Figure} label="JVMs" value=${format.count(of("JVM").length)} more=${memory(of("JVM"))} />
        <${Figure} label="Python workers" value=${format.count(of("Python worker").length)} more=${memory(of("Python worker"))} />
        <${Figure} label="Memory in all" value=${memory(all)} />
      </div>
      ${data.jobs.length ? data.jobs.map(({ job, processes, where }) => html`
        <${Panel} key=${job.id} title=${html`<a class="name" href=${href("jobs", job.id, "processes")}>${job.name}</a>`} end=${html`<span class="soft">${where}</span>`}>
          ${processes.length ? html`<${ProcessTable} processes=${processes} />` : html`<${Empty} title="No process of it runs on this machine" />`}
        <//>`) : html`<${Panel}><${Empty} title="Nothing is at work"><p>Each running job has a driver, and on Spark a JVM with Python workers. They are shown here with their memory.</p><//><//>`}
    </div>`;
}
