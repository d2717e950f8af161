// SQL: an editor, and what its statements give while they run.
import { Action, Empty, Panel, Problem, html, useEffect, useRef, useState } from "../ui.js";
import { Editor, goTo, placeOf } from "./editor.js";
import { Output } from "./output.js";
import { end, handle, keepAlive, lost, mode, outputs, run, setText, starting, text } from "./session.js";

const EXAMPLE = `CREATE TABLE IF NOT EXISTS orders (
  customer INT,
  amount INT
) WITH (
  'connector' = 'datagen', 'rows-per-second' = '20',
  'fields.customer.min' = '1', 'fields.customer.max' = '8',
  'fields.amount.min' = '1', 'fields.amount.max' = '100'
);

SELECT customer, COUNT(*) AS orders, SUM(amount) AS total
FROM orders
GROUP BY customer;`;

export function SqlPage() {
  const area = useRef();
  const [ran, setRan] = useState("");
  const [error, setError] = useState(null);
  useEffect(keepAlive, [handle.value]);
  const execute = async () => {
    const { selectionStart, selectionEnd, value } = area.current;
    const chosen = selectionEnd > selectionStart && value.slice(selectionStart, selectionEnd).trim();
    setError(null);
    if (!value.trim()) return;
    setRan(value);
    try {
      if (chosen) await run(value.slice(selectionStart, selectionEnd), placeOf(value, selectionStart));
      else await run(value);
    } catch (failure) { setError(failure); }
  };
  const change = (output) => (more) => { Object.assign(output, more); outputs.value = [...outputs.value]; };
  // What was corrected is not marked any longer.
  const wrong = ran === text.value ? outputs.value.filter((one) => one.error?.at).map((one) => one.error.at) : [];
  return html`
    <div class="stack sql">
      <div class="row spread">
        <h1>SQL</h1>
        <div class="row soft">
          ${handle.value ? html`<span class="live"><b>Session is open</b></span><${Action} class="quiet" busy="Ending …" run=${end}>End it<//>`
            : html`<label class="check">New session: <select aria-label="Mode" value=${mode.value} onChange=${(event) => { mode.value = event.target.value; }}>
                <option value="STREAMING">streaming</option><option value="BATCH">batch</option></select></label>`}
        </div>
      </div>
      <${Panel}>
        <${Editor} area=${area} value=${text.value} onInput=${setText} onRun=${execute} wrong=${wrong} />
        <div class="body row spread">
          <span class="row"><${Action} class="primary" busy=${starting.value ? "Starting a session …" : "Running …"} run=${execute}>Run<//><kbd class="hide-small">Ctrl Enter</kbd>
            ${!text.value.trim() && html`<button class="quiet" onClick=${() => setText(EXAMPLE)}>Fill in an example</button>`}</span>
          <span class="faint hide-small">A semicolon ends a statement. What is selected runs alone.</span>
        </div>
      <//>
      <${Problem} error=${error} />
      ${lost.value && html`<div class="note bad" role="alert">${lost.value}</div>`}
      ${outputs.value.map((output) => html`<${Output} key=${output.handle} output=${output} text=${ran} onChange=${change(output)}
        onPlace=${() => goTo(area.current, output.error.at, output.error.length)} />`)}
      ${!outputs.value.length && !error && !lost.value && html`<${Panel}><${Empty} title="No statement was run yet">
        <p>Tables, views and settings stay while the session does. A query's rows change here while it runs; INSERT becomes a job that goes on without this page.</p><//><//>`}
    </div>`;
}

