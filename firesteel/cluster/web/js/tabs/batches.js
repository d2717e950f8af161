// Micro-batches: how long each took and on what, how many records it had.
import { get, own, usePolled } from "../api.js";
import { Chart } from "../chart.js";
import * as format from "../format.js";
import { Empty, Panel, Problem, Time, html, useMemo, useRef } from "../ui.js";

/** The parts of a micro-batch in the order in which they come, and their colours. */
const parts = {
  latest_offset: ["asking sources", "--c8"], planning: ["planning", "--c4"], wal_commit: ["log of offsets", "--c5"], tasks: ["tasks", "--c1"],
  add_batch: ["Spark around tasks", "--c7"], results: ["results", "--c3"], commit_offsets: ["log of commits", "--c5"], sink_commit: ["commits of sinks", "--c2"],
};
const order = Object.keys(parts);
const word = (name) => parts[name]?.[0] ?? name;
const KEPT = 2000;

/** Asks only for what is new, and keeps what came before. */
function useBatches(id) {
  const known = useRef([]);
  return usePolled(async () => {
    const last = known.current.at(-1);
    const { batches } = await get(own(id, `/batches?after=${last ? last.number : -1}`));
    if (batches.length) known.current = [...known.current, ...batches].slice(-KEPT);
    return known.current;
  }, [id], 1500);
}

export function Batches({ id }) {
  const { data: batches, error } = useBatches(id);
  const done = useMemo(() => (batches ?? []).filter((one) => one.completed), [batches]);
  const series = useMemo(() => {
    if (!done.some((one) => Object.keys(one.parts ?? {}).length)) return [{ label: "duration", colour: "--c1", values: done.map((one) => one.duration_ms) }];
    // What never takes half a millisecond would only be a word in the legend.
    const matters = (name) => done.some((one) => one.parts[name] >= 0.5);
    const names = [...new Set(done.flatMap((one) => Object.keys(one.parts)))].filter(matters).sort((a, b) => (order.indexOf(a) + 1 || 99) - (order.indexOf(b) + 1 || 99));
    const rest = done.map((one) => Math.max(0, one.duration_ms - names.reduce((sum, name) => sum + (one.parts[name] ?? 0), 0)));
    return [...names.map((name) => ({ label: word(name), colour: parts[name]?.[1] ?? "--c6", values: done.map((one) => one.parts[name] ?? 0) })),
      { label: "other", colour: "--c6", values: rest }];
  }, [done]);
  if (!batches) return error ? html`<${Problem} error=${error} />` : html`<p class="soft">Asking for micro-batches …</p>`;
  if (!batches.length) return html`<${Empty} title="No micro-batch yet"><p>The first one begins when the sources have something to read.</p><//>`;
  const times = done.map((one) => one.started);
  const newest = batches.slice(-100).reverse();
  return html`
    <div class="stack">
      <${Problem} error=${error} />
      <${Panel} title="Duration and its parts"><div class="body">
        <${Chart} times=${times} series=${series} show=${format.duration} stacked=${true} height=${220} label="Duration of micro-batches, by part" /></div><//>
      <div class="split">
        <${Panel} title="Records in each"><div class="body">
          <${Chart} times=${times} series=${[{ label: "records", colour: "--c3", values: done.map((one) => one.records) }]} show=${format.count} height=${150} label="Records of micro-batches" /></div><//>
      </div>
      <${Panel} title="The last ones"><div class="scroll"><table>
        <thead><tr><th class="num">Batch</th><th>Began</th><th class="num">Took</th><th class="num">Records</th><th class="num">Records/s</th><th class="num">Sent</th><th class="num">Backlog after it</th><th>Longest part</th></tr></thead>
        <tbody>${newest.map((one) => {
          const longest = Object.entries(one.parts ?? {}).sort((a, b) => b[1] - a[1])[0];
          return html`<tr key=${`${one.number}-${one.started}`}>
            <td class="num">${format.count(one.number)}</td><td><${Time} at=${one.started} /></td>
            <td class="num">${one.completed ? format.duration(one.duration_ms) : html`<span class="pill FAILED">failed</span>`}</td>
            <td class="num">${format.count(one.records)}</td><td class="num">${one.duration_ms ? format.rate((one.records * 1000) / one.duration_ms) : "–"}</td>
            <td class="num">${format.bytes(one.bytes)}</td><td class="num">${format.count(one.pending)}</td>
            <td class="soft">${longest ? `${word(longest[0])}, ${format.duration(longest[1])}` : "–"}</td></tr>`;
        })}</tbody></table></div><//>
    </div>`;
}
