// Events in words.
import { place } from '../api.js';
import { el } from '../dom.js';
import { learn, nameOf } from '../instances/name.js';
import { length, number, stamp } from '../time.js';

const told = (ms) => (Number(ms) > 0 ? stamp(Number(ms), { ms: true }) : '');
const by = (f) => (f.by ? `, by ${f.by}` : '');
const why = (f) => (f.reason ? `: ${f.reason}` : '');
const release = (f) => (f.release ? ` of release ${f.release}` : '');
const who = (f) => `${nameOf(f.instance, f.host)}${release(f)}`;
const changed = (word) => (f) => `${f.schedule} was ${word}${f.by ? ' by ' + f.by : ' by what the leader declares'}${changesOf(f)}`;

function changesOf(f) {
  try {
    const list = JSON.parse(f.changes || '[]').map((c) => `${c.field}: ${c.from || 'unset'} → ${c.to || 'unset'}`);
    return list.length ? ` (${list.join('; ')})` : '';
  } catch {
    return '';
  }
}

// sentences say what an event means. The words are those of docs/history.md.
const sentences = {
  joined: (f) => `${who(f)} registered; it is starting`,
  ready: (f) => `${who(f)} may lead and take work`,
  draining: (f) => `${who(f)} was told to stop, and finishes its runs`,
  'asked to resign': (f) => `${who(f)} was asked to give up the lead${by(f)}`,
  'asked to drain': (f) => `${who(f)} was asked to leave${by(f)}`,
  left: (f) => `${who(f)} left: a clean stop`,
  lost: (f) => `${who(f)} was lost: its lease ran out${f.lease ? ' at ' + told(f.lease) : ''}. Its runs are taken back`,
  suspected: (f) => `${who(f)} led, and showed no sign of life for ${length(Number(f.ms))} (${f.reason}); ${nameOf(f.by)} saw it`,
  'suspected wrongly': (f) => `${who(f)} lives after all, after ${length(Number(f.ms))}`,
  leader: (f) => `${who(f)} leads from now on, epoch ${f.epoch}; ${f.before ? 'before it ' + nameOf(f.before) : 'no instance led before'}`,
  'no leader': (f) => `no instance can lead${f.since ? ' since ' + told(f.since) : ''}; ${nameOf(f.instance) || 'nobody'} led last`,
  promoted: (f) => `release ${f.release} was made the newest${by(f)}`,
  'on probation': (f) => `${who(f)} waits ${length(Number(f.ms))} before it is ready: its release was lost ${f.strikes} times soon after it became ready`,
  'stood down': (f) => `${who(f)} could not schedule (${f.reason}), and another instance leads`,
  'leads but cannot schedule': (f) => `${who(f)} leads and cannot schedule: ${f.reason}`,
  'claims paused': (f) => `no instance begins a task for ${length(Number(f.ms))}${by(f)}`,
  'claims resumed': (f) => `instances begin tasks again${by(f)}`,
  'lost writes': (f) => `Redis lost what it had answered after ${told(f.kept) || 'the beginning'}`,
  'schedules lost': (f) => f.schedules ? `${number(f.schedules)} schedules cannot be restored from the archive: ${f.error}`
    : 'schedules that were applied by hand are gone: the leader does not remember them, and there is no archive',
  'clock set back': (f) => `the clock of Redis was set back by ${length(Number(f.ms))}`,
  'schedule made': changed('made'),
  'schedule changed': changed('changed'),
  'schedule paused': changed('paused'),
  'schedule resumed': changed('resumed'),
  'schedule deleted': changed('deleted'),
  'schedule reverted': changed('reverted'),
  'schedule restored': changed('restored'),
  'schedule retired': (f) => `${f.schedule} is not declared by release ${f.release}, the newest; it is kept for 30 days`,
  'schedule triggered': (f) => `${f.schedule} was run once, as ${f.task}${by(f)}`,
  backfill: (f) => `${number(f.slots)} slots of ${f.schedule} were run again${by(f)}`,
  backlog: (f) => `50,000 slots of ${f.schedule} wait; new ones are skipped until one is taken`,
  'task cancel asked': (f) => `${f.task} was asked to stop${by(f)}`,
  'task deleted': (f) => `${f.task}, which was ${f.state}, was removed${by(f)}`,
  'task retried by hand': (f) => `${f.task} is due again${by(f)}`,
  'bulk begun': (f) => `a bulk action (${f.action}) has begun${by(f)}${why(f)}`,
  'bulk done': (f) => `a bulk action (${f.action}) is done: it changed ${f.at_least ? 'at least ' : ''}${number(f.changed)} of ${number(f.matched)} tasks`,
  'bulk stopped': (f) => `a bulk action (${f.action}) was stopped${by(f)}, after ${number(f.changed)} tasks`,
  'bulk failed': (f) => `a bulk action (${f.action}) failed after ${number(f.changed)} tasks: ${f.error}`,
  'tasks changed': (f) => `${f.action} of ${number(f.tasks)} tasks${by(f)}${why(f)}`,
  'declares again': (f) => `a newer release is gone: the schedules of release ${f.release} are in force again`,
  'schedule sealed': (f) => `the payload of ${f.schedule} was stored anew, with the key of today or without one`,
  'outbox refused': (f) => `${number(f.tasks)} rows of the outbox cannot be enqueued; the first is ${f.task}: ${f.error}`,
  'outbox stuck': (f) => `the database neither deletes nor changes ${number(f.tasks)} rows of the outbox; the first is ${f.task}: ${f.error}`,
  'settled in vain': (f) => `${number(f.tasks)} runs of ${nameOf(f.instance)} ended whose claims Redis did not know any more; they may run again`,
  'archive lost': (f) => `the archive lost ${f.entries ? number(f.entries) + ' ' : ''}entries of ${f.stream}, added from ${told(f.from)} to ${told(f.to)}`,
  'cannot decrypt': (f) => `${nameOf(f.instance)} cannot decrypt ${f.task}: it lacks the key ${f.key}, or has another under that ID`,
  'set aside': (f) => `something damaged ${f.key || f.lane || f.task || nameOf(f.instance)}; it was set aside`,
  'found again': (f) => `of lane ${f.lane}, which was set aside, ${number(f.due)} tasks are due again, and ${number(f.dead)} are dead`,
  recounted: (f) => `${number(f.counts)} counts of running tasks were wrong, and are right again`,
  'notification failed': (f) => `a message about ${f.topic} to ${f.target} was given up: ${f.reason}`,
};

const tones = {
  lost: 'bad', suspected: 'bad', 'no leader': 'bad', 'lost writes': 'bad', 'schedules lost': 'bad', 'clock set back': 'bad', 'leads but cannot schedule': 'bad', 'archive lost': 'bad',
  'settled in vain': 'bad', backlog: 'bad', 'notification failed': 'bad', 'outbox refused': 'bad', 'outbox stuck': 'bad', 'cannot decrypt': 'bad', 'set aside': 'bad', 'bulk failed': 'bad',
  'on probation': 'slow', 'stood down': 'slow', 'claims paused': 'slow', draining: 'slow', 'suspected wrongly': 'slow', 'asked to drain': 'slow', 'asked to resign': 'slow', 'bulk stopped': 'slow',
  leader: 'odd', promoted: 'odd', ready: 'good', 'claims resumed': 'good', 'bulk done': 'good',
};

export const kinds = Object.keys(sentences);
export const toneOf = (kind) => tones[kind] ?? '';

// sentence says what an event means. Of a kind that this page does not know, it says the fields.
export function sentence(e) {
  learn(e.fields.instance, e.fields.host);
  const say = sentences[e.event];
  return say ? say(e.fields) : Object.entries(e.fields).map(([k, v]) => `${k}: ${v}`).join(', ');
}

// linked is the sentence with a link at the name of what it is about.
export function linked(e) {
  const { schedule, task } = e.fields, text = sentence(e);
  const subject = task ?? schedule;
  const at = subject ? text.indexOf(subject) : -1;
  if (at < 0) return [text];
  const link = el('a', { href: task ? place`/tasks/${task}` : place`/schedules/${schedule}` }, subject);
  return [text.slice(0, at), link, text.slice(at + subject.length)];
}

const alike = 3; // events that are told as one
const close = 60_000; // ms between two of them

// grouped puts what a release declares, one event after the other, together: thirty schedules made are one line. Of the events, which come
// in either order, it returns those that stand alone, and lists of the others.
export function grouped(events) {
  const out = [];
  const of = (e) => (e.event.startsWith('schedule ') && !e.fields.by && !e.fields.task ? e.event + ' ' + (e.fields.release ?? '') : '');
  for (let i = 0; i < events.length;) {
    let n = i + 1;
    while (of(events[i]) && n < events.length && of(events[n]) === of(events[i]) && Math.abs(Date.parse(events[n].at) - Date.parse(events[n - 1].at)) < close) n++;
    const some = events.slice(i, n);
    if (some.length < alike) out.push(...some);
    else out.push(some);
    i = n;
  }
  return out;
}

// sumOf says what many events mean together.
export function sumOf(list) {
  const { event, fields } = list[0];
  const names = list.map((e) => e.fields.schedule);
  const did = event.replace('schedule ', '');
  return `${number(list.length)} schedules were ${did}${fields.release ? ' by ' + fields.release : ' by what the leader declares'}: ${names.slice(0, 3).join(', ')}${names.length > 3 ? ' …' : ''}`;
}
