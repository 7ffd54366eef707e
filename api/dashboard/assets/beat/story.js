// The story of a slot, in words.
import { place } from '../api.js';
import { el } from '../dom.js';
import { nameTag, nameOf } from '../instances/name.js';
import { length, number, stamp } from '../time.js';
import { fates, order, wordOf } from './fates.js';

const whys = { outage: 'no instance was there', policy: 'its policy for missed slots', overlap: 'the run before it was still going' };

const whyOf = (item) => whys[item.why] ?? item.why ?? '';

// countsOf writes the counts of a sum, the gravest first.
export const countsOf = (counts) => order.filter((f) => counts[f]).map((f) => `${number(counts[f])} ${wordOf(f)}`).join(', ');

// brief is the story in one sentence.
export function brief(name, item) {
  if (item.sum) {
    return `${name}, ${stamp(item.at)} to ${stamp(item.until)}: ${countsOf(item.counts)}` + (item.lag === undefined ? '' : `; worst lag ${length(item.lag)}`);
  }
  const parts = [`${name}, slot ${stamp(item.at, { ms: item.at % 1000 !== 0 })}: ${wordOf(item.fate)}`];
  if (item.lag !== undefined) parts.push('lag ' + length(item.lag));
  if (item.attempt > 1) parts.push('attempt ' + item.attempt);
  if (item.release) parts.push(item.release);
  if (item.why) parts.push(whyOf(item));
  return parts.join(', ');
}

const row = (name, ...what) => (what.some((w) => w !== undefined && w !== '') ? el('div', {}, el('dt', {}, name), el('dd', {}, what.filter((w) => w !== undefined && w !== ''))) : null);
const at = (ms) => (ms === undefined ? undefined : el('time', { datetime: new Date(ms).toISOString() }, stamp(ms, { ms: true })));

const taskOf = (name, item) => place`/tasks/${name + '@' + item.at}`;
export const scheduleOf = (name) => place`/schedules/${name}`;

// story is the story as a list. In a sum, it can be looked into: closer(item) is called.
export function story(name, item, closer) {
  const kind = fates[item.fate]?.tone === 'bad' ? 'bad' : fates[item.fate]?.tone === 'odd' ? 'odd' : item.fate === 'late' ? 'slow' : item.fate === 'on_time' ? 'good' : '';
  const head = el('h2', {}, el('a', { href: scheduleOf(name) }, name), ' ', el('span', { class: 'badge', 'data-kind': kind }, item.sum ? `${number(item.count)} slots` : wordOf(item.fate)));
  if (item.sum) {
    return [head, el('dl', { class: 'facts' },
      row('From', at(item.at)), row('To', at(item.until)), row('Fates', countsOf(item.counts)), row('Worst lag', length(item.lag)),
      row('After more than one run', item.retried ? number(item.retried) : '')),
    el('p', { class: 'buttons' }, el('button', { type: 'button', onclick: () => closer(item) }, 'Look closer'))];
  }
  return [head, el('dl', { class: 'facts' },
    row('Slot', at(item.at)), row('Due', item.due !== item.at ? at(item.due) : ''), row('Began', at(item.began)), row('Lag', length(item.lag)),
    row('Attempt', item.attempt || ''), row('Instance', nameTag(item.instance)), row('Release', item.release || ''),
    row('Why', whyOf(item)), row('That is', item.fate === 'on_time' || item.fate === 'skipped' && item.why === 'overlap' ? '' : fates[item.fate]?.says),
    row('Task', el('a', { href: taskOf(name, item) }, name + '@' + item.at)))];
}

// table lists the slots of rows in a time, for those who read rather than look. It has at most `most` lines.
export function table(rows, scale, most = 500) {
  const lines = [];
  let found = 0;
  for (const { name, items } of rows) {
    for (const x of items ?? []) {
      if (x.at < scale.from || x.at > scale.end) continue;
      if (++found <= most) lines.push(line(name, x));
    }
  }
  const heads = ['Schedule', 'Slot', 'Fate', 'Began', 'Lag', 'Attempt', 'Instance', 'Release', 'Why'];
  return [
    el('p', { class: 'muted' }, found > most ? `The first ${number(most)} of ${number(found)} slots or sums of slots in this time, of the rows that are in view.` : `${number(found)} slots or sums of slots in this time, of the rows that are in view.`),
    el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Slots' }, el('table', {}, el('thead', {}, el('tr', {}, heads.map((h) => el('th', { scope: 'col' }, h)))), el('tbody', {}, lines))),
  ];
}

function line(name, x) {
  const cells = x.sum
    ? [`${stamp(x.at)} to ${stamp(x.until)}`, countsOf(x.counts), '', length(x.lag), '', '', '', '']
    : [el('a', { href: taskOf(name, x) }, stamp(x.at, { ms: true })), wordOf(x.fate), stamp(x.began, { ms: true }), length(x.lag), x.attempt || '', nameOf(x.instance), x.release ?? '', whyOf(x)];
  return el('tr', {}, el('th', { scope: 'row' }, el('a', { href: scheduleOf(name) }, name)), cells.map((c) => el('td', {}, c)));
}
