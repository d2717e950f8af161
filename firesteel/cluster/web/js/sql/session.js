// The page's SQL session: statements and their results, by the REST API of Flink's SQL gateway.
import { call, send } from "../api.js";
import { signal } from "../ui.js";
import { Changes } from "./changes.js";

const GATEWAY = "v3";
const OWN = "firesteel/v1/sql";
const BUSY = 100;
const QUIET = 500;
const HEARTBEAT = 60000;

const kept = {
  get: (key) => { try { return sessionStorage.getItem(key); } catch { return null; } },
  set: (key, value) => { try { if (value == null) sessionStorage.removeItem(key); else sessionStorage.setItem(key, value); } catch { /* then it lasts as long as the page */ } },
};

export const text = signal(kept.get("sql-text") ?? "");
export const setText = (value) => { text.value = value; kept.set("sql-text", value); };

/** The handle of the session, or null where there is none. */
export const handle = signal(kept.get("sql-session"));
export const mode = signal("STREAMING");
/** Why there is no session any more. */
export const lost = signal(null);
export const starting = signal(false);
/** The statements that were run last, each with what it gave. */
export const outputs = signal([]);

const setHandle = (value) => { handle.value = value; kept.set("sql-session", value); };
const place = (output) => `${GATEWAY}/sessions/${output.session}/operations/${output.handle}`;
const pause = (time) => new Promise((done) => setTimeout(done, time));
const shown = () => document.hidden
  ? new Promise((done) => document.addEventListener("visibilitychange", done, { once: true })) : null;
const draw = () => { outputs.value = [...outputs.value]; };

/** Whether an error says that the session is no more; then that is told. */
function isOver(error, session) {
  const over = error.status === 410 || (error.status === 404 && /SQL session/.test(error.message));
  if (over && handle.value === session) { setHandle(null); lost.value = error.message; }
  return over;
}

async function begun() {
  if (handle.value) return handle.value;
  starting.value = true;
  try {
    const properties = mode.value === "BATCH" ? { "execution.runtime-mode": "BATCH" } : {};
    const { sessionHandle } = await send("POST", `${GATEWAY}/sessions`, { sessionName: "page", properties });
    setHandle(sessionHandle);
    return sessionHandle;
  } finally {
    starting.value = false;
  }
}

/** Runs a script, after what ran before it has been ended. `at` is where in the editor it begins. */
export async function run(script, at = { line: 1, column: 1 }) {
  lost.value = null;
  const before = outputs.value;
  outputs.value = [];
  for (const output of before) { output.left = true; forget(output); }
  const session = await begun();
  let answer;
  try {
    answer = await send("POST", `${OWN}/sessions/${session}/scripts`, { script });
  } catch (error) {
    if (!isOver(error, session)) throw error;
    // Its tables are gone, and what is run may count on them: the reader decides.
    return;
  }
  outputs.value = answer.statements.map((one) => ({
    handle: one.operationHandle, session, statement: one.statement, at: absolute(at, one), state: "PENDING",
    columns: [], changes: new Changes(), query: false, job: null, error: null, mode: "table", page: 0, left: false,
  }));
  outputs.value.forEach(follow);
}

/** A place in a statement that begins at another one. */
export const absolute = (begin, { line, column }) => line > 1 ? { line: begin.line + line - 1, column } : { line: begin.line, column: begin.column + column - 1 };

const fetched = (output, token) => call(`${place(output)}/result/${token}?rowFormat=PLAIN_TEXT&place=true`);

async function follow(output) {
  let token = 0;
  const over = () => output.left || output.state === "STOPPED";
  while (!over()) {
    let answer;
    try {
      answer = await fetched(output, token);
    } catch (error) {
      if (over()) return;
      if (error.status === 0 || error.status === 503) { await pause(2000); continue; }
      output.state = isOver(error, output.session) ? "LOST" : /not run/.test(error.message) ? "SKIPPED" : "FAILED";
      if (output.state === "FAILED") output.error = problem(error, output);
      draw();
      return;
    }
    // What was on its way when it was stopped comes too late.
    if (over()) return;
    if (answer.resultType === "NOT_READY") { await pause(BUSY); continue; }
    const rows = answer.results.data;
    output.columns = answer.results.columns;
    output.query = answer.isQueryResult;
    output.job = answer.jobID ?? null;
    rows.forEach((row) => output.changes.apply(row));
    if (answer.resultType === "EOS") { output.state = "FINISHED"; draw(); return; }
    output.state = "RUNNING";
    token += 1;
    if (rows.length || token === 1) draw();
    await shown();
    // As fast as pages are full, so that a query is not held up.
    await pause(rows.length >= 1000 ? 0 : rows.length ? BUSY : QUIET);
  }
}

function problem(error, output) {
  const told = error.answer?.error ?? {};
  return { message: told.message ?? error.message, length: told.length ?? 1, at: told.line ? absolute(output.at, told) : null };
}

export async function stop(output) {
  output.state = "STOPPED";
  draw();
  await send("POST", `${place(output)}/cancel`).catch((error) => { if (!isOver(error, output.session)) throw error; });
}

const forget = (output) => call(`${place(output)}/close`, { method: "DELETE" }).catch(() => {});

/** Ends the session; the next statement begins another one. */
export async function end() {
  const session = handle.value;
  outputs.value.forEach((output) => { output.left = true; });
  outputs.value = [];
  lost.value = null;
  setHandle(null);
  if (session) await call(`${GATEWAY}/sessions/${session}`, { method: "DELETE" }).catch((error) => { if (![404, 410].includes(error.status)) throw error; });
}

/** Before the token is given back. */
export async function leave() {
  await end().catch(() => {});
  setText("");
}

/** Keeps the session while its page is looked at. */
export function keepAlive() {
  const beat = async () => {
    const session = handle.value;
    if (!session || document.hidden) return;
    try { await send("POST", `${GATEWAY}/sessions/${session}/heartbeat`); } catch (error) { isOver(error, session); }
  };
  beat();
  const timer = setInterval(beat, HEARTBEAT);
  document.addEventListener("visibilitychange", beat);
  return () => { clearInterval(timer); document.removeEventListener("visibilitychange", beat); };
}

