// Requests to the server. The token is in a cookie that scripts cannot read.
import { signal, useEffect, useState, useRef } from "./ui.js";

/** Whether the server wants a token: "unknown" until it has answered once. */
export const session = signal("unknown");
/** Whether it answered last time. */
export const connected = signal(true);

export class ApiError extends Error {
  constructor(message, status, answer = null) {
    super(message);
    this.status = status;
    /** All that the server said. */
    this.answer = answer;
  }
}

export async function call(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch {
    connected.value = false;
    throw new ApiError("The job manager does not answer.", 0);
  }
  connected.value = true;
  if (response.status === 401) {
    session.value = "needed";
    throw new ApiError("A token is needed.", 401);
  }
  if (session.value !== "open") session.value = "open";
  const text = await response.text();
  let answer = null;
  try { answer = text ? JSON.parse(text) : null; } catch { /* told below */ }
  if (!response.ok) {
    const said = answer?.errors?.filter(Boolean) ?? [];
    if (response.status === 403 && !said.length) said.push("This token may look at jobs, but not change anything.");
    throw new ApiError(String(said[0] ?? `The server answered ${response.status} ${response.statusText}`).split("\n")[0], response.status, answer);
  }
  return answer;
}

export const get = (path) => call(path);
export const send = (method, path, body) =>
  call(path, { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body ?? {}) });

export const own = (job, rest = "") => `firesteel/v1/jobs/${encodeURIComponent(job)}${rest}`;

/** Starts something that takes time, waits for it, returns its operation. */
export async function trigger(path, body) {
  const { "request-id": id } = await send("POST", path, body);
  const place = path.replace(/\/stop$/, "/savepoints");
  for (;;) {
    const answer = await get(`${place}/${id}`);
    if (answer.status.id === "COMPLETED") {
      const cause = answer.operation?.["failure-cause"];
      if (cause) throw new ApiError(cause["stack-trace"]?.split("\n")[0] ?? cause.class, 0);
      return answer.operation ?? {};
    }
    await new Promise((done) => setTimeout(done, 400));
  }
}

/** Asks again and again while it is shown and the page is visible; what it knew stays until something newer comes. */
export function usePolled(ask, deps, interval = 2000) {
  const [state, setState] = useState({ data: null, error: null, loading: true });
  const again = useRef(() => {});
  useEffect(() => {
    let over = false;
    let timer = null;
    const run = async () => {
      clearTimeout(timer);
      try {
        const data = await ask();
        if (!over) setState({ data, error: null, loading: false });
      } catch (error) {
        if (!over) setState((before) => ({ ...before, error, loading: false }));
      }
      if (!over && interval && !document.hidden) timer = setTimeout(run, interval);
    };
    const seen = () => { if (!document.hidden) run(); };
    again.current = run;
    setState({ data: null, error: null, loading: true });
    run();
    document.addEventListener("visibilitychange", seen);
    return () => {
      over = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, deps);
  return { ...state, refresh: () => again.current() };
}
