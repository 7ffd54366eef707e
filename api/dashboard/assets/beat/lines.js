// The fates of the slots, by schedule, as the API tells them. A line has items, the oldest first: slots by themselves, or sums of many.
import { get, Problem } from '../api.js';
import { order } from './fates.js';

// slotOf reads a slot.
function slotOf(s) {
  const at = Date.parse(s.slot);
  const due = s.due ? Date.parse(s.due) : at;
  return { ...s, at, due, lag: s.lag_ms, began: s.lag_ms === undefined ? undefined : due + s.lag_ms, count: 1 };
}

// sumOf reads a sum. Its fate is the worst of its slots.
function sumOf(s, step) {
  const at = Date.parse(s.at);
  const count = Object.values(s.counts).reduce((a, b) => a + b, 0);
  return { sum: true, at, until: at + step, counts: s.counts, lag: s.lag_ms, attempt: s.retried ? 2 : 1, retried: s.retried ?? 0, count, fate: order.find((f) => s.counts[f]) };
}

// itemsOf reads the line of a schedule.
export function itemsOf(line, step) {
  return line.slots.length ? line.slots.map(slotOf) : (line.sums ?? []).map((s) => sumOf(s, step));
}

// ask gets the lines of schedules for a time. An answer that may be older does not tell the clock of Redis.
export async function ask({ from, to, step, names, signal, age }) {
  const iso = (ms) => new Date(ms).toISOString();
  const beat = await get('/beat', { from: iso(from), to: iso(to), step: step && step + 'ms', schedule: names, age }, { signal });
  return { ...beat, clock: age ? undefined : Date.parse(beat.now) - Date.now(), lines: new Map(beat.schedules.map((l) => [l.schedule, itemsOf(l, step)])) };
}

// tooMuch reports whether the API refused a time because it has too many slots.
export const tooMuch = (err) => err instanceof Problem && err.status === 400 && err.fields.some((f) => f.field === 'from' || f.field === 'step');

// tally counts the items of a line by fate, and finds the worst lag.
export function tally(items) {
  const sum = { counts: {}, lag: 0, retried: 0, count: 0 };
  for (const x of items) {
    for (const [fate, n] of x.sum ? Object.entries(x.counts) : [[x.fate, 1]]) sum.counts[fate] = (sum.counts[fate] ?? 0) + n;
    sum.lag = Math.max(sum.lag, x.lag ?? 0);
    sum.retried += x.sum ? x.retried : x.attempt > 1;
    sum.count += x.count;
  }
  return sum;
}

// worse compares two tallies: by the gravest fate, then by lag.
export function worse(a, b) {
  for (const fate of ['lost', 'duplicated', 'early', 'failed', 'missed', 'late']) {
    const by = (b.counts[fate] ?? 0) - (a.counts[fate] ?? 0);
    if (by) return by;
  }
  return b.retried - a.retried || b.lag - a.lag;
}

// place finds the first item at or after a moment.
export function place(items, at) {
  let low = 0, high = items.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (items[mid].at < at) low = mid + 1;
    else high = mid;
  }
  return low;
}

// splice puts newer items in place of those from a moment on.
export const splice = (items, from, newer) => [...items.slice(0, place(items, from)), ...newer];
