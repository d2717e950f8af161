// Upload a program, look at its plan, run it.
import { call, get, send, usePolled } from "./api.js";
import * as format from "./format.js";
import { Graph } from "./graph.js";
import { go } from "./router.js";
import { Action, Dialog, Empty, Panel, Problem, Time, html, toast, useState } from "./ui.js";

/** `key: value` or `key=value` lines as an object. */
export function settingsOf(text) {
  const found = {};
  for (const line of text.split("\n").map((one) => one.trim()).filter((one) => one && !one.startsWith("#"))) {
    const match = /^([^:=\s]+)\s*[:=]\s*(.*)$/.exec(line);
    if (!match) throw new Error(`A setting is written as key: value, not “${line}”.`);
    found[match[1]] = match[2];
  }
  return found;
}

async function upload(file) {
  const form = new FormData();
  form.append("jarfile", file, file.name);
  const { filename } = await call("jars/upload", { method: "POST", body: form });
  toast(`${file.name} is uploaded.`);
  return String(filename).split("/").at(-1);
}

function Drop({ onUploaded }) {
  const [over, setOver] = useState(false);
  const [busy, setBusy] = useState(false);
  const take = async (file) => {
    setOver(false);
    if (!file) return;
    setBusy(true);
    try { onUploaded(await upload(file)); } catch (error) { toast(error.message, "bad"); } finally { setBusy(false); }
  };
  return html`
    <label class="drop ${over ? "over" : ""}" onDragOver=${(event) => { event.preventDefault(); setOver(true); }} onDragLeave=${() => setOver(false)}
      onDrop=${(event) => { event.preventDefault(); take(event.dataTransfer.files[0]); }}>
      <input type="file" accept=".py,.zip" aria-label="Program" onChange=${(event) => { take(event.target.files[0]); event.target.value = ""; }} />
      ${busy ? "Uploading …" : html`Drop a Python program here, or <b>choose a file</b>`}
    </label>`;
}

function Form({ program }) {
  const [text, setText] = useState({ arguments: "", savepoint: "", parallelism: "", settings: "" });
  const [lenient, setLenient] = useState(false);
  const [plan, setPlan] = useState(null);
  const [error, setError] = useState(null);
  const field = (name) => ({ value: text[name], onInput: (event) => setText({ ...text, [name]: event.target.value }) });
  const body = () => ({
    programArgs: text.arguments, parallelism: text.parallelism ? Number(text.parallelism) : null, savepointPath: text.savepoint.trim() || null,
    allowNonRestoredState: lenient, flinkConfiguration: settingsOf(text.settings),
  });
  const doing = (step) => async () => {
    setError(null);
    try { await step(); } catch (failure) { setError(failure); }
  };
  const path = `jars/${encodeURIComponent(program.id)}`;
  const show = doing(async () => { setPlan((await send("POST", `${path}/plan`, body())).plan); });
  const run = doing(async () => {
    const { jobid } = await send("POST", `${path}/run`, body());
    toast("The job is submitted.");
    go("jobs", jobid);
  });
  return html`
    <${Panel} title=${program.name}>
      <div class="body stack">
        <label class="field"><span>Arguments</span><input class="mono" placeholder="--input /data/orders.csv" ...${field("arguments")} /></label>
        <div class="row">
          <label class="field grow"><span>Begin with savepoint</span><input class="mono" placeholder="none: begin anew" ...${field("savepoint")} /></label>
          <label class="field"><span>Parallelism</span><input type="number" min="1" placeholder="default" ...${field("parallelism")} /></label>
        </div>
        ${text.savepoint && html`<label class="check"><input type="checkbox" checked=${lenient} onChange=${(event) => setLenient(event.target.checked)} /> Leave behind state of operators that the program does not have</label>`}
        <label class="field"><span>Settings, one on each line</span><textarea rows="4" spellcheck="false" placeholder=${"firesteel.batch.interval: 1 s\nexecution.checkpointing.dir: /data/checkpoints"} ...${field("settings")}></textarea></label>
        <${Problem} error=${error} />
        <div class="row"><${Action} run=${show} busy="Planning …">Show the plan<//><${Action} class="primary" run=${run} busy="Submitting …">Run<//></div>
        <p class="faint">The program runs on the job manager's machine, as its user.</p>
      </div>
      ${plan && html`<header><h2>Plan</h2></header><${Graph} plan=${plan} />`}
    <//>`;
}

export function Submit() {
  const { data, error, refresh } = usePolled(() => get("jars"), [], 0);
  const [chosen, setChosen] = useState(null);
  const [removing, setRemoving] = useState(null);
  if (!data) return error ? html`<${Problem} error=${error} />` : html`<p class="soft">Asking for programs …</p>`;
  const program = data.files.find((one) => one.id === chosen);
  const remove = async (confirmed) => {
    const one = removing;
    setRemoving(null);
    if (!confirmed) return;
    try { await send("DELETE", `jars/${encodeURIComponent(one.id)}`); toast(`${one.name} is removed.`); } catch (failure) { toast(failure.message, "bad"); }
    refresh();
  };
  return html`
    <div class="stack">
      <h1>Submit a program</h1>
      <${Problem} error=${error} />
      <${Drop} onUploaded=${async (id) => { await refresh(); setChosen(id); }} />
      <${Panel} title="Uploaded programs">
        ${data.files.length ? html`<div class="scroll"><table><thead><tr><th>Name</th><th>Uploaded</th><th></th></tr></thead>
          <tbody>${data.files.map((one) => html`<tr key=${one.id} class="go" aria-selected=${one.id === chosen ? "true" : "false"} onClick=${() => setChosen(one.id)}>
            <td><button class="quiet name" onClick=${() => setChosen(one.id)}>${one.name}</button></td><td><${Time} at=${one.uploaded} /></td>
            <td class="right"><button class="quiet" onClick=${(event) => { event.stopPropagation(); setRemoving(one); }}>Remove</button></td></tr>`)}</tbody></table></div>`
          : html`<${Empty} title="No programs yet"><p>What is uploaded stays here, and can be run again with other arguments.</p><//>`}
      <//>
      ${program && html`<${Form} key=${program.id} program=${program} />`}
      ${removing && html`<${Dialog} title=${`Remove ${removing.name}`} confirm="Remove it" danger onClose=${remove}><p class="soft">Jobs that run it go on.</p><//>`}
    </div>`;
}
