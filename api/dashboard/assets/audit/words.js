// The verdict of an audit in words, as the onbeat command says it.
import { number, stamp } from '../time.js';
import { plural } from '../tasks/words.js';

const slots = (n, one = '', many = '') => `${plural(n, 'slot')} ${n === 1 ? one : many}`.trim();

// brokenOf counts the slots that broke a promise.
export const brokenOf = (r) => r.lost + r.duplicated + r.early + r.off_grid;
const failing = (r) => r.failed > 0 && r.on_time + r.late === 0;

// rank is how bad a report is: 0 is well.
export const rank = (r) => (r.broken ? 5 : r.unattended ? 4 : failing(r) ? 3 : r.failed || r.possibly_repeated ? 2 : r.missed || r.overdue ? 1 : 0);
export const badge = (r) => [['well', 'good'], [r.missed ? 'missed slots' : 'waits', 'slow'], ['failures', 'slow'], ['failing', 'bad'], ['nobody runs it', 'bad'], ['broken', 'bad']][rank(r)];
export const otherOf = (r) => r.skipped + r.paused + r.changed + r.cancelled + r.pending + r.unknown + r.lost + r.duplicated + r.early + r.off_grid;

const broken = [['lost', 'were lost: nothing accounts for them'], ['duplicated', 'ran twice for no reason'], ['early', 'began before they were due'], ['off_grid', 'ran for times that are no slots']];

// troubles says what is wrong with a schedule, the worst first.
export function troubles(r) {
  const list = broken.filter(([name]) => r[name]).map(([name, words]) => ({ tone: 'bad', text: `${slots(r[name])} ${words}` }));
  for (const b of r.breaks ?? []) list.push({ tone: 'bad', text: `${stamp(b.slot, { full: true, ms: true })}: ${b.verdict.replace('_', ' ')}${b.detail ? ', ' + b.detail : ''}`, detail: true });
  if (r.unattended) list.push({ tone: 'bad', text: slots(r.overdue, 'is overdue, and no instance runs it', 'are overdue, and no instance runs them') });
  else if (r.overdue) list.push({ tone: 'slow', text: slots(r.overdue, 'is overdue, and waits for an instance that takes it', 'are overdue, and wait for an instance that takes them') });
  if (failing(r)) list.push({ tone: 'bad', text: `no run succeeded: each of the ${number(r.failed)} that ended failed for good` });
  else if (r.failed) list.push({ tone: 'slow', text: `${slots(r.failed)} failed for good` });
  if (r.possibly_repeated) list.push({ tone: 'slow', text: `${slots(r.possibly_repeated)} may have run twice: Redis lost its writes when they were due` });
  if (r.missed) list.push({ tone: 'slow', text: slots(r.missed, 'was missed', 'were missed') + whyOf(r, 'missed') });
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
  if (count(failing)) said.push(`${plural(count(failing), 'schedule')} of which no run succeeded`);
  if (said.length) return ['bad', 'Not well: ' + said.join('; ') + '.'];
  const rest = count((r) => rank(r) > 0);
  if (!ok) return ['bad', 'Not all could be judged.'];
  return rest ? ['slow', `Each promise was kept. ${plural(rest, 'schedule')} had slots that failed, were missed, wait, or may have run twice.`] : ['good', 'All is well: each slot ran, or did not by its own rules.'];
}
