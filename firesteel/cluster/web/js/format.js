// Numbers with units and separators, times in the reader's zone.
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const hours = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const full = new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "long" });

export const count = (value) => (value == null ? "–" : whole.format(value));

export const rate = (value) => value == null ? "–" : value >= 100 || value === 0 ? whole.format(value) : tenth.format(value);

export const percent = (share) => (share == null ? "–" : `${whole.format(share * 100)}%`);

/** [number, unit] of bytes. */
export function bytesParts(value) {
  if (value == null) return ["–", ""];
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let step = 0;
  while (value >= 1024 && step < units.length - 1) { value /= 1024; step += 1; }
  return [step && value < 100 ? tenth.format(value) : whole.format(value), units[step]];
}
export const bytes = (value) => (value == null ? "–" : bytesParts(value).join(" "));

/** A span of time. */
export function duration(milliseconds) {
  if (milliseconds == null) return "–";
  if (milliseconds < 1000) return `${whole.format(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds < 10 ? tenth.format(seconds) : whole.format(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const h = Math.floor(minutes / 60);
  return h < 48 ? `${h} h ${minutes % 60} min` : `${whole.format(Math.floor(h / 24))} d ${h % 24} h`;
}

const sameDay = (a, b) => a.toDateString() === b.toDateString();

export const clock = (at) => hours.format(new Date(at));
export const time = (at) => {
  const date = new Date(at);
  return sameDay(date, new Date()) ? hours.format(date) : `${day.format(date)}, ${hours.format(date)}`;
};
export const fullTime = (at) => full.format(new Date(at));

/** Event time: none yet, its end, or a moment. */
export function watermark(value) {
  if (value == null || value <= -9e18) return "none yet";
  if (value >= 9e18) return "end of input";
  // The calendar of browsers ends before event time does.
  return Math.abs(value) > 8.64e15 ? count(value) : time(value);
}
export const hasTime = (value) => value != null && value > -9e18 && value < 9e18 && Math.abs(value) <= 8.64e15;

const words = {
  CREATED: "Created", INITIALIZING: "Starting", RUNNING: "Running", FAILING: "Failing", FAILED: "Failed", CANCELLING: "Cancelling",
  CANCELED: "Cancelled", FINISHED: "Finished", RESTARTING: "Restarting", SUSPENDED: "Suspended", RECONCILING: "Reconciling", QUEUED: "Queued",
};
export const status = (name) => words[name] || name;
export const isOver = (name) => ["FAILED", "CANCELED", "FINISHED", "SUSPENDED"].includes(name);
