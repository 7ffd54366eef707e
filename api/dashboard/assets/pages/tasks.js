import { params } from '../page.js';
import { get, shared } from '../api.js';
import { $, $$, clone, el, fill, keyed } from '../dom.js';
import * as live from '../live.js';
import { button, deeds, deedsFor, deedsForAll, one, renew, several } from '../tasks/act.js';
import { Bulks } from '../tasks/bulk.js';
import { filter, suggest, watch } from '../tasks/filters.js';
import { many } from '../tasks/many.js';
import { attemptsOf, badgeOf, filterWords, lastError, line, orders, pathOf, plural, whenOf } from '../tasks/words.js';
import { ago, number, stamp } from '../time.js';
import { View } from '../view.js';

const pageSize = 50;
const mostCalls = 10; // of one refresh
let want = pageSize;

const states = ['running', 'waiting', 'retrying', 'planned', 'dead', 'done'];
const state = () => (states.includes(params.get('state')) ? params.get('state') : '');

async function load(signal) {
  const asked = { state: state(), ...filter() };
  const [{ items, after, could_not_ask }, counts] = await Promise.all([read(asked, signal), get('/counts', shared, { signal })]);
  view.empty = after ? 'None among the first tasks. Look further, or filter by type or queue.' : `There are no ${filterWords(asked)} now.`;
  return { items, after, counts, asked, could_not_ask: could_not_ask ?? counts.could_not_ask };
}

// read reads as many tasks as are wanted. A filter may leave pages almost empty: then it asks for more of them, but not without end.
async function read(asked, signal) {
  const items = [];
  let after = '', could_not_ask;
  let calls = 0;
  do {
    const page = await get('/tasks', { ...asked, limit: Math.min(1000, want - items.length), after, brief: true }, { signal });
    items.push(...page.items);
    after = page.next ?? '';
    could_not_ask = page.could_not_ask ?? could_not_ask;
    calls++;
  } while (after && items.length < want && calls < mostCalls);
  view.every = calls > 1 ? 30_000 : 7000; // many calls are work for the server
  return { items, after, could_not_ask };
}

function show({ items, after, counts, asked }) {
  showCounts(counts);
  keyed($('#list tbody'), items, (t) => t.id, () => clone('task'), showTask);
  const what = filterWords(asked);
  $('#scope').textContent = items.length ? `${after ? 'The first ' + number(items.length) : 'All ' + number(items.length)} ${what} now: ${orders[asked.state]}.` : '';
  const pager = $('#list [data-pager]');
  pager.hidden = !after;
  fill(pager, { shown: after ? `${plural(items.length)} shown; there may be more.` : '' });
  showChosen();
  return items.length > 0 || after !== '';
}

// showChosen offers what can be done to the tasks that are chosen, or else to all.
const chosen = () => $$('#list tbody tr').filter((row) => $('.pick', row)?.checked);
function showChosen() {
  const rows = chosen();
  const may = Object.keys(deeds).filter((d) => rows.some((r) => deedsFor(r.task.state).includes(d)));
  $('#bulk')?.toggleAttribute('hidden', rows.length > 0 || !view.data?.items.length);
  $('#chosen')?.toggleAttribute('hidden', !rows.length);
  $('#chosen')?.replaceChildren(`${number(rows.length)} chosen `, ...may.map((d) => button(d)), el('button', { type: 'button', class: 'quiet', 'data-act': 'none' }, 'Choose none'));
}

function showCounts(n) {
  fill($('#states'), { running: number(n.running), waiting: number(n.waiting), dead: number(n.dead), done: number(n.done) });
  $('#states [data-field=waiting]').dataset.kind = n.overdue ? 'bad' : '';
  const parts = [n.overdue && `${number(n.overdue)} for a worker, for longer than a minute`, n.held && `${number(n.held)} for their key`].filter(Boolean);
  $('#counted').textContent = 'Counts are of now, whatever the filters. ' + (parts.length ? `Of those that wait, ${parts.join(', and ')}. ` : '')
    + `Retrying and planned together: ${number(n.later)}; onbeat would have to read each to count them apart.`;
  suggest(n.lanes);
}

function showTask(row, t) {
  const error = lastError(t);
  const link = $('[data-field=id]', row);
  link.href = pathOf(t.id);
  const badge = $('[data-field=state]', row);
  badge.dataset.kind = badgeOf(t);
  fill(row, {
    id: t.id, type: t.type, state: t.state, when: whenOf(t), of: ofWords(t), attempts: attemptsOf(t),
    queue: t.queue + (t.priority && t.priority !== 'normal' ? ', ' + t.priority : ''),
    cause: t.unreadable ? line(t.unreadable) : error ? `attempt ${error.attempt} failed ${ago(error.at)}: ${line(error.error)}` : '',
  });
  if (row.shown !== t.state) fill(row, { act: deedsFor(t.state).slice(0, 1).map((d) => button(d, undefined, { 'aria-label': `${d} ${t.id}` })) });
  row.shown = t.state;
  $('.pick', row)?.setAttribute('aria-label', 'Choose ' + t.id);
  row.task = t;
}

// ofWords says to what a task belongs.
function ofWords(t) {
  const words = [];
  if (t.schedule) words.push((t.slot ? `slot ${stamp(t.slot)} of ` : 'by hand, of ') + t.schedule);
  if (t.key) words.push('key ' + t.key);
  if (t.state === 'running' && t.instance) words.push('on ' + t.instance);
  return words.join(' · ');
}

const view = new View($('#list'), { load, show });
const bulks = new Bulks($('#bulks'), () => view.refresh());

// look reads anew what the address says.
function look() {
  want = pageSize;
  for (const a of $$('#states a')) {
    a.toggleAttribute('aria-current', a.dataset.stateOf === state());
    if (a.dataset.stateOf === state()) a.setAttribute('aria-current', 'true');
  }
  $('#bulk')?.replaceChildren(...deedsForAll(state()).map((d) => button(d, { cancel: 'Cancel all …', retry: 'Retry all …', delete: 'Delete all …' }[d])));
  view.refresh();
}

$('#states').addEventListener('click', (e) => {
  const a = e.target.closest('a');
  if (!a || e.ctrlKey || e.metaKey || e.shiftKey) return;
  e.preventDefault();
  params.set({ state: a.dataset.stateOf }, true);
  look();
});
$('#find').addEventListener('submit', (e) => {
  e.preventDefault();
  location.assign(pathOf(e.target.elements.id.value.trim()));
});
$('#bulk')?.addEventListener('click', async (e) => {
  const deed = e.target.dataset.act;
  const begun = deed && (await many(deed, { ...(state() && { state: state() }), ...filter() }));
  if (begun) bulks.follow(begun);
});
$('#chosen')?.addEventListener('click', async (e) => {
  const deed = e.target.dataset.act, rows = chosen();
  if (!deed || (deed !== 'none' && !(await several(deed, rows.map((r) => r.task))))) return;
  for (const row of rows) $('.pick', row).checked = false;
  showChosen();
  view.refresh();
});
$('#list tbody').addEventListener('change', showChosen);
$('#list tbody').addEventListener('click', async (e) => {
  const row = e.target.closest('tr');
  if (e.target.dataset.act && (await one(e.target.dataset.act, row.task))) renew(view, row);
});
$('#list [data-act=more]').addEventListener('click', () => {
  want += want < 500 ? pageSize * 2 : 500;
  view.refresh();
});
watch($('#filters'), look);
live.onChange(['tasks changed', 'task deleted', 'task cancel asked', 'task retried by hand'], () => view.refresh());
look();
