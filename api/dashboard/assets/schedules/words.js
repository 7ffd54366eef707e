// Schedules in words.
import { place } from '../api.js';
import { el } from '../dom.js';
import { line, moment } from '../tasks/words.js';
import { ago, length, ms, stamp, zone } from '../time.js';
import { cronWords } from './cron.js';

export const pathOf = (name) => place`/schedules/${name}`;

// states are how a schedule may stand, with the tone of each, the worst first.
export const states = { failing: 'bad', stale: 'slow', behind: 'slow', on: 'good', paused: '', ended: '', retired: 'odd', deleted: '' };

export const stateWords = {
  failing: 'its last run failed for good', stale: 'it has not run well for over two of its intervals', behind: 'missed slots are still to run', on: 'it runs',
  paused: 'no slot runs until it is resumed', ended: 'no slot comes any more', retired: 'its release is not in force', deleted: 'it can be restored for 30 days',
};

// stateOf says how a schedule stands.
export function stateOf(s, now = Date.now()) {
  if (s.deleted) return 'deleted';
  if (s.retired) return 'retired';
  if (s.paused) return 'paused';
  if (s.latest?.failures > 0) return 'failing';
  if (s.behind > 0) return 'behind';
  if (!s.next) return 'ended';
  return isStale(s, now) ? 'stale' : 'on';
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

function isStale(s, now) {
  const gap = gapOf(s);
  const good = s.latest?.last_success;
  return Boolean(gap && good && now - Date.parse(good) > 2 * gap + 5000);
}

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

// freshness says what is known of successes.
export function freshness(latest) {
  if (!latest?.failures) return '';
  const times = latest.failures === 1 ? 'failed once' : `failed ${latest.failures} times in a row`;
  return times + (latest.last_success ? `; ran well ${ago(latest.last_success)}` : '; no success is known');
}

export const errorOf = (latest) => (latest?.failures && latest.run.error ? line(latest.run.error) : '');

// declaredBy says where a schedule comes from.
export const declaredBy = (s) => (s.origin === 'declared' ? 'declared' + (s.release ? ' by release ' + s.release : ' by a release') : 'made by hand');

// momentBoth shows a moment to the viewer, and beside it in the zone of the schedule.
export function momentBoth(at, timeZone, options) {
  const there = thereOf(at, timeZone);
  return [moment(at, options), there && el('span', { class: 'of' }, there)];
}

// sinceWords says when something was.
export const sinceWords = (at) => (at ? `${stamp(at)}, ${ago(at)}` : '');
