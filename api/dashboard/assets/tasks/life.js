// The life of a task: the steps that are known of it, the oldest first. A step has its time (at), a title, a kind for its mark, and
// perhaps words (more) and an error. One that has not come yet is ahead.
import { nameOf } from '../instances/name.js';
import { length, ms } from '../time.js';
import { stopOf } from './words.js';

const kinds = { done: 'good', failed: 'bad', dead: 'bad', lost: 'bad', cancelled: '', skipped: '', missed: 'bad' };

// lifeOf puts the steps together from the record of the task, its runs in the archive, the fate of its slot, if it has one, and the
// events of what was done to it by hand.
export function lifeOf(t, fate, deeds = [], now = Date.now()) {
  if (fate?.run && !t.runs?.length && t.state === 'ended') t = { ...t, runs: [fate.run] };
  const steps = [...birth(t, deeds, now), ...attempts(t), ...slotRun(t, fate), ...byHand(deeds), ...present(t, now)];
  steps.sort((a, b) => a.order - b.order || (a.at ?? Infinity) - (b.at ?? Infinity));
  return withWaits(withoutRepeats(steps));
}

const step = (order, at, title, kind, rest) => ({ order, at: at ? +new Date(at) : undefined, title, kind, ...rest });

const by = (deed) => (deed?.fields.by ? 'by ' + deed.fields.by : 'by hand');

function birth(t, deeds, now) {
  const steps = [];
  const trigger = deeds.find((e) => e.event === 'schedule triggered');
  if (t.created) steps.push(step(0, t.created, 'Enqueued', '', { more: t.schedule && !t.slot ? `${by(trigger)}, from the schedule ${t.schedule}` : '' }));
  else if (t.slot) steps.push(step(0, t.slot, new Date(t.slot) > now ? 'Its slot comes' : 'Its slot came', '', { more: 'of the schedule ' + t.schedule, ahead: new Date(t.slot) > now }));
  const first = t.attempts === 0 && t.state !== 'running';
  if (t.due && !first && t.created && +new Date(t.due) - +new Date(t.created) > 500) steps.push(step(1, t.due, 'Due', '', {}));
  return steps;
}

// attempts are those that have ended. The archive knows each of them; without it the task keeps its newest errors.
function attempts(t) {
  const steps = [];
  const archived = new Set();
  for (const r of t.runs ?? []) {
    archived.add(r.attempt);
    steps.push(...runSteps(r));
  }
  const failures = (t.failures ?? []).filter((f) => !archived.has(f.attempt));
  const oldest = failures[0]?.attempt;
  if (oldest > 1 && !archived.size) {
    steps.push(step(1, undefined, oldest === 2 ? 'Attempt 1' : `Attempts 1 to ${oldest - 1}`, 'bad', { more: 'failed too: a task keeps its newest 5 errors' }));
  }
  for (const f of failures) {
    const stopped = f === stopOf(t);
    steps.push(step(2, f.at, `Attempt ${f.attempt} ${stopped ? 'was stopped' : 'failed'}`, stopped ? '' : 'bad', { more: f.instance ? 'on ' + nameOf(f.instance) : '', error: f.error }));
  }
  return steps;
}

function runSteps(r) {
  const where = [r.instance && 'on ' + nameOf(r.instance), r.release && 'release ' + r.release].filter(Boolean).join(', ');
  const n = r.attempt ? 'Attempt ' + r.attempt : 'It';
  const steps = [];
  if (r.began) steps.push(step(2, r.began, `${n} began`, 'odd', { more: [where, r.lag && `${length(ms(r.lag))} after its slot`].filter(Boolean).join(', ') }));
  const took = r.took ? `after ${length(ms(r.took))}` : '';
  steps.push(step(2, r.ended, `${n} ended: ${r.outcome}`, kinds[r.outcome] ?? '', { more: [took, r.why].filter(Boolean).join(', '), error: r.error, output: r.output, run: true }));
  return steps;
}

// slotRun is what the beat knows of a slot whose runs no archive has.
function slotRun(t, fate) {
  if (!fate || t.runs?.length || fate.lag_ms === undefined) return [];
  const where = [fate.instance && 'on ' + nameOf(fate.instance), fate.release && 'release ' + fate.release].filter(Boolean).join(', ');
  return [step(1, +new Date(t.slot) + fate.lag_ms, 'First claimed', 'odd', { more: `${length(fate.lag_ms)} after it was due; attempt ${fate.attempt || 1} was ${where}` })];
}

const deedWords = { 'task cancel asked': 'Asked to stop', 'task retried by hand': 'Made due again', 'task deleted': 'Deleted' };
export const deedKinds = [...Object.keys(deedWords), 'schedule triggered'];

// byHand is what people did to it, one task at a time. A deed to many at once has no event for each.
const byHand = (deeds) => deeds.filter((e) => deedWords[e.event]).map((e) => step(2, e.at, deedWords[e.event], '', { more: by(e) }));

// present is where the task stands, and what comes next.
function present(t, now) {
  const n = Math.max(t.attempts ?? 0, t.attempt ?? 0);
  switch (t.state) {
    case 'running':
      return [step(3, t.at, `Attempt ${t.attempt || n + 1} of ${t.max_attempts} began`, 'odd', { more: `on ${nameOf(t.instance)}; it may take ${t.timeout}`, now: true })];
    case 'waiting':
    case 'retrying':
    case 'planned': {
      if (t.held) return [step(3, undefined, 'Waits for its key', 'slow', { more: `others with the key ${t.key} run`, now: true })];
      const late = t.state === 'waiting';
      const words = n ? `attempt ${n + 1} of ${t.max_attempts}` : 'its first attempt';
      return [step(3, t.at, late ? 'Due, and waits for a worker' : 'Will be due', late ? (t.overdue ? 'bad' : 'slow') : '', { more: words, now: late, ahead: !late })];
    }
    case 'dead':
      if (t.runs?.at(-1)?.outcome === 'dead') return []; // its last run says so
      return [step(3, t.at, 'Dead', 'bad', { more: n >= t.max_attempts ? `no attempt is left of ${t.max_attempts}` : `after ${n} of ${t.max_attempts} attempts: it was not to be tried again` })];
    case 'done':
      return [step(3, undefined, stopOf(t) ? 'Ended' : 'Done', stopOf(t) ? '' : 'good', {}), step(4, t.at, 'Will be forgotten', '', { ahead: true })];
    case 'gone':
      return [step(3, undefined, 'Forgotten by Redis', '', { more: 'the archive knows what is above' })];
  }
  return [];
}

// withoutRepeats marks an error that is the one of the attempt before.
function withoutRepeats(steps) {
  let last;
  for (const s of steps) {
    if (!s.error) continue;
    s.same = s.error === last;
    last = s.error;
  }
  return steps;
}

// withWaits says between two steps how long it was, if that was long enough to see.
function withWaits(steps) {
  for (let i = 1; i < steps.length; i++) {
    const wait = steps[i].at - steps[i - 1].at;
    if (wait >= 10 && !steps[i].run) steps[i].wait = length(wait) + ' later';
  }
  return steps;
}
