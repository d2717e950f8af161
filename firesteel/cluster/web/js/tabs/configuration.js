// With which settings a job runs.
import { get, usePolled } from "../api.js";
import * as format from "../format.js";
import { Empty, Panel, html, useState } from "../ui.js";

const quiet = (path) => get(path).catch(() => null);

const Settings = ({ title, entries, filter }) => {
  const shown = entries.filter(([key, value]) => !filter || `${key} ${value}`.toLowerCase().includes(filter));
  return shown.length ? html`<${Panel} title=${title}><div class="scroll"><table class="settings"><tbody>
    ${shown.map(([key, value]) => html`<tr key=${key}><td class="nowrap"><code>${key}</code></td><td class="wide"><code>${String(value)}</code></td></tr>`)}
  </tbody></table></div><//>` : null;
};

const flat = (value, before = "") => Object.entries(value ?? {}).flatMap(([key, part]) =>
  part !== null && typeof part === "object" && !Array.isArray(part) ? flat(part, `${before}${key}.`) : [[before + key, part ?? "–"]]);

export function ConfigurationTab({ id, data }) {
  const [filter, setFilter] = useState("");
  const known = usePolled(async () => {
    const [config, checkpoints] = await Promise.all([quiet(`jobs/${id}/config`), quiet(`jobs/${id}/checkpoints/config`)]);
    return { config, checkpoints };
  }, [id], 0).data;
  const { job } = data;
  const about = [
    ["id", job.id], ["engine", job.engine], ["mode", job.mode], ["where", job.where || "–"], ["driver's process", job.pid], ["parallelism", job.parallelism],
    ["checkpoint folder", job.checkpoint_folder ?? "–"], ["firesteel", job.firesteel || "–"], ["started", format.fullTime(job.started)],
  ];
  const execution = known?.config?.["execution-config"] ?? {};
  const { "user-config": user = {}, ...rest } = execution;
  const text = filter.toLowerCase();
  return html`
    <div class="stack">
      <div class="row"><input type="search" placeholder="Filter" aria-label="Filter settings" data-filter value=${filter} onInput=${(event) => setFilter(event.target.value)} /></div>
      <${Settings} title="The job" entries=${about} filter=${text} />
      <${Settings} title="Settings" entries=${Object.entries(user).sort()} filter=${text} />
      <${Settings} title="Execution" entries=${flat(rest)} filter=${text} />
      <${Settings} title="Checkpoints" entries=${flat(known?.checkpoints)} filter=${text} />
      ${text && ![...about, ...Object.entries(user), ...flat(rest), ...flat(known?.checkpoints)].some(([key, value]) => `${key} ${value}`.toLowerCase().includes(text)) && html`<${Empty} title="No setting fits the filter" />`}
    </div>`;
}
