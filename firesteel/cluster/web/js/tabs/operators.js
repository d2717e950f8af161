// The graph with live numbers, and one operator beside it.
import { figuresOf } from "../figures.js";
import * as format from "../format.js";
import { Graph, nodesOf } from "../graph.js";
import { Empty, Panel, Time, html, useMemo, useState } from "../ui.js";

const shown = (value) => value !== null && typeof value === "object"
  ? Object.entries(value).map(([name, part]) => `${name} ${typeof part === "number" ? format.rate(part) : part}`).join(" · ")
  : typeof value === "number" ? format.rate(value) : String(value);

function Side({ node, live, onClose }) {
  const operator = live?.operator;
  const values = operator?.subtasks.flatMap((one) => Object.entries(one.values ?? {}).map(([name, value]) => [one.subtask, name, value])) ?? [];
  return html`
    <${Panel} title=${node.name} end=${html`<button class="quiet" onClick=${onClose} aria-label="Close">✕</button>`}>
      <div class="body stack">
        <dl class="facts">
          <dt>Kind</dt><dd>${node.kind}</dd>
          <dt>uid</dt><dd><code>${node.uid ?? "–"}</code></dd>
          <dt>Parallelism</dt><dd>${format.count(node.parallelism)}</dd>
          ${node.stage != null && html`<dt>Stage</dt><dd>${node.stage}</dd>`}
          ${live && html`
            <dt>Records in</dt><dd>${format.count(live.came)}</dd>
            <dt>Records out</dt><dd>${format.count(live.records)}</dd>
            <dt>Busy</dt><dd>${live.busy == null ? "–" : `${format.percent(live.busy)} of the time (its busiest subtask)`}</dd>
            <dt>Watermark</dt><dd>${format.hasTime(live.watermark) ? html`<${Time} at=${live.watermark} />` : format.watermark(live.watermark)}</dd>
            ${operator.state_size != null && html`<dt>Keyed state</dt><dd>${format.bytes(operator.state_size)}</dd>`}
            ${operator.pending != null && html`<dt>Backlog</dt><dd>${format.count(operator.pending)} records</dd>`}`}
        </dl>
        ${values.length > 0 && html`<div><h3>The function's own metrics</h3><table><tbody>
          ${values.map(([subtask, name, value]) => html`<tr key=${`${subtask}${name}`}><td>${name}</td><td class="faint nowrap">subtask ${subtask}</td><td class="num">${shown(value)}</td></tr>`)}
        </tbody></table></div>`}
      </div>
    <//>`;
}

export function GraphTab({ data }) {
  const [selected, setSelected] = useState(null);
  const nodes = useMemo(() => nodesOf(data.plan), [data.plan]);
  if (!nodes.length) return html`<${Empty} title="No graph yet"><p>The job's plan is known once its program has called execute().</p><//>`;
  const figures = figuresOf(data.metrics, data.now, data.job.ended == null);
  const node = nodes.find((one) => one.id === selected);
  return html`
    <div class="split ${node ? "open" : ""}">
      <section class="panel">
        <header><h2>Graph</h2><div class="end legend">
          <span><i class="sw3"></i>source</span><span><i class="sw6"></i>operator</span><span><i class="sw4"></i>sink</span><span><i class="sw1"></i>busy share</span></div></header>
        <${Graph} plan=${data.plan} figures=${figures} selected=${selected} onSelect=${(id) => setSelected(id === selected ? null : id)} />
      </section>
      ${node && html`<${Side} node=${node} live=${figures.get(node.id)} onClose=${() => setSelected(null)} />`}
    </div>`;
}
