// One job: what it is, how it is, what can be done with it, and a tab for each way to look at it.
import { ApiError, get, own, send, trigger, usePolled } from "./api.js";
import * as format from "./format.js";
import { href } from "./router.js";
import { Batches } from "./tabs/batches.js";
import { Checkpoints } from "./tabs/checkpoints.js";
import { ConfigurationTab } from "./tabs/configuration.js";
import { Exceptions } from "./tabs/exceptions.js";
import { GraphTab } from "./tabs/operators.js";
import { Logs } from "./tabs/logs.js";
import { Processes } from "./tabs/processes.js";
import { StateTab } from "./tabs/state.js";
import { Subtasks } from "./tabs/subtasks.js";
import { Watermarks } from "./tabs/watermarks.js";
import { Dialog, Empty, Figure, Problem, Status, html, toast, useState } from "./ui.js";

const tabs = [
  ["graph", "Graph", GraphTab], ["subtasks", "Subtasks", Subtasks], ["batches", "Micro-batches", Batches],
  ["checkpoints", "Checkpoints", Checkpoints], ["watermarks", "Watermarks", Watermarks], ["exceptions", "Exceptions", Exceptions],
  ["logs", "Logs", Logs], ["state", "State", StateTab], ["processes", "Processes", Processes], ["configuration", "Configuration", ConfigurationTab],
];

/** Savepoint, stop, cancel. */
function Buttons({ job, refresh }) {
  const [asked, setAsked] = useState(null);
  const [folder, setFolder] = useState("");
  const [drain, setDrain] = useState(false);
  const path = `jobs/${job.id}`;
  const target = () => (folder.trim() ? folder.trim() : null);
  const steps = {
    savepoint: async () => {
      const { location } = await trigger(`${path}/savepoints`, { "target-directory": target(), "cancel-job": false });
      toast(`Savepoint taken: ${location}`);
    },
    stop: async () => {
      const { location } = await trigger(`${path}/stop`, { targetDirectory: target(), drain });
      toast(`The job has stopped. Savepoint: ${location}`);
    },
    cancel: async () => {
      await send("PATCH", `${path}?mode=cancel`);
      toast("The job is being cancelled.");
    },
  };
  const [running, setRunning] = useState(null);
  const close = async (confirmed) => {
    const step = asked;
    setAsked(null);
    if (!confirmed) return;
    setRunning(step);
    try {
      await steps[step]();
    } catch (error) {
      toast(error.message, "bad");
    } finally {
      setRunning(null);
      refresh();
    }
  };
  const where = html`<label class="field"><span>Folder for the savepoint</span>
    <input class="mono" value=${folder} placeholder="as the configuration says (execution.checkpointing.savepoint-dir)" onInput=${(event) => setFolder(event.target.value)} /></label>`;
  return html`
    <div class="row">
      <button onClick=${() => setAsked("savepoint")} disabled=${running != null}>${running === "savepoint" ? "Taking a savepoint …" : "Savepoint"}</button>
      <button onClick=${() => setAsked("stop")} disabled=${running != null}>${running === "stop" ? "Stopping …" : "Stop"}</button>
      <button class="danger" onClick=${() => setAsked("cancel")} disabled=${running != null}>${running === "cancel" ? "Cancelling …" : "Cancel"}</button>
    </div>
    ${asked === "savepoint" && html`<${Dialog} title="Take a savepoint" confirm="Take it" onClose=${close}>
      <p class="soft">The job goes on meanwhile. A program can begin with the savepoint later.</p>${where}<//>`}
    ${asked === "stop" && html`<${Dialog} title="Stop with a savepoint" confirm="Stop the job" onClose=${close}>
      <p class="soft">The job ends with a savepoint, from which it can go on.</p>${where}
      <label class="check"><input type="checkbox" checked=${drain} onChange=${(event) => setDrain(event.target.checked)} /> Drain: event time comes to its end, all windows and timers fire</label><//>`}
    ${asked === "cancel" && html`<${Dialog} title="Cancel the job" confirm="Cancel the job" danger onClose=${close}>
      <p class="soft">It ends without a savepoint. What it has committed stays.</p><//>`}`;
}

function Head({ data, refresh }) {
  const { job, diagnosis, metrics } = data;
  const over = job.ended != null;
  const spark = /https?:\/\/\S+/.exec(job.where ?? "")?.[0];
  return html`
    <div class="row spread">
      <div class="grow jobhead">
        <div class="row"><h1>${job.name}</h1><${Status} of=${job.status} /></div>
        <div class="row soft">
          <code title="The job's id">${job.id}</code>
          <span>${job.engine} · ${job.mode.toLowerCase() || "–"} · parallelism ${format.count(job.parallelism)}</span>
          ${spark && !over && html`<a class="link" href=${spark} target="_blank" rel="noreferrer noopener">Spark's own page</a>`}
        </div>
      </div>
      ${!over && html`<${Buttons} job=${job} refresh=${refresh} />`}
    </div>
    ${diagnosis && html`<div class="diagnosis ${diagnosis.level}" data-diagnosis=${diagnosis.rule}><b>Diagnosis</b><span>${diagnosis.text}</span></div>`}
    <div class="figures">
      <${Figure} label=${over ? "Rate, on average" : "Rate"} value=${format.rate(job.rate)} unit="records/s" />
      <${Figure} label="Records" value=${format.count(job.records)} more=${`in ${format.count(job.batches)} micro-batches`} />
      <${Figure} label="Lag" value=${job.lag == null ? "–" : format.duration(job.lag)} more=${job.lag == null ? (over ? null : "no event time") : "event time behind the clock"} />
      <${Figure} label="Backlog" value=${metrics?.pending == null ? "–" : format.count(metrics.pending)} more=${metrics?.pending == null ? "sources do not tell" : "records wait in sources"} />
      <${Figure} label=${over ? "Ran for" : "Runtime"} value=${format.duration(job.duration)} more=${`since ${format.time(job.started)}`} />
      <${Figure} label="Restarts" value=${format.count(job.attempt)} kind=${job.attempt ? "bad" : ""} more=${`${format.count(data.checkpoints?.completed ?? 0)} checkpoints`} />
    </div>`;
}

export function JobPage({ path }) {
  const [, id, chosen = "graph"] = path;
  const { data, error, refresh } = usePolled(() => get(own(id)), [id]);
  const failures = usePolled(() => get(own(id, "/exceptions")), [id], 5000);
  if (!data) {
    if (error instanceof ApiError && error.status === 404) {
      return html`<${Empty} title="This job is not known here"><p>It may have ended too long ago. <a class="link" href="#/">All jobs</a></p><//>`;
    }
    return error ? html`<${Problem} error=${error} />` : html`<p class="soft">Asking for the job …</p>`;
  }
  const [, , Tab] = tabs.find(([name]) => name === chosen) ?? tabs[0];
  const count = failures.data?.failures.length ?? 0;
  return html`
    <div class="stack">
      <${Problem} error=${error} />
      <${Head} data=${data} refresh=${refresh} />
      <nav class="tabs" role="tablist" aria-label="Ways to look at the job">
        ${tabs.map(([name, label]) => html`<a key=${name} role="tab" href=${href("jobs", id, name)} aria-selected=${name === chosen ? "true" : "false"}>
          ${label}${name === "exceptions" && count > 0 && html`<span class="count">${count}</span>`}</a>`)}
      </nav>
      <${Tab} key=${chosen} id=${id} data=${data} failures=${failures} />
    </div>`;
}
