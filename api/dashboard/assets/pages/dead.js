import '../page.js';
import { get, query, shared } from '../api.js';
import { $, $$, clone, el, fill, keyed, may } from '../dom.js';
import * as live from '../live.js';
import { button, deeds, deedsForAll, renew } from '../tasks/act.js';
import { Bulks } from '../tasks/bulk.js';
import { filter, suggest, watch } from '../tasks/filters.js';
import { many } from '../tasks/many.js';
import { filterWords, pathOf, plural, scheduleOf } from '../tasks/words.js';
import { ago, number, stamp } from '../time.js';
import { View } from '../view.js';

let most = 5; // pages of up to 10,000 tasks

const keyOf = (g) => g.type + '\n' + g.error;

async function load(signal) {
  const asked = filter();
  const [{ groups, after, could_not_ask }, counts] = await Promise.all([read(asked, signal), get('/counts', shared, { signal })]);
  view.empty = Object.keys(asked).length ? `There are no ${filterWords({ state: 'dead', ...asked })} now.` : 'No task is dead. Every task has run well, will run, or runs now.';
  return { groups, after, counts, asked, could_not_ask: could_not_ask ?? counts.could_not_ask };
}

// read groups the dead tasks. A group that goes on on the next page is one.
async function read(asked, signal) {
  const groups = new Map();
  let after = '', could_not_ask;
  let pages = 0;
  do {
    const page = await get('/failures', { ...asked, after }, { signal });
    for (const g of page.items) {
      const sum = groups.get(keyOf(g));
      if (!sum) groups.set(keyOf(g), g);
      else Object.assign(sum, { tasks: sum.tasks + g.tasks, oldest: g.oldest, schedules: [...new Set([...(sum.schedules ?? []), ...(g.schedules ?? [])])], more_schedules: sum.more_schedules || g.more_schedules });
    }
    after = page.next ?? '';
    could_not_ask = page.could_not_ask ?? could_not_ask;
  } while (after && ++pages < most);
  view.every = pages ? 60_000 : 10_000;
  return { groups: [...groups.values()].sort((a, b) => b.tasks - a.tasks || (a.newest < b.newest ? 1 : -1)), after, could_not_ask };
}

function show({ groups, after, counts, asked }) {
  suggest([...counts.lanes, ...groups.map((g) => ({ type: g.type, queue: 'default' }))]);
  keyed($('#groups tbody'), groups, keyOf, () => clone('group'), showGroup);
  const sum = groups.reduce((n, g) => n + g.tasks, 0);
  const what = filterWords({ state: 'dead', ...asked });
  $('#scope').textContent = groups.length ? `${after ? 'The newest ' : 'All '}${number(sum)} ${what} now, in ${plural(groups.length, 'group')}${after ? `, of ${plural(counts.dead)} that are dead` : ''}.` : '';
  $('#groups [data-pager]').hidden = !after;
  fill($('#groups [data-pager]'), { shown: after ? 'The older ones are not counted here yet.' : '' });
  $('#bulk')?.toggleAttribute('hidden', !groups.length);
  for (const b of $$('#bulk button')) b.textContent = `${deeds[b.dataset.act].name} all${after ? '' : ' ' + number(sum)} …`;
  return groups.length > 0;
}

const filterOf = (g) => ({ ...filter(), type: g.type, error: g.error });

function showGroup(row, g) {
  const link = $('[data-field=type]', row);
  if (g.type) link.href = '/tasks' + query({ state: 'dead', ...filterOf(g) });
  link.setAttribute('aria-label', `${g.type}: ${g.error}`);
  fill(row, {
    tasks: number(g.tasks), type: g.type || 'Not readable here', error: g.error || 'no error was given',
    newest: ago(g.newest), span: [...new Set([stamp(g.oldest), stamp(g.newest)])].join(' to '),
  });
  const named = (g.schedules ?? []).join('\n') + g.more_schedules;
  if (row.named !== named) fill(row, { schedules: schedulesOf(g) });
  row.named = named;
  const grown = row.group && row.group.newest !== g.newest;
  const known = Boolean(row.group);
  row.group = g;
  if (grown && $('details', row).open) showTasks(row);
  if (known) return;
  $('details', row).hidden = !(g.type && g.error);
  $('summary', row).append(el('span', { class: 'unseen' }, ` of ${g.type}: ${g.error}`));
  $('details', row).addEventListener('toggle', () => $('details', row).open && showTasks(row));
  const acts = [el('a', { class: 'button', href: pathOf(g.last), 'aria-label': `Show the last of ${g.type}: ${g.error}` }, 'Show the last')];
  // Without an error there is nothing that a filter could ask for: it would match all of the type.
  if (g.type && g.error) acts.unshift(...deedsForAll('dead').map((d) => button(d, deeds[d].name + ' …', { 'aria-label': `${d} all of ${g.type}: ${g.error}` })));
  if (may('operator')) fill(row, { act: acts });
}

// schedulesOf names the schedules of a group.
function schedulesOf(g) {
  const links = (g.schedules ?? []).flatMap((name, i) => [i ? ', ' : '', el('a', { href: scheduleOf(name) }, name)]);
  return links.length ? [links.length > 2 ? 'of the schedules ' : 'of the schedule ', ...links, g.more_schedules ? ' and others' : ''] : '';
}

const fewTasks = 10;

// showTasks shows the tasks of a group that died last.
async function showTasks(row) {
  const list = $('details ul', row), asked = { state: 'dead', ...filterOf(row.group) };
  try {
    const { items, next } = await get('/tasks', { ...asked, limit: fewTasks, brief: true });
    const rest = next ? [el('li', {}, el('a', { href: '/tasks' + query(asked) }, 'All of them'))] : [];
    list.replaceChildren(...items.map((t) => el('li', {}, el('a', { class: 'mono', href: pathOf(t.id) }, t.id), ' ', el('span', { class: 'muted' }, ago(t.at)))), ...rest);
  } catch (err) {
    list.replaceChildren(el('li', { class: 'error' }, err.message));
  }
}

const view = new View($('#groups'), { load, show });
const look = () => view.refresh();
const bulks = new Bulks($('#bulks'), look);

$('#bulk')?.replaceChildren(...deedsForAll('dead').map((d) => button(d, { retry: 'Retry all …', delete: 'Delete all …' }[d])));
$('#bulk')?.addEventListener('click', async (e) => {
  const begun = e.target.dataset.act && (await many(e.target.dataset.act, { state: 'dead', ...filter() }));
  if (begun) bulks.follow(begun);
});
$('#groups tbody').addEventListener('click', async (e) => {
  const row = e.target.closest('tr');
  const begun = e.target.dataset.act && (await many(e.target.dataset.act, { state: 'dead', ...filterOf(row.group) }));
  if (begun) renew(view, row, bulks.follow(begun));
});
$('#groups [data-act=more]').addEventListener('click', () => {
  most += 20;
  look();
});
watch($('#filters'), look);
live.onChange(['tasks changed', 'task deleted', 'task retried by hand'], look);
look();
