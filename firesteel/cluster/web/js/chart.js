// Charts over time: uPlot with the page's colours.
import uPlot from "../vendor/uplot.mjs";
import { html, useEffect, useRef, useState } from "./ui.js";
import * as format from "./format.js";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function axes(show) {
  const line = { stroke: colour("--line"), width: 1 };
  const common = { stroke: colour("--faint"), font: "11px system-ui, sans-serif", ticks: { show: false } };
  return [
    { ...common, grid: { show: false }, values: (_, splits) => splits.map((at) => format.clock(at * 1000)), space: 90, size: 26 },
    { ...common, grid: line, values: (_, splits) => splits.map(show), size: 62, space: 34 },
  ];
}

/** `series`: [{label, colour, values}], all over `times` (milliseconds). `stacked`: bars on top of each other. */
export function Chart({ times, series, show, stacked, height = 190, label }) {
  const box = useRef();
  const plot = useRef();
  const [at, setAt] = useState(null);
  const theme = document.documentElement.dataset.theme;
  const names = series.map((one) => one.label).join("|");
  const data = stacked ? stack(times, series) : [times.map((time) => time / 1000), ...series.map((one) => one.values)];
  useEffect(() => {
    const bars = uPlot.paths.bars({ size: [0.86, 28], gap: 1 });
    const line = uPlot.paths.linear();
    // Stacked values are sums, so the largest comes first and the others are drawn over it.
    const drawn = (stacked ? [...series].reverse() : series).map((one) => stacked
      ? { label: one.label, fill: colour(one.colour), width: 0, paths: bars, points: { show: false } }
      : { label: one.label, stroke: colour(one.colour), width: 1.6, paths: line, points: { show: false }, fill: `${colour(one.colour)}22` });
    const one = new uPlot({
      width: box.current.clientWidth, height, series: [{}, ...drawn], axes: axes(show), legend: { show: false },
      scales: { x: { time: true, range: (_, low, high) => padded(low, high, stacked ? plot.current?.data[0].length ?? times.length : 0) }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(high ?? 1, 1e-9) * 1.06] } },
      cursor: { y: false, points: { show: !stacked } },
      hooks: { setCursor: [(chart) => setAt(chart.cursor.idx ?? null)] },
    }, data, box.current);
    plot.current = one;
    const changed = new ResizeObserver(() => box.current && one.setSize({ width: box.current.clientWidth, height }));
    changed.observe(box.current);
    return () => { changed.disconnect(); one.destroy(); };
  }, [names, theme, stacked]);
  useEffect(() => { plot.current.setData(data); }, [data]);
  const index = at != null && at < times.length ? at : times.length - 1;
  return html`
    <div class="chart" role="img" aria-label=${label}>
      <div class="legend">
        ${series.map((one) => html`<span key=${one.label}><i class="sw${one.colour.slice(-1)}"></i>${one.label}
          ${index >= 0 && html` <b>${show(one.values[index] ?? 0)}</b>`}</span>`)}
        <span class="faint">${index >= 0 ? format.clock(times[index]) : ""}</span>
      </div>
      <div ref=${box}></div>
    </div>`;
}

/** Room for half a bar at both ends. */
function padded(low, high, bars) {
  const half = bars > 1 ? (high - low) / (bars - 1) / 2 : bars ? 0.5 : 0;
  return [low - half, high + half];
}

function stack(times, series) {
  const sums = times.map(() => 0);
  const layers = series.map((one) => one.values.map((value, index) => (sums[index] += value ?? 0)));
  return [times.map((time) => time / 1000), ...layers.reverse()];
}
