// All jobs: those that run, and those that ended.
import { get, usePolled } from "./api.js";
import * as format from "./format.js";
import { href } from "./router.js";
import { Copy, Empty, Figure, Panel, Problem, Quantity, Spark, Status, Time, html, useState } from "./ui.js";

/** Rates of each job as they were seen, for the small curves. */
const rates = new Map();
function remember(jobs) {
  for (const job of jobs) {
    if (job.ended != null || job.rate == null) continue;
    const known = rates.get(job.id) ?? [];
    rates.set(job.id, [...known, job.rate].slice(-40));
  }
}

const open = (id) => (event) => { if (!event.target.closest("a, button")) location.hash = href("jobs", id); };

const Row = ({ job, running }) => html`
  <tr class="go" onClick=${open(job.id)}>
    <td><${Status} of=${job.status} /></td>
    <td><a class="name" href=${href("jobs", job.id)}>${job.name}</a></td>
    <td class="num">${running && html`<span class="hide-small"><${Spark} values=${rates.get(job.id)} /> </span>`}<${Quantity} value=${job.rate == null ? null : format.rate(job.rate)} unit="/s" /></td>
    ${running && html`<td class="num">${job.lag == null ? html`<span class="faint" title="Its records have no event time">–</span>` : format.duration(job.lag)}</td>`}
    <td class="num">${format.count(job.records)}</td>
    <td class="num hide-small"><${Time} at=${job.started} /></td>
    <td class="num">${format.duration(job.duration)}</td>
    <td class="num hide-small">${job.attempt ? format.count(job.attempt) : html`<span class="faint">0</span>`}</td>
    <td class="error" title=${job.lastError || ""}>${(job.lastError || "").split("\n")[0]}</td>
  </tr>`;

const Table = ({ jobs, running, title, empty, end }) => html`
  <${Panel} title=${html`${title} <span class="faint">${format.count(jobs.length)}</span>`} end=${end}>
    ${jobs.length ? html`<div class="scroll"><table>
      <thead><tr><th>Status</th><th>Name</th><th class="num">Rate</th>${running && html`<th class="num">Lag</th>`}<th class="num">Records</th>
        <th class="num hide-small">Started</th><th class="num">Runtime</th><th class="num hide-small">Restarts</th><th>Last error</th></tr></thead>
      <tbody>${jobs.map((job) => html`<${Row} key=${job.id} job=${job} running=${running} />`)}</tbody>
    </table></div>` : empty}
  <//>`;

export function Overview() {
  const [filter, setFilter] = useState("");
  const { data, error } = usePolled(async () => {
    const [jobs, cluster] = await Promise.all([get("firesteel/v1/jobs"), get("overview").catch(() => null)]);
    remember(jobs.jobs);
    return { jobs: jobs.jobs, cluster };
  }, []);
  if (!data) return error ? html`<${Problem} error=${error} />` : html`<p class="soft">Asking for jobs …</p>`;
  const text = filter.toLowerCase();
  const shown = data.jobs.filter((job) => !text || [job.name, job.id, job.status, job.lastError].some((part) => part?.toLowerCase().includes(text)));
  const running = shown.filter((job) => job.ended == null);
  const ended = shown.filter((job) => job.ended != null);
  const alive = data.jobs.filter((job) => job.ended == null);
  const of = (status) => data.jobs.filter((job) => job.status === status).length;
  const worst = alive.reduce((most, job) => (job.lag != null && job.lag > (most?.lag ?? -1) ? job : most), null);
  const slots = data.cluster?.["slots-total"];
  const find = html`<input type="search" placeholder="Filter" aria-label="Filter jobs" data-filter value=${filter} onInput=${(event) => setFilter(event.target.value)} />`;
  return html`
    <h1 class="visually-hidden">Jobs</h1>
    <div class="stack">
      <${Problem} error=${error} />
      <div class="figures">
        <${Figure} label="Running" value=${format.count(alive.length)} more=${slots ? `${data.cluster["slots-available"]} of ${slots} slots free` : null} />
        <${Figure} label="Records a second" value=${format.rate(alive.reduce((sum, job) => sum + (job.rate ?? 0), 0))} />
        <${Figure} label="Largest lag" value=${worst ? format.duration(worst.lag) : "–"} more=${worst?.name} />
        <${Figure} label="Finished" value=${format.count(of("FINISHED"))} />
        <${Figure} label="Cancelled" value=${format.count(of("CANCELED"))} />
        <${Figure} label="Failed" value=${format.count(of("FAILED"))} kind=${of("FAILED") ? "bad" : ""} />
      </div>
      <${Table} title="Running jobs" jobs=${running} running=${true} end=${find} empty=${text ? html`<${Empty} title="No running job fits the filter" />` : html`
        <${Empty} title="No job runs">
          <p>Start a program from a terminal, or <a class="link" href="#/submit">submit one here</a>.</p>
          <${Copy} text="firesteel run -d program.py" />
        <//>`} />
      <${Table} title="Jobs that ended" jobs=${ended} empty=${html`<${Empty} title=${text ? "No ended job fits the filter" : "No job has ended yet"}>
          ${!text && html`<p>What ends stays here with its graph, checkpoints, failures and logs.</p>`}<//>`} />
    </div>`;
}
