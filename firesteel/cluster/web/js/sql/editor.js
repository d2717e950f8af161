// A text area with line numbers. Ctrl-Enter runs what is selected, or all of it.
import { html, useEffect, useRef } from "../ui.js";

const PLACEHOLDER = "SELECT …;";

/** Line and column of a place in a text, counted from one. */
export function placeOf(text, offset) {
  const before = text.slice(0, offset);
  const line = before.split("\n").length;
  return { line, column: offset - before.lastIndexOf("\n") };
}

const offsetOf = (text, { line, column }) => text.split("\n").slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0) + column - 1;

export function Editor({ value, onInput, onRun, wrong, area }) {
  const gutter = useRef();
  const lines = value.split("\n").length;
  const marked = new Set(wrong.map((one) => one.line));
  const scroll = () => { gutter.current.scrollTop = area.current.scrollTop; };
  const key = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); onRun(); }
  };
  useEffect(scroll, [lines]);
  return html`
    <div class="editor">
      <div class="gutter" ref=${gutter} aria-hidden="true">${Array.from({ length: lines }, (_, index) => html`
        <div key=${index} class=${marked.has(index + 1) ? "wrong" : ""}>${index + 1}</div>`)}</div>
      <textarea ref=${area} aria-label="SQL" spellcheck="false" autocapitalize="off" autocomplete="off" wrap="off" rows=${Math.min(24, Math.max(8, lines + 1))}
        placeholder=${PLACEHOLDER} value=${value} onInput=${(event) => onInput(event.target.value)} onKeyDown=${key} onScroll=${scroll}></textarea>
    </div>`;
}

/** Marks a place in the editor and goes there. */
export function goTo(area, at, length) {
  const start = offsetOf(area.value, at);
  area.focus();
  area.setSelectionRange(start, Math.min(area.value.length, start + length));
  const height = area.scrollHeight / Math.max(1, area.value.split("\n").length);
  area.scrollTop = Math.max(0, (at.line - 4) * height);
}
