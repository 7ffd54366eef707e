import '../page.js';
import { get, shared } from '../api.js';
import { $, clone, el, fill, keyed, may, keepFocus } from '../dom.js';
import { termsOf } from '../events/terms.js';
import { learn, nameTag, nameOf } from '../instances/name.js';
import { onAll, onInstance, onRelease } from '../instances/act.js';
import * as live from '../live.js';
import { moment, plural } from '../tasks/words.js';
import { ago, length, number, stamp } from '../time.js';
import { View } from '../view.js';

const eventsRead = 2000;
let terms = [];

const badge = (text, kind) => el('span', { class: 'badge', 'data-kind': kind }, text);

function stateOf(x) {
  const list = [badge(x.probation_left_ms > 0 ? `on probation, ${length(x.probation_left_ms)} left` : x.state, x.state === 'ready' ? 'good' : 'slow')];
  if (x.leader) list.unshift(badge('leads', 'odd'));
  if (x.lease_left_ms <= 0) list.push(badge('lease ran out', 'bad'));
  if (x.suspected) list.push(badge('suspected', 'bad'));
  if (x.resigned) list.push(badge('resigned', 'slow'));
  if (x.standby) list.push(badge('standby', ''));
  return list.flatMap((b) => [b, ' ']);
}

function showInstance(row, x, now) {
  const acts = `${x.leader} ${x.state}`;
  row.named ??= nameTag(x.id, x.host);
  fill(row, {
    id: row.named, state: stateOf(x), running: number(x.running) + (x.concurrency ? ` of ${x.concurrency}` : ''),
    up: length(Date.parse(now) - Date.parse(x.started)), lease: x.lease_left_ms > 0 ? length(x.lease_left_ms) : 'ran out',
    of: `process ${x.pid}` + (x.queues?.length ? ` · queues ${x.queues.join(', ')}` : '') + (x.types?.length ? ` · handles ${x.types.join(', ')}` : ''),
  });
  if (may('admin') && row.acts !== acts) keepFocus(row, () => fill(row, { act: onInstance(x, again) }));
  row.acts = acts;
}

// byRelease groups the instances, which come the highest rank first.
function byRelease(items) {
  const groups = new Map();
  for (const x of items) {
    if (!groups.has(x.release)) groups.set(x.release, []);
    groups.get(x.release).push(x);
  }
  return [...groups].map(([release, list]) => ({ release, list }));
}

function show(list) {
  for (const x of list.items) learn(x.id, x.host);
  const groups = byRelease(list.items);
  const leader = list.items.find((x) => x.leader && x.lease_left_ms > 0);
  keepFocus($('.list'), () => showReleases(groups, leader, list.now));
  showLeader(list, leader);
  if ($('#all') && $('#all').dataset.on !== String(!!list.paused_until)) {
    $('#all').dataset.on = !!list.paused_until;
    keepFocus($('#all'), () => $('#all').replaceChildren(onAll(list, again)));
  }
  return list.items.length > 0;
}

function showReleases(groups, leader, now) {
  keyed($('.list'), groups, (g) => g.release, (g) => {
    const card = clone('release', { release: g.release ? 'Release ' + g.release : 'No release named' });
    if (may('admin') && g.release) fill(card, { act: onRelease(g.release, again) });
    return card;
  }, (card, g) => {
    const ready = g.list.filter((x) => x.state === 'ready' && x.lease_left_ms > 0).length;
    fill(card, { sum: `${number(ready)} of ${plural(g.list.length, 'instance')} ready${g.list.includes(leader) ? '; the leader is of it' : ''}` });
    keyed($('tbody', card), g.list, (x) => x.id, () => clone('instance'), (row, x) => showInstance(row, x, now));
    keepFocus(card, () => ($('[data-field=act]', card).hidden = groups[0] === g && g.list.includes(leader)));
  });
}

// showLeads says how many partitions each instance leads, of a namespace that is split.
function showLeads(list, leading) {
  const none = list.leaderless_partitions ?? [];
  fill($('#leader'), {
    leader: [
      none.length ? el('strong', { class: 'bad' }, `No instance leads partition ${none.join(', ')}. `) : null,
      leading.map((x) => `${nameOf(x.id, x.host)} leads ${plural(x.leads.length, 'partition')}`).join(', ') + '.',
    ].filter(Boolean),
    why: null,
    paused: list.paused_until ? `Paused until ${stamp(list.paused_until)} (${ago(list.paused_until)}): no instance begins a task. What runs goes on.` : null,
  });
}

function showLeader(list, leader) {
  const leading = list.items.filter((x) => x.leads);
  if (leading.length) return showLeads(list, leading);
  const term = leader && terms.find((t) => t.instance === leader.id && t.epoch === String(leader.epoch));
  const since = list.leaderless_since;
  fill($('#leader'), {
    leader: leader ? [el('strong', {}, nameOf(leader.id, leader.host)), ` leads${leader.release ? `, release ${leader.release}` : ''}` + (term ? `, since ${stamp(term.from)} (${ago(term.from)})` : '') + '.']
      : [el('strong', { class: 'bad' }, 'No instance leads' + (since ? ` since ${stamp(since)} (${ago(since)})` : '') + '.'), ' No slot is pushed until one does.'],
    why: term ? `Why: ${term.why}.` : null,
    paused: list.paused_until ? `Paused until ${stamp(list.paused_until)} (${ago(list.paused_until)}): no instance begins a task. What runs goes on.` : null,
  });
}

// ledWords says of which partitions a term is, in a namespace that is split.
const ledWords = ([first, ...more]) => (more.length ? plural(more.length + 1, 'partition') + ': ' : first ? `partition ${first}: ` : '');

function showTerms({ items: events }) {
  terms = termsOf(events);
  keyed($('#terms tbody'), terms.slice(0, 50), (t) => `${t.epoch} ${t.from} ${t.partitions[0]}`, () => clone('term'), (row, t) => {
    $('[data-field=for]', row).dataset.label = t.to ? 'for' : '';
    fill(row, {
      instance: row.named ??= nameTag(t.instance, t.host), release: t.release || '', from: moment(t.from, { ms: true }),
      for: t.to ? length(new Date(t.to) - new Date(t.from)) : 'leads now', why: ledWords(t.partitions) + t.why,
    });
  });
  $('#scope').textContent = `${terms.length > 50 ? 'The newest 50 terms' : plural(terms.length, 'term')} in the newest ${plural(events.length, 'event')}.`;
  if (view.data) showLeader(view.data, view.data.items.find((x) => x.leader && x.lease_left_ms > 0));
  return terms.length > 0;
}

const view = new View($('#releases'), {
  every: 3000, empty: 'No instance is registered. Start one with onbeat serve: until then nothing runs.',
  load: (signal) => get('/instances', shared, { signal }), show,
});
const past = new View($('#terms'), {
  empty: 'No term is among the newest events.',
  load: (signal) => get('/events', { limit: eventsRead }, { signal }), show: showTerms,
});
function again() {
  view.refresh();
  past.refresh();
}
live.onChange(['joined', 'ready', 'draining', 'asked to resign', 'asked to drain', 'left', 'lost', 'suspected', 'suspected wrongly', 'leader', 'no leader',
  'promoted', 'on probation', 'stood down', 'claims paused', 'claims resumed'], again);
again();
