// What needs attention, the worst first: from the instances, the counts and the summary.
import { query } from '../api.js';
import { line, pathOf, plural, scheduleOf } from '../tasks/words.js';
import { ago, length, number, stamp } from '../time.js';

const late = 10_000; // ms that a task waits before that is said

export const leaderOf = (list) => list.items.find((x) => x.leader && x.lease_left_ms > 0);

// handles reports whether an instance that may take tasks now handles those of a type in a queue. While none leads, it counts each.
function handles(list, lane) {
  const lead = leaderOf(list);
  return list.items.some((i) => {
    const may = !lead || i.id === lead.id || (i.state === 'ready' && (lead.consume === 'all' || (lead.consume === 'release' && i.order === lead.order)));
    return may && i.lease_left_ms > 0 && i.types?.includes(lane.type) && (!i.queues?.length || i.queues.includes(lane.queue));
  });
}

// An item has tone, text, href, and more: a sentence in small.
export function attention({ instances, counts, summary }) {
  return [...ofInstances(instances), ...ofProduction(instances, summary), ...ofTasks(instances, counts), ...ofSchedules(summary)].sort((a, b) => (a.tone === 'bad' ? 0 : 1) - (b.tone === 'bad' ? 0 : 1));
}

function ofInstances(list) {
  const items = [], href = '/instances';
  const since = list.leaderless_since;
  if (!list.items.length) items.push({ key: 'none', tone: 'bad', href, text: 'No instance is registered', more: 'Nothing runs. Start one with onbeat serve.' });
  else if (!leaderOf(list)) items.push({ key: 'leader', tone: 'bad', href, text: 'No instance leads' + (since ? ` since ${stamp(since)}` : ''), more: 'No slot is pushed until one does.' });
  if (list.paused_until) items.push({ key: 'paused', tone: 'slow', href, text: `Instances are paused until ${stamp(list.paused_until)}`, more: 'None begins a task.' });
  for (const x of list.items) {
    if (x.lease_left_ms <= 0) items.push({ key: 'lease ' + x.id, tone: 'bad', href, text: `${x.id} shows no sign of life`, more: `Its lease ran out ${length(-x.lease_left_ms)} ago.` });
    else if (x.suspected) items.push({ key: 'suspected ' + x.id, tone: 'bad', href, text: `${x.id} is suspected`, more: 'It showed no sign of life while it led.' });
    if (x.probation_left_ms > 0) items.push({ key: 'probation ' + x.id, tone: 'slow', href, text: `${x.id} is on probation for ${length(x.probation_left_ms)} more`, more: `Its release ${x.release} was lost soon after it became ready.` });
  }
  return items;
}

// ofProduction says that slots come and none is pushed. Without a leader that is no news.
function ofProduction(list, { unpushed_since: since, now }) {
  const leader = leaderOf(list);
  if (!since || !leader) return [];
  const waits = length(Date.parse(now) - Date.parse(since));
  return [{
    key: 'unpushed', tone: 'bad', href: '/instances', text: `${leader.id} leads, but has pushed no slot for ${waits}`, more: `The slots since ${stamp(since)} are late.`,
    also: ['/events' + query({ kind: 'leads but cannot schedule' }), 'why'],
  }];
}

function ofTasks(list, counts) {
  const items = [];
  const now = Date.parse(counts.now);
  for (const lane of counts.lanes.filter((l) => l.overdue)) {
    const href = '/tasks' + query({ state: 'due', type: lane.type, queue: lane.queue });
    const waits = now - Date.parse(lane.head);
    const name = `of type ${lane.type}${lane.queue === 'default' ? '' : ` in queue ${lane.queue}`}`;
    if (!handles(list, lane)) items.push({ key: `unhandled ${lane.queue} ${lane.type}`, tone: 'bad', href, text: `Nobody handles ${plural(lane.overdue)} ${name}`, more: 'They wait until an instance does.' });
    else if (waits > late) items.push({ key: `late ${lane.queue} ${lane.type} ${lane.priority}`, tone: 'slow', href, text: `${plural(lane.overdue)} ${name} wait`, more: `The oldest could have run ${length(waits)} ago.` });
  }
  if (counts.dead) items.push({ key: 'dead', tone: 'bad', href: '/dead', text: `${plural(counts.dead)} ${counts.dead === 1 ? 'is' : 'are'} dead`, more: 'They do not run again unless somebody retries them.' });
  return items;
}

const kinds = {
  missed: (t) => ({ tone: 'bad', text: `${t.schedule} missed ${plural(t.slots, 'slot')}`, more: `Last ${ago(t.at)}.` }),
  behind: (t) => ({ tone: 'slow', text: `${t.schedule} is behind with ${plural(t.slots, 'slot')}`, more: 'They were missed, and are still to run, behind all that is on time.' }),
  failing: (t) => ({ tone: 'bad', text: `${t.schedule} failed ${number(t.slots)} times in a row`, more: `Last ${ago(t.at)}${t.error ? ': ' + line(t.error, 160) : ''}`, also: t.task && [pathOf(t.task), 'the last task'] }),
  stale: (t) => ({ tone: 'slow', text: `${t.schedule} has not succeeded for ${number(Math.round(t.ratio))} times the gap between its slots` }),
};

function ofSchedules(summary) {
  const items = summary.troubles.map((t) => ({ key: `${t.kind} ${t.schedule}`, href: scheduleOf(t.schedule), ...kinds[t.kind]?.(t) })).filter((x) => x.text);
  const more = summary.troubles_in_all - summary.troubles.length;
  if (more > 0) items.push({ key: 'more', tone: 'slow', href: '/audit', text: `And ${number(more)} more of the kind`, more: 'An audit has them all.' });
  return items;
}
