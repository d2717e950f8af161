// What all parts share: markup without a compiler, small components, messages.
import { h, render, Fragment } from "../vendor/preact.mjs";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.mjs";
import { computed, effect, signal } from "../vendor/signals.mjs";
import htm from "../vendor/htm.mjs";
import * as format from "./format.js";

export const html = htm.bind(h);
export { Fragment, computed, effect, render, signal, useEffect, useLayoutEffect, useMemo, useRef, useState };

/** Messages that come and go, lower right. */
export const toasts = signal([]);
let lastToast = 0;

export function toast(text, kind = "good") {
  const id = (lastToast += 1);
  toasts.value = [...toasts.value, { id, text, kind }];
  if (kind === "good") setTimeout(() => dismiss(id), 8000);
}

const dismiss = (id) => { toasts.value = toasts.value.filter((one) => one.id !== id); };

export const Toasts = () => html`
  <div class="toasts" role="status" aria-live="polite">
    ${toasts.value.map((one) => html`
      <div key=${one.id} class="note fade ${one.kind}">
        <div class="grow">${one.text}</div>
        <button class="quiet" aria-label="Dismiss" onClick=${() => dismiss(one.id)}>✕</button>
      </div>`)}
  </div>`;

export const Status = ({ of }) => html`<span class="pill ${of}">${format.status(of)}</span>`;

export const Figure = ({ label, value, unit, more, kind }) => html`
  <div class="figure ${kind || ""}">
    <div class="label">${label}</div>
    <div class="value">${value}${unit && html`<small>${unit}</small>`}</div>
    ${more && html`<div class="more" title=${more}>${more}</div>`}
  </div>`;

export const Empty = ({ title, children }) => html`<div class="empty"><h2>${title}</h2>${children}</div>`;

export const Panel = ({ title, end, children, ...rest }) => html`
  <section class="panel" ...${rest}>
    ${(title || end) && html`<header>${title && html`<h2>${title}</h2>`}${end && html`<div class="end">${end}</div>`}</header>`}
    ${children}
  </section>`;

/** A time, in the reader's zone; the whole of it when pointed at. */
export const Time = ({ at, short }) => at == null || at < 0
  ? html`<span class="faint">–</span>`
  : html`<time datetime=${new Date(at).toISOString()} title=${format.fullTime(at)}>${short ? format.clock(at) : format.time(at)}</time>`;

export const Quantity = ({ value, unit }) => value == null
  ? html`<span class="faint">–</span>`
  : html`<span class="nowrap">${value}${unit && html`<span class="unit">${unit}</span>`}</span>`;

/** A bar from 0 to 1. */
export const Meter = ({ share, label, plain }) => {
  const kind = plain ? "" : share > 0.9 ? "over" : share > 0.7 ? "high" : "";
  return html`<span class="meter ${kind}" role="img" aria-label=${label || format.percent(share)}>
    <i style=${{ width: `${Math.min(100, Math.max(0, share * 100))}%` }}></i></span>`;
};

/** How something went over time, in a few pixels. */
export const Spark = ({ values, width = 72, height = 18 }) => {
  if (!values || values.length < 2) return null;
  const top = Math.max(...values, 1e-9);
  const points = values.map((value, index) =>
    `${((index / (values.length - 1)) * (width - 2) + 1).toFixed(1)},${(height - 2 - (value / top) * (height - 4)).toFixed(1)}`);
  return html`<svg class="spark" width=${width} height=${height} aria-hidden="true">
    <polyline points=${points.join(" ")} fill="none" stroke="currentColor" stroke-width="1.4" stroke-linejoin="round" /></svg>`;
};

export const Copy = ({ text, label }) => {
  const [done, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Without a secure connection browsers have no clipboard for pages: the old way.
      const area = Object.assign(document.createElement("textarea"), { value: text });
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return html`<div class="copy"><code>${text}</code>
    <button class="quiet" onClick=${copy} aria-label=${label || "Copy"}>${done ? "Copied" : "Copy"}</button></div>`;
};

/** A button that does something on the server, once at a time. Failures are told. */
export const Action = ({ run, children, busy, ...rest }) => {
  const [running, setRunning] = useState(false);
  const click = async () => {
    setRunning(true);
    try {
      await run();
    } catch (error) {
      toast(error.message, "bad");
    } finally {
      setRunning(false);
    }
  };
  return html`<button type="button" disabled=${running || rest.disabled} ...${rest} onClick=${click}>${running ? busy || children : children}</button>`;
};

/** A dialog over the page. `onClose` is called with true where it was confirmed. */
export const Dialog = ({ title, confirm, danger, onClose, children }) => {
  const box = useRef();
  useEffect(() => { if (!box.current.open) box.current.showModal(); }, []);
  const submit = (event) => { event.preventDefault(); onClose(true); };
  return html`<dialog ref=${box} onClose=${() => onClose(false)} aria-label=${title}>
    <form onSubmit=${submit}>
      <h2>${title}</h2>
      ${children}
      <div class="row end">
        <button type="button" onClick=${() => onClose(false)}>${confirm ? "Do nothing" : "Close"}</button>
        ${confirm && html`<button type="submit" class=${danger ? "danger" : "primary"}>${confirm}</button>`}
      </div>
    </form>
  </dialog>`;
};

export const Problem = ({ error }) => error ? html`<div class="note bad" role="alert">${error.message}</div>` : null;
