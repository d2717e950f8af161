// What stands before or over the pages: the question for a token, the list of keys.
import { get, send, session } from "./api.js";
import { Copy, Dialog, Problem, html, useState } from "./ui.js";

export function Login() {
  const [token, setToken] = useState("");
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await send("POST", "firesteel/v1/login", { token: token.trim() });
      await get("config");
      session.value = "open";
    } catch (failure) {
      setError(failure.status === 401 || failure.status === 403 ? new Error("That is not this job manager's token.") : failure);
    } finally {
      setBusy(false);
    }
  };
  return html`
    <form class="panel login" onSubmit=${submit}>
      <header><h2>Token</h2></header>
      <div class="body stack">
        <p class="soft">This job manager wants its token. It is in the file <code>token</code> of the job manager's folder, which only its user can open; beside it lies <code>read-token</code>, which allows looking only. On its machine this names the folder:</p>
        <${Copy} text="firesteel cluster status" />
        <label class="field"><span>Token</span>
          <input class="mono" type="password" autocomplete="current-password" autofocus required value=${token}
            onInput=${(event) => setToken(event.target.value)} /></label>
        <${Problem} error=${error} />
        <button class="primary" type="submit" disabled=${busy}>Open</button>
      </div>
    </form>`;
}

const list = [
  ["g then j", "jobs"], ["g then w", "workers"], ["g then s", "submit a program"], ["g then q", "SQL"], ["/", "filter or search"],
  ["1 … 9, 0", "tabs of a job"], ["t", "dark or light"], ["← ↑ → ↓ + − 0", "move and zoom a graph that has the focus"], ["?", "this list"],
];

export const Help = ({ onClose }) => html`
  <${Dialog} title="Keys" onClose=${onClose}>
    <dl class="facts">${list.map(([key, what]) => html`<dt key=${key}><kbd>${key}</kbd></dt><dd>${what}</dd>`)}</dl>
  <//>`;
