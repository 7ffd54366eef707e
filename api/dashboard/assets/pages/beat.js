import { onChange } from '../live.js';
import { params } from '../page.js';
import { $, $$, calm, el } from '../dom.js';
import { length, stamp } from '../time.js';
import { View } from '../view.js';
import { keys, mouse } from '../beat/hands.js';
import { legend } from '../beat/legend.js';
import { place } from '../beat/lines.js';
import { Picture } from '../beat/picture.js';
import { xOf } from '../beat/rows.js';
import { Scale, spans } from '../beat/scale.js';
import { Source } from '../beat/source.js';
import { brief, scheduleOf, story, table } from '../beat/story.js';

const source = new Source();
const spanOf = (text) => (Object.hasOwn(spans, text) ? spans[text] : Number(text) * 1000 || spans['5m']);
const scale = new Scale({ span: spanOf(params.get('zoom', '5m')), end: Date.parse(params.get('to')) || 0, now: () => source.now() });
const state = { source, scale };
const picture = new Picture(state);
const match = $('#match'), order = $('#order');
match.value = params.get('match');
order.value = params.get('order', 'name') === 'worst' ? 'worst' : 'name';
let wanted = params.get('slot'); // NAME@MS, until it is found
let asTable = params.get('view') === 'table';
let here; // the row that the arrow keys have come to, and where in it, while no slot of it is chosen

const view = new View($('#beat'), {
  load: (signal) => source.refresh({ scale, order: order.value, match: match.value, seen: () => picture.seen() }, signal),
  show,
  empty: 'No schedules yet. Make one, and its slots appear here.',
});
const ask = calm(() => view.refresh(), 150);

function show() {
  if (!source.complete) setTimeout(() => view.refresh());
  view.every = scale.follow ? [1000, 2000, 5000, 20_000][[60e3, 600e3, 6 * 3600e3, Infinity].findIndex((x) => scale.span <= x)] : 15_000;
  if (!source.all.length) return false;
  find();
  arrive();
  note();
  if (asTable) fillTable();
  picture.draw();
  return true;
}

// note says what the picture does not show.
function note() {
  const said = [];
  if (!source.rows.length) said.push('No schedule has a name like that.');
  if (order.value === 'worst' && !source.counted) said.push('This time has too many slots to find the worst: the order is by name. Zoom in.');
  if (source.unreadable) said.push(source.unreadable);
  const age = source.now() - source.upTo;
  if (scale.follow && age > 2 * view.every + 2000) said.push(`The picture ends at ${stamp(source.upTo)}: nothing newer has come for ${length(age)}.`);
  $('#note').textContent = said.join(' ');
  $('#note').hidden = !said.length;
}

setInterval(() => source.all && !document.hidden && note(), 1000);

// find chooses the slot that the address names, and the new self of one that was chosen.
function find() {
  const [name, at] = wanted ? [wanted.slice(0, wanted.lastIndexOf('@')), Number(wanted.slice(wanted.lastIndexOf('@') + 1))] : [state.chosen?.name, state.chosen?.item.at];
  if (!name) return;
  const items = source.lines.get(name)?.items;
  if (!items) return wanted && !source.rows.some((r) => r.name === name) ? (wanted = '') : seek(name);
  const item = items.find((x) => x.at === at) ?? items.find((x) => x.sum && x.at <= at && at < x.until);
  if (!item || item === state.chosen?.item) return;
  wanted = '';
  state.chosen = { name, item };
  tell();
}

// seek brings the row of a wanted slot into view.
function seek(name) {
  const i = source.rows.findIndex((r) => r.name === name);
  if (!wanted || i < 0) return;
  picture.reveal(i);
  ask();
}

// moved is called when the picture shows another time.
function moved() {
  picture.draw();
  ask();
  keep();
}

// keep writes the view into the address.
const keep = calm(() => params.set({
  zoom: Object.keys(spans).find((k) => spans[k] === scale.span) ?? (scale.span / 1000).toFixed(1),
  to: scale.follow ? '' : new Date(scale.end).toISOString(),
  match: match.value,
  order: order.value === 'name' ? '' : order.value,
  slot: state.chosen ? state.chosen.name + '@' + state.chosen.item.at : '',
  view: asTable ? 'table' : '',
}), 250);

state.moved = () => {
  for (const b of $$('[data-zoom]')) if (spans[b.dataset.zoom]) b.setAttribute('aria-pressed', spans[b.dataset.zoom] === scale.span);
  $('#follow').setAttribute('aria-pressed', scale.follow);
  const text = scale.follow ? `the last ${length(scale.span)}` : `${stamp(scale.from)} to ${stamp(scale.end)}`;
  if ($('#when').textContent !== text) $('#when').textContent = text;
};

function choose(hit) {
  wanted = '';
  here = undefined;
  state.chosen = hit && { name: hit.name, item: hit.item };
  tell();
  picture.draw();
  keep();
}

// arrive chooses the slot of the row that the arrow keys have come to, the nearest to where they were. A row that is not loaded yet waits
// for its slots; one without a slot in this time is said to have none, and the keys go on from there.
function arrive() {
  const items = source.lines.get(here?.name)?.items;
  if (!items) return;
  const { name, x } = here;
  const away = (s) => Math.abs(xOf(s, scale) - x);
  const item = items.filter((s) => s.at >= scale.from && s.at <= scale.end).reduce((a, b) => (a && away(a) <= away(b) ? a : b), undefined);
  if (item) return choose({ name, item });
  if (here.empty) return;
  choose();
  here = { name, x, empty: true };
  tell();
}

// tell shows the story of what is chosen, and says it to a screen reader.
function tell() {
  const c = state.chosen;
  const box = $('#story');
  if (here?.empty) {
    const text = `${here.name}: no slot in this time`;
    $('#said').textContent = text;
    return box.replaceChildren(el('p', { class: 'muted' }, text + '.'));
  }
  if (!c) return box.replaceChildren(el('p', { class: 'muted' }, 'Choose a slot to read its story: click on a mark, or focus the rows and press an arrow key.'));
  box.replaceChildren(...story(c.name, c.item, closer));
  $('#said').textContent = brief(c.name, c.item);
}

function closer(item) {
  scale.follow = false;
  const span = Math.max(2000, (item.until - item.at) * 4);
  scale.end = Math.min((item.at + item.until) / 2 + span / 2, source.now() + span * 0.06);
  scale.span = span;
  moved();
}

function hover(hit, e) {
  const tip = $('#tip');
  tip.hidden = !hit;
  const changed = hit?.item !== state.hovered?.item;
  state.hovered = hit;
  if (changed) picture.draw();
  if (!hit) return;
  tip.textContent = brief(hit.name, hit.item);
  const x = Math.min(e.clientX + 12, innerWidth - tip.offsetWidth - 8), y = e.clientY + 18;
  tip.style.transform = `translate(${Math.max(4, x)}px, ${y + tip.offsetHeight > innerHeight ? e.clientY - tip.offsetHeight - 10 : y}px)`;
}

mouse(picture, { moved, choose, hover });
keys(picture, {
  moved,
  step(by) {
    const name = here?.name ?? state.chosen?.name ?? source.rows[Math.ceil(picture.rows.scrollTop / picture.tall)]?.name;
    const items = source.lines.get(name)?.items ?? [];
    const i = state.chosen && !here ? items.indexOf(state.chosen.item) + by : place(items, scale.end) - 1;
    if (!items[i]) {
      if (state.chosen || !name) return;
      here = { name, x: here?.x ?? scale.width };
      return arrive();
    }
    scale.show(items[i].at);
    choose({ name, item: items[i] });
    ask();
  },
  row(by) {
    const i = source.rows.findIndex((r) => r.name === (here?.name ?? state.chosen?.name));
    const next = i < 0 ? Math.ceil(picture.rows.scrollTop / picture.tall) : i + by;
    if (!source.rows[next]) return;
    picture.reveal(next);
    here = { name: source.rows[next].name, x: here?.x ?? (state.chosen ? xOf(state.chosen.item, scale) : scale.width) };
    arrive();
    ask();
  },
  page(by) {
    picture.rows.scrollTop += by * picture.rows.clientHeight;
  },
  enter() {
    const c = state.chosen;
    if (c?.item.sum) closer(c.item);
    else $('#story a[href*="/tasks/"]')?.focus();
  },
  leave: () => choose(),
  follow,
});

function follow() {
  scale.follow = true;
  scale.tick();
  moved();
}

$('#follow').addEventListener('click', () => {
  if (!scale.follow) return follow();
  scale.follow = false;
  moved();
});
$('#zooms').addEventListener('click', (e) => {
  const to = e.target.dataset.zoom;
  if (!to) return;
  scale.zoom(spans[to] ?? scale.span * (to === 'in' ? 0.5 : 2));
  moved();
});
$('#filters').addEventListener('submit', (e) => e.preventDefault());
match.addEventListener('input', calm(() => {
  source.sort(order.value, match.value);
  picture.rows.scrollTop = 0;
  moved();
}));
order.addEventListener('change', () => {
  source.stale();
  picture.rows.scrollTop = 0;
  moved();
});
picture.rows.addEventListener('scroll', ask, { passive: true });

function fillTable() {
  const box = $('#table');
  if (box.contains(document.activeElement) && document.activeElement !== $('.scroll', box)) return; // a link there has the focus
  box.replaceChildren(...table(picture.seen().map((name) => ({ name, items: source.lines.get(name)?.items })), scale));
}
function setTable(on) {
  asTable = on;
  $('#as-table').setAttribute('aria-pressed', on);
  $('#table').hidden = !on;
  $('.frame').hidden = on;
  $('#story').hidden = on;
  if (on) fillTable();
  picture.draw();
  keep();
}
$('#as-table').addEventListener('click', () => setTable(!asTable));
if (asTable) setTable(true);

onChange(['leader', 'no leader', 'joined', 'left', 'lost', 'suspected', 'schedule paused', 'schedule resumed'], () => view.refresh(), 300);
onChange(['schedule made', 'schedule changed', 'schedule deleted', 'schedule restored', 'schedule retired'], () => {
  source.stale();
  view.refresh();
}, 500);
$('#marks').append(...legend());
document.addEventListener('theme', () => $('#marks').replaceChildren(...legend()));
document.addEventListener('zone', tell);
tell();
view.refresh();
