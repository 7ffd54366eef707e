import { named } from '../page.js';
import { get, place, query, shared } from '../api.js';
import { $, clone, el, fill, may, replace } from '../dom.js';
import * as live from '../live.js';
import { button, deedsFor, one } from '../tasks/act.js';
import { deedKinds, lifeOf } from '../tasks/life.js';
import { attemptsOf, badgeOf, lastError, line, moment, scheduleOf, stopOf, whenOf } from '../tasks/words.js';
import { ago } from '../time.js';
import { known, nameTag, nameOf } from '../instances/name.js';
import { View } from '../view.js';

const id = named('/tasks/');
const root = $('#task');
const deedsRead = 300; // events
let shown = '';
let deeds; // the events of what was done to it by hand
$('#name').textContent = id;
document.title = id + ' · ' + document.title;

async function load(signal) {
  let t;
  try {
    t = await get(place`/tasks/${id}`, {}, { signal });
  } catch (err) {
    if (err.status !== 404) throw err;
    t = slotOf();
    view.every = 0;
    if (!t) return {};
  }
  const fate = t.schedule && t.slot ? await fateOf(t, signal) : undefined;
  t.now ??= t.state === 'ended' ? await get(place`/schedules/${t.schedule}`, {}, { signal }).catch(() => ({})) : undefined;
  const unhandled = t.state === 'waiting' && !t.held && (await lacksHandler(t.type, signal));
  deeds ??= await deedsOf(t, signal);
  await known([t.instance, fate?.instance, ...(t.failures ?? []).map((f) => f.instance), ...(t.runs ?? []).map((r) => r.instance)], signal);
  view.every = { running: 2000, waiting: 3000, retrying: 3000, planned: 3000, ended: 0, gone: 0 }[t.state] ?? 15_000;
  return { t, fate, unhandled };
}

// slotOf is a task that Redis has forgotten, and that was the slot of a schedule by its ID.
function slotOf() {
  const found = /^(.+)@(\d{1,15})$/.exec(id);
  return found && { id, schedule: found[1], slot: new Date(Number(found[2])).toISOString(), state: 'ended', attempts: 0 };
}

// fateOf is what became of a slot, if the beat knows it.
async function fateOf(t, signal) {
  try {
    const beat = await get('/beat', { schedule: t.schedule, from: t.slot, to: t.slot }, { signal });
    return beat.schedules[0]?.slots[0];
  } catch {
    return undefined; // the schedule has gone, or the slot is too old
  }
}

// deedsOf looks for what was done to a task by hand, among the newest events since it was made.
async function deedsOf(t, signal) {
  const from = Date.parse(t.created ?? t.slot) - 1000;
  if (!(from < Date.now())) return [];
  const { items } = await get('/events', { since: new Date(from).toISOString(), limit: deedsRead }, { signal });
  return items.filter((e) => deedKinds.includes(e.event) && e.fields.task === id);
}

// lacksHandler reports whether no instance runs tasks of a type.
async function lacksHandler(type, signal) {
  const { items } = await get('/instances', shared, { signal });
  return !items.some((i) => i.types?.includes(type));
}

function show({ t, fate, unhandled }) {
  if (!t) return false;
  const badge = $('[data-field=state]', root);
  badge.dataset.kind = badgeOf(t);
  fill(root, { state: t.state, lead: leadOf(t, fate) + (unhandled ? ` No instance that is here runs the type ${t.type}.` : '') });
  if (shown !== t.state) replace($('#act'), ...deedsFor(t.state).map((d) => button(d, undefined, d === 'retry' ? { class: 'primary' } : {})), ...copyOf(t));
  shown = t.state;
  root.task = t;
  const life = lifeOf(t, fate, deeds);
  const text = JSON.stringify([life, t]);
  if (text === root.text) return; // so that a selection of the viewer stays
  root.text = text;
  fill(root, { life: life.map(stepOf), facts: factsOf(t), payload: payloadOf(t), secret: secretWords(t) });
}

// copyOf is a link to the form for a task like this one.
const copyOf = (t) => (may('operator') && t.type && t.state !== 'gone' ? [el('a', { class: 'button', href: '/enqueue' + query({ like: t.id }) }, 'Enqueue one like it')] : []);

// leadOf says in a sentence how the task stands.
function leadOf(t, fate) {
  const error = lastError(t);
  switch (t.state) {
    case 'waiting':
      return (t.held ? 'It waits for its key.' : `It has been waiting for a worker ${whenOf(t)}.`) + (error ? ` Attempt ${error.attempt} failed: ${line(error.error)}` : '');
    case 'retrying':
    case 'planned':
      return `It is due ${whenOf(t)}.` + (error ? ` Attempt ${error.attempt} failed: ${line(error.error)}` : '');
    case 'running':
      return `It runs on ${nameOf(t.instance)} ${whenOf(t)}.`;
    case 'dead':
      return `It died ${ago(t.at)}` + (error ? ': ' + line(error.error) : '.');
    case 'done':
      return (stopOf(t) ? `Its last run was stopped: ${line(stopOf(t).error)}. ` : 'It has run well. ') + `It is ${whenOf(t)}.` + unkept(t);
    case 'gone':
      return `Redis has forgotten it. Its last run that the archive knows ended ${ago(t.at)}: ${t.runs?.at(-1)?.outcome ?? 'unknown'}.`;
    case 'ended':
      if (new Date(t.slot) > Date.now()) return `Its slot comes ${ago(t.slot)}. Its task is made shortly before.`;
      return 'Redis has forgotten this task, as it does when a slot has run. ' + (fate ? `Its slot was ${fate.fate.replaceAll('_', ' ')}${fate.why ? ': ' + fate.why : ''}.` : 'Nothing is known of its slot any more.') + unkept(t);
  }
  return t.unreadable ?? '';
}

// unkept says where the output of runs that went well would be.
const unkept = (t) => (t.runs?.length ? '' : ' What it printed is kept only by an archive.');

function stepOf(s) {
  const li = clone('step', {
    title: s.title, at: s.at ? [moment(s.at, { ms: true }), s.ahead || s.now ? ', ' + ago(s.at) : ''] : '',
    more: [s.wait, s.more, s.same && 'the same error'].filter(Boolean).join(' · '), error: s.error ?? s.output ?? '',
  });
  li.dataset.kind = s.kind ?? '';
  if (s.ahead) li.dataset.ahead = '';
  if (s.now) li.dataset.now = '';
  const pre = $('pre', li);
  pre.hidden = !(s.error || s.output) || s.same;
  if (!s.error && s.output) pre.className = '';
  return li;
}

function factsOf(t) {
  const rows = [
    ['Type', t.type], ['Schedule', t.schedule && el('a', { href: scheduleOf(t.schedule) }, t.schedule)], ['Slot', t.slot && moment(t.slot, { ms: true })],
    ['Queue', t.queue && el('a', { href: '/tasks?queue=' + encodeURIComponent(t.queue) }, t.queue)], ['Priority', t.priority], ['Attempts', attemptsOf(t)],
    ['Timeout', t.timeout], ['Key', t.key && el('a', { href: '/tasks?key=' + encodeURIComponent(t.key) }, t.key)], ['Instance', nameTag(t.instance)], ['Fence', t.fence && String(t.fence)],
    ['Enqueued', t.created && moment(t.created, { ms: true })], ['Due', t.due && moment(t.due, { ms: true })],
    ['Record', t.unreadable], ['Runs', t.runs_unread && 'unknown: ' + t.runs_unread],
  ];
  return rows.filter(([, value]) => value).map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value)));
}

function payloadOf(t) {
  if (t.encrypted) return el('p', { class: 'muted' }, t.encrypted);
  if (t.payload !== undefined) return el('pre', { tabindex: '0' }, JSON.stringify(t.payload, null, 2));
  if (t.now?.payload !== undefined) return [el('p', { class: 'muted' }, 'Forgotten with the task. Its schedule says now:'), el('pre', { tabindex: '0' }, JSON.stringify(t.now.payload, null, 2))];
  return t.payload_text ? el('pre', { tabindex: '0' }, t.payload_text) : el('p', { class: 'muted' }, t.state === 'ended' || t.state === 'gone' ? 'Forgotten with the task.' : 'It has none.');
}

function secretWords(t) {
  if (!t.secret?.length) return '';
  return `Secret: ${t.secret.join(', ')}. ` + (may('operator') ? 'A viewer sees *** there.' : 'To see it needs the role operator.');
}

const view = new View(root, { load, show, empty: 'There is no task with this ID. onbeat forgets a finished one, unless it was enqueued with an ID or with keep.' });
$('#act').addEventListener('click', async (e) => {
  if (e.target.dataset.act && (await one(e.target.dataset.act, root.task))) view.refresh();
});
live.on(deedKinds, (e) => {
  if (e.fields.task !== id) return;
  if (deeds && !deeds.some((x) => x.id === e.id)) deeds.push(e);
  view.refresh();
});
live.onChange(['tasks changed'], () => view.refresh());
view.refresh();
