// Schedules in words.
import { place } from '../api.js';
import { el } from '../dom.js';
import { line, moment, plural } from '../tasks/words.js';
import { ago, length, ms, stamp, zone } from '../time.js';
import { cronWords } from './cron.js';

export const pathOf = (name) => place`/schedules/${name}`;

// states are the healths of a schedule, as the API says them, with the tone of each, the worst first.
export const states = {
  unhandled: 'bad', hung: 'bad', failing: 'bad', overdue: 'bad', missed: 'bad', skipped: 'slow', stale: 'slow', paused: '', well: 'good', retired: 'odd', ended: '', deleted: '',
};

export const stateWords = {
  unhandled: 'no instance handles the type', hung: 'a run lasts longer than the time between two slots, and than usual', failing: 'the last run failed for good, or attempts fail again and again',
  overdue: 'a slot is due and does not run', missed: 'slots were missed, and no run has ended well since', skipped: 'slots are skipped again and again behind runs that go on',
  stale: 'no run has ended well for three intervals', paused: 'no slot runs until it is resumed', well: 'it runs', retired: 'the newest release does not declare it',
  ended: 'no slot comes any more', deleted: 'it can be restored for 30 days',
};

// isBad reports whether a schedule does not do what it says.
export const isBad = (s) => ['bad', 'slow'].includes(states[s.health]);

// whyOf says why a schedule is not well, since when, and when it last was.
export function whyOf(s, now = Date.now()) {
  if (!s.why) return '';
  const since = s.since ? `, for ${length(Math.max(0, now - Date.parse(s.since)))}` : '';
  const skipped = s.health === 'hung' || !s.skipped ? '' : `; ${plural(s.skipped, 'slot')} skipped`;
  return s.why + (isBad(s) ? since + skipped + (s.last_success ? `; it last ended well ${ago(s.last_success, now)}` : '') : '');
}

// gapOf is the time between two slots, in ms, if it is known.
export const gapOf = (s) => (s.every ? ms(s.every) : s.last && s.next ? Date.parse(s.next) - Date.parse(s.last) : undefined);

const hour = 3_600_000, day = 24 * hour;

// spanOf is how much of the past shows the last runs of a schedule: ten minutes, or as much as a slower one needs.
export function spanOf(s) {
  const gap = gapOf(s) ?? day;
  return [hour / 6, hour, day, 7 * day, 30 * day].find((span) => span >= 24 * gap) ?? 30 * day;
}

export const spanWords = (span) => ({ [hour]: 'the last hour', [day]: 'the last day' }[span] ?? 'the last ' + length(span).replace(' d', ' days'));

// cadence says when a schedule runs: "every 5m", "at 02:00 on Mon to Fri".
export const cadence = (s) => (s.cron ? cronWords(s.cron) : 'every ' + span(s.every));

export const capital = (text) => text[0].toUpperCase() + text.slice(1);

// span writes a duration of the API with spaces: 1h30m is 1 h 30 min.
export const span = (text) => String(text ?? '').replace(/(\d)([a-zµ]+)(?=(\d?))/g, (_, n, unit, more) => `${n} ${unit === 'm' ? 'min' : unit}${more ? ' ' : ''}`);

// zoneOf is the time zone in which a schedule means its times; one with an interval has none.
export const zoneOf = (s) => (s.cron ? s.timezone || 'UTC' : '');

// thereOf writes a moment in the zone of the schedule, if that differs from what the viewer sees.
export function thereOf(at, timeZone) {
  if (!at || !timeZone) return '';
  const options = { full: true };
  try {
    const there = stamp(at, { ...options, timeZone });
    return there === stamp(at, { ...options, timeZone: zone() }) ? '' : `${stamp(at, { timeZone })} in ${timeZone}`;
  } catch {
    return ''; // a zone that this browser does not know
  }
}

// nextOf is the next slot as far as is known now: of an interval it is computed.
export function nextOf(s, now = Date.now()) {
  if (!s.next) return undefined;
  const next = Date.parse(s.next), every = ms(s.every);
  return every && next < now ? next + Math.ceil((now - next) / every) * every : next;
}

const soon = 5000;

// nextWords says when the next slot comes. One that comes every moment is not counted down.
export function nextWords(s, now = Date.now()) {
  const next = nextOf(s, now);
  if (!next) return '';
  if (s.every && ms(s.every) < soon) return 'every moment';
  return `${stamp(next)}, ${ago(next, now)}`;
}

const outcomes = { done: 'good', failed: 'slow', dead: 'bad', lost: 'bad', missed: 'bad' };
export const kindOf = (outcome) => outcomes[outcome] ?? '';

// lastWords says how the last run went, and when it was.
export function lastWords(latest) {
  if (!latest) return '';
  const run = latest.run;
  return `${ago(run.ended || run.began)}` + (run.took ? `, took ${length(ms(run.took))}` : '');
}

// errorOf is the error of the last run, if the health does not say it.
export const errorOf = (s) => (s.health !== 'failing' && s.latest?.failures && s.latest.run.error ? line(s.latest.run.error) : '');

// declaredBy says where a schedule comes from.
export const declaredBy = (s) => (s.origin === 'declared' ? 'declared' + (s.release ? ' by release ' + s.release : ' by a release') : 'made by hand');

// momentBoth shows a moment to the viewer, and beside it in the zone of the schedule.
export function momentBoth(at, timeZone, options) {
  const there = thereOf(at, timeZone);
  return [moment(at, options), there && el('span', { class: 'of' }, there)];
}

// sinceWords says when something was.
export const sinceWords = (at) => (at ? `${stamp(at)}, ${ago(at)}` : '');
