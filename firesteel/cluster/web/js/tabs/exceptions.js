// Failures, attempt by attempt: the user's own line first.
import { Copy, Empty, Panel, Problem, Time, html } from "../ui.js";

const Failure = ({ one }) => html`
  <div class="body stack" data-failure>
    <div class="row spread"><b class="grow">${one.cause}</b><span class="soft"><${Time} at=${one.timestamp} /></span></div>
    ${one.raised_at && html`<div><h3>The line that failed</h3><pre class="code line">${one.raised_at}</pre></div>`}
    <dl class="facts">
      ${one.operator && html`<dt>Operator</dt><dd>${one.operator}${one.subtask != null && html` <span class="soft">subtask ${one.subtask}</span>`}</dd>`}
      ${one.built_at && html`<dt>Built at</dt><dd><code>${one.built_at}</code></dd>`}
      ${one.element != null && html`<dt>Record</dt><dd><code>${one.element}</code></dd>`}
      ${one.exception && html`<dt>Exception</dt><dd><code>${one.exception}</code></dd>`}
    </dl>
    ${one.replay && html`<div><h3>Run that micro-batch again, in a debugger</h3><${Copy} text=${one.replay} label="Copy the replay command" /></div>`}
    ${one.trace && html`<details><summary class="soft">Whole trace</summary><pre class="code">${one.trace}</pre></details>`}
  </div>`;

export function Exceptions({ failures }) {
  const { data, error } = failures;
  if (!data) return error ? html`<${Problem} error=${error} />` : html`<p class="soft">Asking for failures …</p>`;
  if (!data.failures.length) return html`<${Empty} title="Nothing has failed"><p>Failures are reported here, each with the line of your program that raised it, the record that it was working on, and a command that runs the same micro-batch again.</p><//>`;
  const attempts = [...new Set(data.failures.map((one) => one.attempt))];
  return html`
    <div class="stack">
      ${attempts.map((attempt) => {
        const those = data.failures.filter((one) => one.attempt === attempt);
        return html`<${Panel} key=${attempt} title=${`Attempt ${attempt}`} end=${html`<span class="chip">${those[0].restarted ? "restarted after it" : "not restarted"}</span>`}>
          ${those.map((one, index) => html`<${Failure} key=${index} one=${one} />`)}<//>`;
      })}
      ${data.truncated && html`<p class="soft">Older failures are forgotten.</p>`}
    </div>`;
}
