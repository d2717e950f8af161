// The graph of a job: dagre says where operators stand, the rest is SVG of our own.
import * as dagre from "../vendor/dagre.mjs";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./ui.js";
import * as format from "./format.js";

const WIDTH = 196;
const HEIGHT = 84;
const SLIM = 34;
const LINE = 15;

/** One form for both kinds of plan: that of a job (`predecessors`) and that of Flink's REST API (`inputs`). */
export function nodesOf(plan) {
  // A chain of operators is told as escaped HTML there, one line each.
  const plain = (text) => text.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
  const text = (markup) => String(markup).split(/<br\s*\/?>/).map((line) => plain(line.replace(/^\s*\+-\s*/, "")).trim()).filter(Boolean).join(" → ");
  return (plan?.nodes ?? []).map((node) => {
    const name = node.type && node.pact ? node.type : text(node.description || node.operator || node.id);
    const inputs = (node.predecessors ?? node.inputs ?? []).map((one) => ({ id: String(one.id), ship: one.ship_strategy }));
    const kind = node.pact === "Data Source" || (!node.pact && !inputs.length) ? "source"
      : node.pact === "Data Sink" || (!node.pact && /^sink:/i.test(name)) ? "sink" : "operator";
    return { id: String(node.id), name, lines: name.split(" → "), kind, parallelism: node.parallelism, uid: node.uid, stage: node.stage, inputs };
  });
}

const heightOf = (node, live) => (live ? HEIGHT : SLIM + LINE * node.lines.length);

function layout(nodes, live, upright) {
  const graph = new dagre.Graph().setGraph({ rankdir: upright ? "TB" : "LR", nodesep: 22, ranksep: upright ? 46 : 64, marginx: 16, marginy: 16 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) graph.setNode(node.id, { width: WIDTH, height: heightOf(node, live) });
  for (const node of nodes) for (const input of node.inputs) if (graph.hasNode(input.id)) graph.setEdge(input.id, node.id);
  dagre.layout(graph);
  const places = new Map(nodes.map((node) => [node.id, graph.node(node.id)]));
  const edges = nodes.flatMap((node) => node.inputs.filter((input) => graph.hasNode(input.id))
    .map((input) => ({ key: `${input.id}>${node.id}`, ship: input.ship, points: graph.edge(input.id, node.id).points })));
  const size = graph.graph();
  return { places, edges, width: size.width, height: size.height };
}

const curve = (points) => points.reduce((path, point, index) => {
  if (!index) return `M${point.x},${point.y}`;
  const before = points[index - 1];
  const middle = { x: (before.x + point.x) / 2, y: (before.y + point.y) / 2 };
  return index === 1 ? `${path}L${middle.x},${middle.y}` : `${path}Q${before.x},${before.y} ${middle.x},${middle.y}`;
}, "") + `L${points.at(-1).x},${points.at(-1).y}`;

function arrow(points) {
  const end = points.at(-1);
  const before = points.at(-2) ?? end;
  const angle = (Math.atan2(end.y - before.y, end.x - before.x) * 180) / Math.PI;
  return `translate(${end.x} ${end.y}) rotate(${angle})`;
}

const cut = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

function Node({ node, place, figures, selected, dimmed, onSelect }) {
  const height = heightOf(node, figures);
  const live = figures?.get(node.id);
  const busy = live?.busy;
  const key = (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); onSelect?.(node.id); } };
  const label = `${node.name}, parallelism ${node.parallelism}${live ? `, ${format.count(live.records)} records` : ""}`;
  return html`
    <g class="node ${node.kind} ${selected ? "selected" : ""} ${dimmed ? "dimmed" : ""}" transform=${`translate(${place.x - WIDTH / 2} ${place.y - height / 2})`}
       tabindex="0" role="button" aria-label=${label} data-operator=${node.name} onClick=${() => onSelect?.(node.id)} onKeyDown=${key}>
      <title>${node.name}</title>
      <rect class="box" width=${WIDTH} height=${height} rx="6" />
      <rect class="kind" width="4" height=${height - 12} x="0" y="6" rx="2" />
      ${!figures
        ? html`${node.lines.map((line, index) => html`<text key=${index} class="title" x="14" y=${21 + LINE * index}>${cut(line, 25)}</text>`)}
          <text class="sub" x="14" y=${height - 11}>${node.kind} · ×${node.parallelism}</text>`
        : html`
          <text class="title" x="14" y="19">${cut(node.name, 25)}</text>
          <text class="sub" x="14" y="36">${live?.rate != null ? `${format.rate(live.rate)} records/s` : `${node.kind} · ×${node.parallelism}`}</text>
          <text class="sub" x="14" y="51">${live ? `${format.count(live.records)} out` : ""}</text>
          <text class="sub" x=${WIDTH - 10} y="51" text-anchor="end">${live?.lag != null ? `${format.duration(live.lag)} behind` : ""}</text>
          <rect class="track" x="14" y="64" width=${WIDTH - 60} height="6" rx="3" />
          ${busy >= 0.005 && html`
            <rect class="busy ${busy > 0.9 ? "over" : busy > 0.7 ? "high" : ""}" x="14" y="64" width=${Math.max(2, (WIDTH - 60) * Math.min(1, busy))} height="6" rx="3" />`}
          <text class="sub" x=${WIDTH - 10} y="71" text-anchor="end">${busy != null ? format.percent(busy) : "–"}</text>`}
    </g>`;
}

/** `figures`: by node what is told live (rate, records, lag, busy); without them boxes are slim. */
export function Graph({ plan, figures, selected, onSelect }) {
  const live = Boolean(figures);
  const nodes = useMemo(() => nodesOf(plan), [plan]);
  const shape = JSON.stringify(nodes.map((node) => [node.id, node.lines.length, node.inputs]));
  const box = useRef();
  const [narrow, setNarrow] = useState(false);
  const places = useMemo(() => layout(nodes, live, narrow), [shape, live, narrow]);
  const [view, setView] = useState(null);
  const drag = useRef(null);
  const [wanted, setWanted] = useState("");
  const found = useMemo(() => (wanted ? new Set(nodes.filter((node) => node.name.toLowerCase().includes(wanted.toLowerCase())).map((node) => node.id)) : null), [wanted, nodes]);
  const [wide, setWide] = useState(1000);
  // As high as the graph needs in this width, within limits.
  const tall = Math.round(Math.min(Math.max(innerHeight * 0.62, 320), Math.max(220, places.height * Math.min(1.15, Math.max(0.5, wide / places.width)) + 24)));

  const fit = () => {
    if (!box.current) return;
    const { clientWidth: w, clientHeight: h } = box.current;
    const scale = Math.min(1.15, w / places.width, h / places.height);
    // Text that nobody can read helps nobody: a large graph begins at its left, in a size that can be read.
    const readable = Math.max(scale, 0.5);
    const fits = readable === scale;
    setView({ scale: readable, x: fits ? (w - places.width * scale) / 2 : 8, y: fits ? (h - places.height * scale) / 2 : Math.min(8, (h - places.height * readable) / 2) });
  };
  const whole = () => {
    const { clientWidth: w, clientHeight: h } = box.current;
    const scale = Math.min(1.15, w / places.width, h / places.height);
    setView({ scale, x: (w - places.width * scale) / 2, y: (h - places.height * scale) / 2 });
  };
  useLayoutEffect(() => { setNarrow(box.current.clientWidth < 600); setWide(box.current.clientWidth); }, []);
  useLayoutEffect(fit, [places, tall]);
  useEffect(() => {
    const changed = new ResizeObserver(fit);
    changed.observe(box.current);
    return () => changed.disconnect();
  }, [places]);

  const zoom = (factor, x = box.current.clientWidth / 2, y = box.current.clientHeight / 2) => setView((now) => {
    const scale = Math.min(2.5, Math.max(0.05, now.scale * factor));
    const real = scale / now.scale;
    return { scale, x: x - (x - now.x) * real, y: y - (y - now.y) * real };
  });
  const wheel = (event) => {
    event.preventDefault();
    const area = box.current.getBoundingClientRect();
    if (event.ctrlKey || event.metaKey || !event.shiftKey) zoom(Math.exp(-event.deltaY / 400), event.clientX - area.left, event.clientY - area.top);
    else setView((now) => ({ ...now, x: now.x - event.deltaY }));
  };
  useEffect(() => {
    const element = box.current;
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, []);
  const down = (event) => { drag.current = { x: event.clientX, y: event.clientY, moved: false }; };
  const move = (event) => {
    const from = drag.current;
    if (!from || !event.buttons) return;
    const dx = event.clientX - from.x;
    const dy = event.clientY - from.y;
    if (!from.moved && Math.hypot(dx, dy) < 4) return;
    drag.current = { x: event.clientX, y: event.clientY, moved: true };
    setView((now) => ({ ...now, x: now.x + dx, y: now.y + dy }));
  };
  const up = () => { setTimeout(() => { drag.current = null; }); };
  const select = (id) => { if (!drag.current?.moved) onSelect?.(id); };
  const search = (event) => {
    const text = event.target.value;
    setWanted(text);
    const first = text && nodes.find((node) => node.name.toLowerCase().includes(text.toLowerCase()));
    if (!first) return;
    const { x, y } = places.places.get(first.id);
    setView((now) => {
      const scale = Math.max(now.scale, 0.8);
      return { scale, x: box.current.clientWidth / 2 - x * scale, y: box.current.clientHeight / 2 - y * scale };
    });
  };
  const keys = (event) => {
    if (event.target.matches("input")) return;
    const step = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
    if (step) { event.preventDefault(); setView((now) => ({ ...now, x: now.x + step[0], y: now.y + step[1] })); }
    else if (event.key === "+" || event.key === "=") zoom(1.25);
    else if (event.key === "-") zoom(0.8);
    else if (event.key === "0") whole();
  };
  // Made once for each poll, not for each step of a zoom: of 200 operators that would be felt.
  const content = useMemo(() => html`
          ${places.edges.map((edge) => {
            const middle = edge.points[Math.floor(edge.points.length / 2)];
            const ship = edge.ship && edge.ship !== "FORWARD" ? edge.ship.toLowerCase() : null;
            return html`<g key=${edge.key}>
              <path class="edge" d=${curve(edge.points)} />
              <path class="arrow" d="M0,0L-7,-3.500L-7,3.500Z" transform=${arrow(edge.points)} />
              ${ship && html`<g class="ship" transform=${`translate(${middle.x} ${middle.y})`}>
                <rect x=${-ship.length * 3.2 - 2} y="-8" width=${ship.length * 6.4 + 4} height="14" rx="3" />
                <text text-anchor="middle" y="3">${ship}</text></g>`}
            </g>`;
          })}
          ${nodes.map((node) => html`<${Node} key=${node.id} node=${node} place=${places.places.get(node.id)} figures=${figures}
            selected=${selected === node.id} dimmed=${found && !found.has(node.id)} onSelect=${select} />`)}
  `, [places, nodes, figures, selected, found]);
  return html`
    <div class="graph" ref=${box} onKeyDown=${keys} style=${{ height: `${tall}px` }}>
      <svg onPointerDown=${down} onPointerMove=${move} onPointerUp=${up} onPointerLeave=${up} role="group" aria-label="Graph of operators">
        ${view && html`<g transform=${`translate(${view.x} ${view.y}) scale(${view.scale})`}>${content}</g>`}
      </svg>
      <div class="tools">
        ${nodes.length > 12 && html`<input type="search" placeholder="Find an operator" aria-label="Find an operator" data-filter value=${wanted} onInput=${search} />`}
        <button onClick=${() => zoom(1.25)} aria-label="Zoom in">+</button>
        <button onClick=${() => zoom(0.8)} aria-label="Zoom out">−</button>
        <button onClick=${whole}>All</button>
      </div>
    </div>`;
}
