import { params } from '../page.js';
import { get } from '../api.js';
import { matcher } from '../beat/source.js';
import { $, calm, clone, el, fill, keyed } from '../dom.js';
import { grouped, kinds, linked, sumOf, toneOf } from '../events/words.js';
import { momentAt, momentIn } from '../form.js';
import * as live from '../live.js';
import { moment, plural } from '../tasks/words.js';
import { number, zoneName } from '../time.js';
import { View } from '../view.js';

const sizes = [200, 1000, 4000, 10_000];
const most = sizes.at(-1);
const form = $('#find');
let size = 0; // which of the sizes
let pages = 1; // from a time on

// asked is what the address asks for. A time in it has its zone, so that a link means the same to each who opens it.
function asked() {
  const from = new Date(params.get('from'));
  return { kind: params.get('kind'), schedule: params.get('schedule'), from: params.get('from') && !Number.isNaN(+from) ? from.toISOString() : '' };
}

// load reads the newest events, or those from a time on.
async function load(signal) {
  const { from } = asked();
  if (!from) {
    const { items, could_not_ask } = await get('/events', { limit: sizes[size] }, { signal });
    return { items: items.reverse(), could_not_ask, more: items.length === sizes[size] && size < sizes.length - 1 };
  }
  const items = [];
  let after = '0', could_not_ask;
  for (let i = 0; i < pages && after; i++) {
    const page = await get('/events', { since: from, after, limit: 1000 }, { signal });
    items.push(...page.items);
    after = page.next;
    could_not_ask = page.could_not_ask ?? could_not_ask;
  }
  return { items, could_not_ask, more: Boolean(after) };
}

// about reports whether an event is about a schedule whose name matches.
const about = (e, match) => [e.fields.schedule, /^[^@!]+(?=[@!])/.exec(e.fields.task ?? '')?.[0]].some((name) => name && match(name));

function show({ items, more }) {
  const { kind, schedule, from } = asked();
  const match = matcher(schedule);
  const some = items.filter((e) => (!kind || e.event === kind) && (!schedule || about(e, match)));
  const rows = grouped(some.slice(0, most));
  keyed($('.log'), rows, (x) => (Array.isArray(x) ? `${oldest(x)} and others` : x.id), (x) => (Array.isArray(x) ? makeGroup(x) : make(x)), (li, x) => Array.isArray(x) && fillGroup(li, x));
  const all = from ? `${plural(items.length, 'event')} from that time on` : `the newest ${plural(items.length, 'event')}`;
  $('#scope').textContent = kind || schedule ? `${number(some.length)} of ${all}.` : `${all[0].toUpperCase() + all.slice(1)}, ${from ? 'the oldest first' : 'the newest first'}.`;
  const pager = $('#list [data-pager]');
  pager.hidden = !more;
  fill(pager, { shown: more ? 'There may be more.' : '' });
  view.empty = !items.length ? 'No event yet.' : more ? 'None of these. Look further.' : 'None like that.';
  return some.length > 0 || more;
}

const oldest = (list) => [list[0].id, list.at(-1).id].sort((a, b) => parseInt(a, 10) - parseInt(b, 10))[0];

function makeGroup(list) {
  const row = clone('events', { at: moment(list[0].at, { ms: true }), kind: list[0].event });
  $('.badge', row).dataset.kind = toneOf(list[0].event);
  $('details', row).addEventListener('toggle', () => fillGroup(row, row.events));
  return row;
}

// fillGroup shows the events of a group, if it is open.
function fillGroup(row, list) {
  row.events = list;
  fill(row, { text: sumOf(list) });
  if ($('details', row).open) keyed($('ol', row), list, (e) => e.id, make, () => {});
}

function make(e) {
  const row = clone('event', { at: moment(e.at, { ms: true }), kind: e.event, text: linked(e) });
  $('.badge', row).dataset.kind = toneOf(e.event);
  return row;
}

document.addEventListener('zone', () => {
  $('.log').replaceChildren(); // rows are made anew, with their times
  showFilters();
});
const view = new View($('#list'), { load, show });

// take shows an event that has just happened.
function take(e) {
  if (asked().from || !view.data || view.data.items.some((x) => x.id === e.id)) return;
  view.data.items.unshift(e);
  view.data.items.length = Math.min(view.data.items.length, most);
  draw();
}
const draw = calm(() => view.render(), 100);

function look() {
  size = 0;
  pages = 1;
  showFilters();
  view.refresh();
}

function showFilters() {
  const { kind, schedule, from } = asked();
  const values = { kind, schedule, from: momentIn(from) };
  for (const [name, value] of Object.entries(values)) form.elements[name].value = value;
  $('[data-zone]', form).textContent = zoneName();
}

const read = () => {
  const values = Object.fromEntries(new FormData(form));
  try {
    values.from &&= momentAt('from', values.from);
    form.elements.from.setCustomValidity('');
  } catch (err) { // it is not whole yet
    form.elements.from.setCustomValidity(err.message);
    return;
  }
  params.set(values);
  view.refresh();
};
form.addEventListener('input', calm(read, 300));
form.addEventListener('submit', (e) => {
  e.preventDefault();
  read();
});
form.addEventListener('reset', () => setTimeout(read));
$('#list [data-act=more]').addEventListener('click', () => {
  size = Math.min(size + 1, sizes.length - 1);
  pages++;
  view.refresh();
});
$('#kinds').append(...kinds.map((value) => el('option', { value })));
addEventListener('popstate', look);
live.on([], take);
look();
