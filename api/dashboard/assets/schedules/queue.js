// What of a schedule runs, waits and comes next, in one list.
import { get, query } from '../api.js';
import { $, clone, el, fill, keyed } from '../dom.js';
import { badgeOf, lastError, line, pathOf, whenOf } from '../tasks/words.js';
import { ago, number, stamp } from '../time.js';
import { dueWords } from './next.js';
import { momentBoth, thereOf } from './words.js';

const most = 20;

// loadQueue asks for the tasks of a schedule that run, wait, or are dead.
export async function loadQueue(schedule, signal) {
  const states = ['running', 'waiting', 'retrying', 'planned', 'dead'];
  const pages = await Promise.all(states.map((state) => some(schedule, state, signal)));
  const tasks = Object.fromEntries(states.map((state, i) => [state, pages[i]]));
  const parts = [tasks.waiting, tasks.retrying, tasks.planned];
  return { ...tasks, due: { items: parts.flatMap((p) => p.items), more: parts.some((p) => p.more) } };
}

// some reads the first tasks in a state. A page may be short although more follow, so it asks for a few.
async function some(schedule, state, signal) {
  const items = [];
  let after = '';
  for (let calls = 0; calls < 3; calls++) {
    const page = await get('/tasks', { state, schedule, limit: 1000, after }, { signal });
    items.push(...page.items);
    after = page.next ?? '';
    if (!after || items.length >= most) break;
  }
  return { items, more: after !== '' };
}

// showQueue shows them, and the slots of which no task is made yet.
export function showQueue(root, tasks, upcoming, zone, name) {
  const made = new Set(tasks.due.items.map((t) => t.slot && Date.parse(t.slot)));
  const rows = [
    ...tasks.running.items.slice(0, most).map((t) => taskRow(t, zone)),
    ...tasks.due.items.slice(0, most).map((t) => taskRow(t, zone)),
    ...upcoming.filter((x) => !made.has(Date.parse(x.slot))).map((x) => slotRow(x, zone)),
  ];
  keyed($('tbody', root), rows, (r) => r.key, () => clone('next'), showRow);
  const count = (state, one, many) => {
    const { items, more } = tasks[state];
    return number(items.length) + (more ? ' or more ' : ' ') + (items.length === 1 && !more ? one : many);
  };
  const dead = tasks.dead.items.length || tasks.dead.more;
  fill(root, {
    scope: [`Now ${count('running', 'runs', 'run')} and ${count('due', 'waits, or is due later', 'wait, or are due later')}. `,
      dead ? el('a', { href: '/dead' + query({ schedule: name }) }, count('dead', 'is dead', 'are dead')) : 'None is dead', '. ',
      tasks.due.items.length > most ? el('a', { href: '/tasks' + query({ schedule: name }) }, 'Show them all') : ''],
  });
  return rows.length > 0 || dead;
}

// taskRow names a task by its slot, as the rows of the slots that come, or else by its ID.
function taskRow(t, zone) {
  const error = lastError(t);
  const ms = new Date(t.slot ?? 0).getMilliseconds() > 0;
  const backfill = t.id.endsWith('+backfill') && 'backfilled';
  return {
    key: t.id, kind: badgeOf(t), state: t.state, href: pathOf(t.id), task: t.slot ? stamp(t.slot, { ms }) : line(t.id, 60), slot: '',
    of: [t.slot ? thereOf(t.slot, zone) : 'by hand', backfill].filter(Boolean).join(' · '),
    when: whenOf(t), there: t.instance ? 'on ' + t.instance : '', explain: '',
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
