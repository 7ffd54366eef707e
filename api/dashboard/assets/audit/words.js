// The verdict of an audit in words, as the onbeat command says it.
import { stamp } from '../time.js';
import { plural } from '../tasks/words.js';

const slots = (n, one = '', many = '') => `${plural(n, 'slot')} ${n === 1 ? one : many}`.trim();

// brokenOf counts the slots that broke a promise.
export const brokenOf = (r) => r.lost + r.duplicated + r.early + r.off_grid;

// rank is how bad a report is: 0 is well.
export const rank = (r) => (r.broken ? 5 : r.unattended ? 4 : r.trouble ? 3 : r.failed || r.possibly_repeated ? 2 : r.overdue ? 1 : 0);
export const badge = (r) => [['well', 'good'], ['waits', 'slow'], ['failures', 'slow'], [r.trouble?.[0].kind, 'bad'], ['nobody runs it', 'bad'], ['broken', 'bad']][rank(r)];
export const otherOf = (r) => r.skipped + r.paused + r.changed + r.cancelled + r.pending + r.running + r.unknown + r.lost + r.duplicated + r.early + r.off_grid;

const broken = [['lost', 'were lost: nothing accounts for them'], ['duplicated', 'ran twice for no reason'], ['early', 'began before they were due'], ['off_grid', 'ran for times that are no slots']];

// troubles says what is wrong with a schedule, the worst first.
export function troubles(r) {
  const list = broken.filter(([name]) => r[name]).map(([name, words]) => ({ tone: 'bad', text: `${slots(r[name])} ${words}` }));
  for (const b of r.breaks ?? []) list.push({ tone: 'bad', text: `${stamp(b.slot, { full: true, ms: true })}: ${b.verdict.replace('_', ' ')}${b.detail ? ', ' + b.detail : ''}`, detail: true });
  for (const t of r.trouble ?? []) if (t.kind !== 'broken') list.push({ tone: 'bad', text: `${t.kind}: ${t.text}${t.kind === 'missed' ? whyOf(r, 'missed') : ''}` });
  if (r.overdue && !r.trouble?.some((t) => t.kind === 'overdue')) list.push({ tone: 'slow', text: slots(r.overdue, 'is due, and waits', 'are due, and wait') });
  for (const x of r.runs ?? []) list.push({ tone: 'slow', text: `the slot of ${stamp(x.slot)} runs since ${stamp(x.since)}` });
  if (r.failed) list.push({ tone: 'slow', text: `${slots(r.failed)} failed for good` });
  if (r.possibly_repeated) list.push({ tone: 'slow', text: `${slots(r.possibly_repeated)} may have run twice: Redis lost its writes when they were due` });
  return list;
}

function whyOf(r, word) {
  const list = Object.entries(r.why ?? {}).filter(([k]) => k.startsWith(word + ': ')).map(([k]) => k.slice(word.length + 2));
  return list.length ? ` (${list.join(', ')})` : '';
}

// verdict is the sentence about all schedules.
export function verdict({ ok, schedules }) {
  if (!schedules.length) return ['bad', 'There is nothing to audit: no schedule had a slot in that time.'];
  const count = (test) => schedules.filter(test).length;
  const said = [];
  const b = schedules.reduce((n, r) => n + brokenOf(r), 0);
  if (b) said.push(`${slots(b)} of ${plural(count((r) => r.broken), 'schedule')} broke a promise`);
  if (count((r) => r.unattended)) said.push(`${plural(count((r) => r.unattended), 'schedule')} with overdue slots and no instance`);
  const troubled = count((r) => rank(r) === 3);
  if (troubled) said.push(`${plural(troubled, 'schedule')} with other trouble`);
  if (said.length) return ['bad', 'Not well: ' + said.join('; ') + '.'];
  const rest = count((r) => rank(r) > 0);
  if (!ok) return ['bad', 'Not all could be judged.'];
  return rest ? ['slow', `Each promise was kept. ${plural(rest, 'schedule')} had slots that failed, wait, or may have run twice.`] : ['good', 'All is well: each slot ran, or did not by its own rules.'];
}
