// Event time everywhere in the job, on one page.
import { lagOf } from "../figures.js";
import * as format from "../format.js";
import { Empty, Panel, html } from "../ui.js";

export function Watermarks({ data }) {
  const operators = (data.metrics?.operators ?? []).filter((one) => one.subtasks.length);
  if (!operators.length) return html`<${Empty} title="No event time yet"><p>Tasks report it at the end of each micro-batch.</p><//>`;
  const marks = operators.flatMap((one) => one.subtasks.map((subtask) => subtask.watermark)).filter(format.hasTime);
  const front = marks.length ? Math.max(...marks) : null;
  const width = Math.max(...operators.map((one) => one.subtasks.length));
  const numbers = [...Array(width).keys()];
  const cell = (watermark) => {
    const behind = front != null && format.hasTime(watermark) ? front - watermark : null;
    return html`<div>${format.watermark(watermark)}</div>
      ${behind != null && behind > 0 && html`<div class=${behind > 60000 ? "warn" : "faint"}>${format.duration(behind)} behind the first</div>`}`;
  };
  return html`
    <div class="stack">
      <p class="soft">${front == null ? "No source gives event time: watermarks come from the watermark strategy of from_source or assign_timestamps_and_watermarks."
        : `Windows and timers wait for the smallest watermark of all that comes before them.${data.job.ended == null ? ` The furthest one is ${format.duration(lagOf(front, data.now))} behind the clock.` : ""}`}</p>
      <${Panel} title="Watermarks"><div class="scroll"><table>
        <thead><tr><th>Operator</th><th class="num">Stage</th><th>Lowest</th>${width > 1 && numbers.map((number) => html`<th key=${number}>Subtask ${number}</th>`)}</tr></thead>
        <tbody>${operators.map((operator) => {
          const known = operator.subtasks.map((one) => one.watermark).filter((mark) => mark != null);
          return html`<tr key=${operator.id}><td><span class="name">${operator.name}</span></td><td class="num">${operator.stage}</td>
            <td class="nowrap"><b>${format.watermark(known.length ? Math.min(...known) : null)}</b></td>
            ${width > 1 && numbers.map((number) => html`<td key=${number} class="nowrap">${operator.subtasks[number] ? cell(operator.subtasks[number].watermark) : ""}</td>`)}</tr>`;
        })}</tbody></table></div><//>
    </div>`;
}
