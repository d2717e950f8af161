// What is told of operators, worked out of a job's metrics.
import * as format from "./format.js";

const sum = (list, of) => list.reduce((total, one) => total + (of(one) ?? 0), 0);
const average = (list, of) => (list.length ? sum(list, of) / list.length : 0);

export const lagOf = (watermark, now) => (format.hasTime(watermark) ? Math.max(0, now - watermark) : null);

/** Which part of the time a subtask worked; null where it has not been measured. */
export const busyOf = (subtask) => (subtask.per_second ? Math.min(1, subtask.per_second.busy_ms / 1000) : null);

const lowest = (marks) => {
  const known = marks.filter((mark) => mark != null);
  return known.length ? Math.min(...known) : null;
};

/** By operator: records, rates, watermark, lag, busy share of its busiest subtask. */
export function figuresOf(metrics, now, running) {
  const found = new Map();
  for (const operator of metrics?.operators ?? []) {
    const subtasks = operator.subtasks;
    const watermark = lowest(subtasks.map((one) => one.watermark));
    const busy = subtasks.length ? Math.max(...subtasks.map((one) => busyOf(one) ?? 0)) : null;
    found.set(String(operator.id), {
      operator,
      records: sum(subtasks, (one) => one.records_out),
      came: sum(subtasks, (one) => one.records_in),
      rate: running && subtasks[0]?.per_second ? sum(subtasks, (one) => (operator.kind === "sink" ? one.per_second.records_in : one.per_second.records_out)) : null,
      busy: running && subtasks[0]?.per_second ? busy : null,
      watermark,
      lag: running ? lagOf(watermark, now) : null,
      skew: skewOf(subtasks),
    });
  }
  return found;
}

/** How many times its fair share the subtask has that has most; null where there is one only, or nothing to share. */
export function skewOf(subtasks) {
  const mean = average(subtasks, workOf);
  return subtasks.length > 1 && mean > 0 ? Math.max(...subtasks.map(workOf)) / mean : null;
}

/** Records that a subtask had to do with. */
export const workOf = (subtask) => subtask.records_in || subtask.records_out || 0;
