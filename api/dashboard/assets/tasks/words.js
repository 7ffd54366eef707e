// Tasks in words.
import { place } from '../api.js';
import { el } from '../dom.js';
import { ago, length, stamp } from '../time.js';

const kinds = { running: 'odd', waiting: 'slow', dead: 'bad', done: 'good' };

// orders says how a list of tasks in a state is sorted.
export const orders = {
  '': 'running, then those that wait, retry or are planned, by due time, then dead and done',
  running: 'the longest running first',
  waiting: 'the longest due first',
  retrying: 'the earliest next attempt first',
  planned: 'the earliest due first',
  dead: 'those that died last first',
  done: 'those kept the longest first',
};

export const pathOf = (id) => place`/tasks/${id}`;
export const scheduleOf = (name) => place`/schedules/${name}`;

// plural writes a count with its noun.
export const plural = (n, noun = 'task') => Number(n).toLocaleString('en-US') + ' ' + noun + (n === 1 ? '' : 's');

export const badgeOf = (t) => (t.overdue ? 'bad' : stopOf(t) ? '' : kinds[t.state] ?? '');

// stops are the errors of a run that was stopped. Attempts do not tell: a task that was retried by hand counts them anew.
const stops = ['the task was cancelled', 'a newer slot replaced the task'];

// stopOf is why the last run of a finished task was stopped. One that ran well has none.
export function stopOf(t) {
  const last = t.failures?.at(-1);
  return t.state === 'done' && last?.attempt === t.attempts && stops.includes(last.error) ? last : undefined;
}

// whenOf says what the time of a task means, which depends on its state.
export function whenOf(t) {
  if (t.held) return 'waits for its key';
  const at = new Date(t.at);
  switch (t.state) {
    case 'waiting':
      return `since ${stamp(at)}, ${ago(at)}`;
    case 'retrying':
    case 'planned':
      return `${stamp(at)}, ${ago(at)}`;
    case 'running':
      return 'for ' + length(Math.max(0, Date.now() - at));
    case 'dead':
      return ago(at) + ', ' + stamp(at);
    case 'done':
      return 'kept until ' + stamp(at);
  }
  return t.at ? 'noted ' + ago(at) : '';
}

export const attemptsOf = (t) => (t.unreadable || !t.max_attempts ? '' : `${Math.max(t.attempts, t.attempt ?? 0)} of ${t.max_attempts}`);

// lastError is the newest failure of a task that has not ended well.
export const lastError = (t) => (t.state === 'done' ? undefined : t.failures?.at(-1));

// line is the first line of an error, and not too long.
export function line(text, most = 240) {
  const first = String(text).trim().split('\n', 1)[0];
  return first.length > most ? first.slice(0, most) + '…' : first;
}

// moment is a time element. It shows a moment, and has the whole of it as its title.
export const moment = (at, options) => el('time', { datetime: new Date(at).toISOString(), title: stamp(at, { full: true, ms: true }) }, stamp(at, options));

// filterWords says what a filter matches: "dead tasks of type mail, in queue slow".
export function filterWords(filter, noun = 'tasks') {
  const state = filter.state === 'done' ? 'done, kept ' : filter.state ? filter.state + ' ' : '';
  const parts = [];
  if (filter.type) parts.push('of type ' + filter.type);
  if (filter.queue) parts.push('in queue ' + filter.queue);
  if (filter.backfill) parts.push('of a backfill');
  if (filter.schedule) parts.push('of schedule ' + filter.schedule);
  if (filter.key) parts.push('with key ' + filter.key);
  if (filter.error) parts.push('with the error “' + line(filter.error, 80) + '”');
  return state + noun + (parts.length ? ' ' + parts.join(', ') : '');
}
