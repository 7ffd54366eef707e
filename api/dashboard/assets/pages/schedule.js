import { named, params } from '../page.js';
import { all, get, place, query } from '../api.js';
import { tell } from '../ask.js';
import { strip } from '../beat/strip.js';
import { $, calm, el, fill, may, replace } from '../dom.js';
import * as live from '../live.js';
import { act, button, deedsFor } from '../schedules/act.js';
import { Editor } from '../schedules/editor.js';
import { historyView } from '../schedules/history.js';
import { loadQueue, showQueue } from '../schedules/queue.js';
import { runsView } from '../schedules/runs.js';
import * as words from '../schedules/words.js';
import { one as stop } from '../tasks/act.js';
import { many } from '../tasks/many.js';
import { moment, pathOf as taskPath } from '../tasks/words.js';
import { ago, number } from '../time.js';
import { View } from '../view.js';

const name = named('/schedules/');
const root = $('#schedule');
let present, editor, beat;
$('#name').textContent = name;
document.title = name + ' · ' + document.title;
$('#beat').href = '/beat' + query({ match: name });

// load reads the schedule. One that was deleted is among those that can be restored.
async function load(signal) {
  try {
    return await get(place`/schedules/${name}`, {}, { signal });
  } catch (err) {
    if (err.status !== 404) throw err;
    const deleted = await all('/schedules', { deleted: true });
    return deleted.items.find((s) => s.name === name) ?? null;
  }
}

const here = () => present && !present.deleted && !present.retired;

function show(s) {
  const first = !present;
  present = s;
  view.every = here() ? 5000 : 0; // the page does not ask again and again for a schedule that has gone
  if (!s) return false;
  const state = s.health;
  const badge = $('.head [data-field=state]', root);
  badge.dataset.kind = words.states[state];
  fill($('.head', root), { state });
  $('.lead', root).textContent = leadOf(s, state);
  showHolder(s);
  const deeds = deedsFor(s);
  if (root.deeds !== deeds.join()) replace($('#act'), ...deeds.map((d) => button(d)));
  root.deeds = deeds.join();
  const said = JSON.stringify(factsOf(s).map(([k, v]) => [k, v?.textContent ?? v])) + JSON.stringify(s.payload);
  if (root.said !== said) showDefinition(s); // so that a selection of the viewer stays
  root.said = said;
  for (const id of ['strip', 'ahead']) $('#' + id).hidden = !here();
  edit(params.get('edit') === 'true');
  if (first) showRest(); // it may come long after the page, when the first calls have failed
}

// showHolder shows the run that holds up the schedule, or that failed last, and lets it be stopped.
function showHolder(s) {
  const held = s.health + ' ' + (s.held_by ?? '');
  if (root.held === held) return;
  root.held = held;
  const runs = s.health !== 'failing'; // hung, or others wait for it or are skipped
  const link = s.held_by && el('a', { href: taskPath(s.held_by) }, runs ? 'Open the run' : 'Open the task that failed');
  replace($('#holder'), ...(link ? [link] : []), ...(link && runs && may('operator') ? [el('button', { type: 'button', onclick: async () => (await stop('cancel', { id: s.held_by, state: 'running' })) && look() }, 'Cancel it …')] : []));
}

// leadOf says in a sentence how the schedule stands.
function leadOf(s, state) {
  const cadence = words.cadence(s), zone = words.zoneOf(s);
  const parts = [words.capital(cadence) + (zone ? ' in ' + zone : '') + '.'];
  if (state === 'deleted') return `${parts[0]} It was deleted ${ago(s.deleted.at)}${s.deleted.by ? ' by ' + s.deleted.by : ''}, and can be restored for 30 days from then.`;
  if (state === 'retired') return `${parts[0]} Release ${s.retired.release} does not declare it: it was retired ${ago(s.retired.at)}, and goes on when its release is in force again.`;
  if (s.paused) parts.push(`It is paused${s.why ? ' ' + s.why : ''}. No slot runs until it is resumed.`);
  else if (s.next) parts.push(nextOf(s, zone));
  else parts.push('No slot comes any more.');
  if (s.behind) parts.push(`${number(s.behind)} missed slots are still to run.`);
  if (s.latest) parts.push(`Its last run: ${s.latest.run.outcome}, ${words.lastWords(s.latest)}.`);
  if (words.isBad(s)) parts.push(words.capital(words.whyOf(s)) + '.');
  else if (words.errorOf(s)) parts.push(`Its error: ${words.errorOf(s)}`);
  return parts.join(' ');
}

function nextOf(s, zone) {
  const next = words.nextWords(s), there = words.thereOf(s.next, zone);
  return next === 'every moment' ? 'It runs all the time.' : `Next at ${next}${there && ` (${there})`}.`;
}

function factsOf(s) {
  return [
    ['Task', el('a', { href: '/tasks' + query({ type: s.task }) }, s.task)],
    ['When', words.cadence(s)], ['Cron', s.cron], ['Time zone', words.zoneOf(s)], ['Clock changes', s.dst && Object.entries(s.dst).map((x) => x.join(': ')).join(', ')],
    ['Start', s.start], ['Until', s.until && moment(s.until, { full: true })], ['Slot zero', s.anchor && moment(s.anchor, { full: true, ms: true })],
    ['Slots so far', number(s.runs) + (s.max_runs ? ` of ${number(s.max_runs)}` : '')],
    ['Jitter', words.span(s.jitter)], ['Missed slots', s.missed], ['Catch up', words.span(s.catch_up)], ['Overlap', s.overlap],
    ['Queue', s.queue], ['Priority', s.priority], ['Attempts', s.max_attempts && String(s.max_attempts)], ['Timeout', words.span(s.timeout)],
    ['Backoff', [s.backoff, s.backoff_cap && 'up to ' + s.backoff_cap].filter(Boolean).join(', ')],
    ['Heartbeat', s.heartbeat && Object.keys(s.heartbeat).join(', ')],
    ['Origin', words.declaredBy(s)], ['Revision', String(s.revision || '')],
  ];
}

function showDefinition(s) {
  const secret = [...new Set([...(s.secret ?? []), ...(s.secret_of_type ?? [])])];
  fill(root, {
    facts: factsOf(s).filter(([, value]) => value).map(([key, value]) => el('div', {}, el('dt', {}, key), el('dd', {}, value))),
    payload: payloadOf(s),
    secret: secret.length ? `Secret: ${secret.join(', ')}. ` + (may('operator') ? 'A viewer sees *** there.' : 'To see it needs the role operator.') : '',
  });
}

function payloadOf(s) {
  if (s.encrypted || s.payload === undefined) return el('p', { class: 'muted' }, s.encrypted ?? 'It has none.');
  return el('pre', { tabindex: '0' }, JSON.stringify(s.payload, null, 2));
}

// edit shows the form in place of the schedule, or the schedule again.
function edit(on) {
  const place = $('#edit');
  on = Boolean(on && place && here());
  if (!place || place.hidden === !on) return;
  if (on && present.encrypted) return;
  place.hidden = !on;
  for (const e of shown()) e.hidden = on;
  $('#act').hidden = on;
  if (!on) return;
  editor ??= new Editor({ done: left, leave: async () => (await editor.mayLeave()) && left() });
  editor.show(present);
  $('#' + (present.cron ? 'cron' : 'every')).focus();
}

const shown = () => [$('.lead', root), $('.sides', root)];

function left() {
  params.set({ edit: '' });
  edit(false);
  look();
  $('[data-act=edit]')?.focus();
}

const view = new View(root, { load, show, empty: 'There is no schedule with this name, and none that could be restored.' });
const queue = new View($('#ahead'), {
  empty: 'Nothing runs or waits, and no slot comes.',
  load: (signal) => loadQueue(name, signal),
  show: (found, box) => showQueue(box, found, present ?? {}, present ? words.zoneOf(present) : '', name),
});
$('#stop')?.addEventListener('click', async () => {
  if (!(await many('cancel', { schedule: name, backfill: true }))) return;
  tell(['The server cancels what waits of the backfill: ', el('a', { href: '/tasks' + query({ schedule: name }) }, 'how far it is')]);
  queue.refresh();
});
const runs = runsView($('#runs'), name, () => (present ? words.zoneOf(present) : ''));
const revisions = historyView($('#history'), name, { present: () => present, changed: () => look() });

// showRest reads what belongs to the schedule.
function showRest() {
  [queue.every, runs.every] = here() ? [5000, 8000] : [0, 0];
  runs.refresh();
  revisions.refresh();
  if (!here()) return;
  queue.refresh();
  beat ??= strip($('#strip'), { schedule: name, span: words.spanOf(present), every: 10_000 });
}

// look reads all anew.
async function look() {
  const known = present;
  await view.refresh();
  if (known && present) showRest();
}

$('#act').addEventListener('click', async (e) => {
  const deed = e.target.dataset.act;
  if (deed === 'copy') return location.assign('/new-schedule' + query({ like: name }));
  if (deed === 'edit') {
    params.set({ edit: 'true' }, true);
    return edit(true);
  }
  if (deed && (await act(deed, present))) look();
});
addEventListener('popstate', async () => {
  const on = params.get('edit') === 'true';
  if (!on && editor?.unsaved.changed()) {
    params.set({ edit: 'true' }, true); // the form stays until it is clear that it may go
    if (!(await editor.mayLeave())) return;
    params.set({ edit: '' });
  }
  edit(on);
});
setInterval(() => present && !document.hidden && ($('.lead', root).textContent = leadOf(present, present.health)), 1000);
const kinds = ['made', 'changed', 'paused', 'resumed', 'deleted', 'reverted', 'restored', 'retired', 'triggered'].map((x) => 'schedule ' + x);
const again = calm(look, 300);
live.on([...kinds, 'backfill'], (e) => e.fields.schedule === name && again());
look();
