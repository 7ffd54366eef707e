import { params } from '../page.js';
import { get } from '../api.js';
import { matcher } from '../beat/source.js';
import { strips } from '../beat/strip.js';
import { $, $$, calm, clone, el, fill, keyed } from '../dom.js';
import * as live from '../live.js';
import { act, button, deedsFor } from '../schedules/act.js';
import { Chosen } from '../schedules/chosen.js';
import * as words from '../schedules/words.js';
import { plural } from '../tasks/words.js';
import { number } from '../time.js';
import { View } from '../view.js';

const pageSize = 50;
let want = pageSize;
let whole = false; // all pages have been asked for once

const rank = Object.keys(words.states);
const gone = ['retired', 'deleted']; // no slot of these comes, and they have lists of their own
const tabs = rank.filter((t) => !gone.includes(t));
const state = () => (rank.includes(params.get('state')) ? params.get('state') : '');

// load asks for the first schedules alone at first, so that there is something to see before all are there.
async function load(signal) {
  const past = gone.find((x) => x === state()) ?? '';
  const items = [];
  let unreadable = '', could_not_ask, after = '';
  do {
    const page = await get('/schedules', { [past]: past && true, after, limit: items.length ? 5000 : 100 }, { signal });
    items.push(...page.items);
    unreadable = page.unreadable ?? unreadable;
    could_not_ask = page.could_not_ask ?? could_not_ask;
    after = page.next ?? '';
  } while (after && whole);
  view.every = items.length > 2000 ? 60_000 : 5000;
  if (after) setTimeout(() => view.refresh()); // the rest
  whole = true;
  return { items, unreadable, could_not_ask, past, more: after !== '' };
}

function show({ items, unreadable, past, more }) {
  const now = Date.now();
  showTabs(past ? [] : items, more);
  $('#unreadable').textContent = unreadable;
  $('#unreadable').hidden = !unreadable;
  suggest(items);
  matching = sorted(items.filter(matchesAll()), now);
  const shown = matching.slice(0, want);
  showRows(shown);
  chosen?.show();
  const scope = `${matching.length > want ? `The first ${number(want)} of` : 'All'} ${plural(matching.length, 'schedule')}${{ deleted: ' that can be restored', retired: ' that come back with their release' }[past] ?? ' now'}`;
  $('#scope').textContent = matching.length ? scope + (more ? ', and more are on their way.' : '.') : '';
  const pager = $('#list [data-pager]');
  pager.hidden = matching.length <= want;
  fill(pager, { shown: `${number(shown.length)} of ${number(matching.length)} shown.` });
  view.empty = items.length ? 'No schedule matches.' : past ? `No schedule was ${past} in the last 30 days.` : 'No schedules yet.';
  if (!past) setTimeout(draw); // when the rows have their places
  return matching.length > 0;
}

let matching = []; // the schedules that the filters leave

// matchesAll tests schedules by what the address asks for.
function matchesAll() {
  const match = matcher(params.get('match')), task = params.get('task'), origin = params.get('origin'), s = state();
  return (x) => (!s || x.health === s) && match(x.name) && (!task || x.task === task) && (!origin || x.origin === origin);
}

// sorted puts the worst first, as onbeat status does.
function sorted(list, now) {
  if (!params.get('order')) {
    const since = (s) => Date.parse(s.since ?? 0);
    return list.sort((a, b) => rank.indexOf(a.health) - rank.indexOf(b.health) || since(a) - since(b));
  }
  if (params.get('order') === 'next') return list.sort((a, b) => (words.nextOf(a, now) ?? Infinity) - (words.nextOf(b, now) ?? Infinity));
  return list;
}

function showTabs(all, more) {
  const counts = {};
  for (const s of all) counts[s.health] = (counts[s.health] ?? 0) + 1;
  const list = ['', ...tabs.filter((t) => counts[t] || t === state() || ['failing', 'paused'].includes(t)), ...gone];
  keyed($('#states'), list, (t) => t, (t) => el('a', { href: '/schedules' + (t && '?state=' + t), title: words.stateWords[t] ?? '' }), (a, t) => {
    const count = number(t ? counts[t] ?? 0 : all.length) + (more ? '+' : '');
    a.replaceChildren(el('span', {}, words.capital(t || 'all')), ...(gone.includes(t) || !all.length ? [] : [' ', el('b', {}, count)]));
    if (t === state()) a.setAttribute('aria-current', 'true');
    else a.removeAttribute('aria-current');
  });
  $('#counted').textContent = (state() ? `${words.capital(state())}: ${words.stateWords[state()]}. ` : '') + 'Counts are of now, whatever the filters.';
}

// suggest offers the types of tasks that schedules have.
function suggest(all) {
  const types = [...new Set(all.map((s) => s.task))].sort().slice(0, 200);
  keyed($('#types'), types, (t) => t, (t) => el('option', { value: t }), () => {});
}

// A list may have thousands of rows. They are in groups: those far from the view are neither laid out nor kept up to date.
const together = 20;
const table = $('#list table');
const near = new Set();
const nearRows = () => [...near].flatMap((group) => [...group.rows]);
const watch = new IntersectionObserver((list) => {
  for (const { target, isIntersecting } of list) {
    near[isIntersecting ? 'add' : 'delete'](target);
    if (isIntersecting) [...target.rows].forEach(write);
  }
  soon();
}, { rootMargin: '400px' });

function showRows(list) {
  const groups = Math.ceil(list.length / together);
  while (table.tBodies.length > groups) table.tBodies[groups].remove();
  while (table.tBodies.length < groups) {
    const group = table.createTBody();
    group.setAttribute('role', 'rowgroup');
    watch.observe(group);
  }
  for (const [i, group] of [...table.tBodies].entries()) {
    const some = list.slice(i * together, (i + 1) * together);
    keyed(group, some, (s) => s.name, () => clone('schedule'), showRow);
    group.style.setProperty('--rows', some.length);
  }
}

function showRow(row, s) {
  const first = !row.schedule;
  row.schedule = s;
  if (first || near.has(row.parentElement)) write(row);
}

function write(row) {
  const s = row.schedule;
  const link = $('[data-field=name]', row);
  link.href = words.pathOf(s.name);
  $('[data-field=state]', row).dataset.kind = words.states[s.health];
  $('[data-field=state]', row).title = words.stateWords[s.health];
  const zone = words.zoneOf(s);
  fill(row, {
    name: s.name, state: s.health, cadence: words.cadence(s) + (zone ? ', ' + zone : '') + ' · ' + s.task,
    by: words.declaredBy(s) + (s.retired ? ` · retired ${words.sinceWords(s.retired.at)}${s.retired.release ? ' by ' + s.retired.release : ''}` : s.deleted ? ` · deleted ${words.sinceWords(s.deleted.at)}${s.deleted.by ? ' by ' + s.deleted.by : ''}` : ''),
    there: words.thereOf(s.next, zone), behind: s.behind ? `${plural(s.behind, 'missed slot')} still to run` : '', error: words.errorOf(s), span: s.deleted || s.retired ? '' : words.spanWords(words.spanOf(s)),
  });
  const outcome = $('[data-field=outcome]', row);
  outcome.dataset.kind = words.kindOf(s.latest?.run.outcome);
  fill(row, { outcome: s.latest?.run.outcome ?? '' });
  outcome.hidden = !s.latest;
  const choose = $('[data-choose]', row);
  if (choose) {
    choose.checked = chosen.has(s.name);
    choose.hidden = s.deleted || s.retired;
    choose.setAttribute('aria-label', 'choose ' + s.name);
  }
  const deeds = deedsFor(s).filter((d) => ['trigger', 'pause', 'resume', 'restore'].includes(d));
  if (row.deeds !== deeds.join()) fill(row, { act: deeds.map((d) => button(d, { 'aria-label': `${d} ${s.name}` })) });
  row.deeds = deeds.join();
  tick(row);
}

// tick shows what changes by itself.
function tick(row) {
  fill(row, { next: words.nextWords(row.schedule) || '—', last: words.lastWords(row.schedule.latest) || 'no run is known', why: words.whyOf(row.schedule) });
}
setInterval(() => !document.hidden && nearRows().forEach(tick), 1000);

// draw draws the strips of the rows near the view, none more often than it is worth.
const often = 15_000;
let drawing;
async function draw() {
  const rows = nearRows().filter((r) => r.isConnected && !r.schedule.deleted && !r.schedule.retired && !(Date.now() - r.drawnAt < often));
  if (!rows.length) return;
  drawing?.abort();
  drawing = new AbortController();
  const { signal } = drawing;
  const at = Date.now();
  for (const [span, some] of Map.groupBy(rows, (r) => words.spanOf(r.schedule))) {
    try {
      await strips(some.map((r) => ({ name: r.dataset.key, canvas: $('canvas', r) })), { span, signal });
      for (const r of some) r.drawnAt = at;
    } catch (err) {
      if (signal.aborted) return;
      if (!('status' in err)) throw err; // else the next refresh tries again
    }
  }
}
const soon = calm(draw, 100);
function anew() {
  for (const row of $$('tbody tr', table)) row.drawnAt = 0;
  draw();
}
document.addEventListener('theme', anew);
addEventListener('resize', calm(anew));

// A row is roomy, or one line; the browser remembers which.
const compact = 'onbeat-compact';
function setRows(one) {
  document.body.classList.toggle('compact', one);
  $('#compact').setAttribute('aria-pressed', one);
  setTimeout(draw);
}
$('#compact').addEventListener('click', () => {
  const one = !document.body.classList.contains('compact');
  setRows(one);
  try {
    localStorage.setItem(compact, one ? 'yes' : '');
  } catch {} // a browser that keeps nothing
});
try {
  setRows(localStorage.getItem(compact) === 'yes');
} catch {}

const view = new View($('#list'), { load, show });

const bar = $('#chosen'); // of those who may do something
const chosen = bar && new Chosen(bar, { all: () => matching.filter((s) => !s.deleted && !s.retired), changed: () => view.refresh() });
if (chosen) chosen.onset = () => nearRows().forEach(write);
table.addEventListener('change', (e) => 'choose' in e.target.dataset && chosen.set([e.target.closest('tr').schedule.name], e.target.checked));

function look() {
  want = pageSize;
  view.refresh();
}

const form = $('#filters');
const names = ['match', 'task', 'origin', 'order'];
const showFilters = () => names.forEach((n) => (form.elements[n].value = params.get(n)));
form.addEventListener('input', calm(() => {
  params.set(Object.fromEntries(names.map((n) => [n, form.elements[n].value.trim()])));
  want = pageSize;
  if (view.data) view.render();
}, 150));
form.addEventListener('submit', (e) => e.preventDefault());
addEventListener('popstate', () => (showFilters(), look()));
$('#states').addEventListener('click', (e) => {
  const a = e.target.closest('a');
  if (!a || e.ctrlKey || e.metaKey || e.shiftKey) return;
  e.preventDefault();
  params.set({ state: a.dataset.key }, true);
  look();
});
table.addEventListener('click', async (e) => {
  const row = e.target.closest('tr'), deed = e.target.dataset.act;
  if (!deed || !(await act(deed, row.schedule))) return;
  await view.refresh();
  if (row.isConnected && !row.contains(document.activeElement)) ($('.acts button:last-child', row) ?? $('a', row)).focus();
});
$('#list [data-act=more]').addEventListener('click', () => {
  want += want < 500 ? pageSize * 2 : 500;
  view.render();
});
const kinds = ['made', 'changed', 'paused', 'resumed', 'deleted', 'reverted', 'restored', 'retired'];
live.onChange(kinds.map((x) => 'schedule ' + x), () => view.refresh());
showFilters();
look();
