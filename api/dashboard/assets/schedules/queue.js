// The tasks of a schedule that run and wait, and the slots that come next, in one list.
import { get, query } from '../api.js';
import { $, clone, el, fill, keyed } from '../dom.js';
import { known, nameOf } from '../instances/name.js';
import { badgeOf, lastError, line, pathOf, whenOf } from '../tasks/words.js';
import { ago, number, stamp } from '../time.js';
import { dueWords } from './next.js';
import { momentBoth, thereOf } from './words.js';

const most = 20;
const ended = ['dead', 'done'];

// loadQueue asks for the first tasks of a schedule that run, wait or are due later.
export async function loadQueue(schedule, signal) {
  const page = await get('/tasks', { schedule, limit: most, brief: true }, { signal });
  const tasks = page.items.filter((t) => !ended.includes(t.state)); // those that have ended come last
  await known(tasks.map((t) => t.instance), signal);
  return { tasks, more: Boolean(page.next) && tasks.length === page.items.length };
}

// showQueue shows them, and the slots of which no task is made yet. dead is how many of its tasks are dead.
export function showQueue(root, { tasks, more }, { upcoming = [], dead = 0, dead_at_least: least }, zone, name) {
  const made = new Set(tasks.map((t) => t.slot && Date.parse(t.slot)));
  const coming = upcoming.filter((x) => !made.has(Date.parse(x.slot)) && Date.parse(x.slot) > Date.now() - 1000);
  const rows = [...tasks.map((t) => taskRow(t, zone)), ...coming.map((x) => slotRow(x, zone))];
  $('#stop')?.toggleAttribute('hidden', !tasks.some((t) => backfilled(t) && t.state !== 'running'));
  keyed($('tbody', root), rows, (r) => r.key, () => clone('next'), showRow);
  const running = tasks.filter((t) => t.state === 'running').length, rest = tasks.length - running;
  const or = more ? ' or more' : '';
  fill(root, {
    scope: [`Now ${number(running)}${rest ? '' : or} ${running === 1 ? 'runs' : 'run'} and ${number(rest)}${or} ${rest === 1 && !more ? 'waits, or is due later' : 'wait, or are due later'}. `,
      dead || least ? el('a', { href: '/dead' + query({ schedule: name }) }, `${number(dead)}${least ? ' or more' : ''} ${dead === 1 && !least ? 'is' : 'are'} dead`) : 'None is dead', '. ',
      more ? el('a', { href: '/tasks' + query({ schedule: name }) }, 'Show them all') : ''],
  });
  return rows.length > 0 || dead > 0;
}

const backfilled = (t) => t.id.endsWith('+backfill');

// taskRow names a task by its slot, as the rows of the slots that come, or else by its ID.
function taskRow(t, zone) {
  const error = lastError(t);
  const ms = new Date(t.slot ?? 0).getMilliseconds() > 0;
  const backfill = backfilled(t) && 'backfilled';
  return {
    key: t.id, kind: badgeOf(t), state: t.state, href: pathOf(t.id), task: t.slot ? stamp(t.slot, { ms }) : line(t.id, 60), slot: '',
    of: [t.slot ? thereOf(t.slot, zone) : 'by hand', backfill].filter(Boolean).join(' · '),
    when: whenOf(t), there: t.instance ? 'on ' + nameOf(t.instance) : '', explain: '',
    cause: error ? `attempt ${error.attempt} failed ${ago(error.at)}: ${line(error.error)}` : '',
  };
}

function slotRow(x, zone) {
  return {
    key: x.slot, kind: '', state: 'comes', href: '', task: '', slot: momentBoth(x.slot, zone, { ms: new Date(x.slot).getMilliseconds() > 0 }), of: dueWords(x),
    when: ago(x.slot), there: '', explain: x.explain ?? '', cause: '',
  };
}

function showRow(row, r) {
  const link = $('[data-field=task]', row);
  link.hidden = !r.href;
  if (r.href) link.href = r.href;
  $('.badge', row).dataset.kind = r.kind;
  fill(row, r);
}
