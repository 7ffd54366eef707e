import '../page.js';
import { get, query, shared } from '../api.js';
import { small } from '../beat/strip.js';
import { $, $$, clone, fill, keyed } from '../dom.js';
import * as live from '../live.js';
import { attention } from '../overview/attention.js';
import { nameOf } from '../instances/name.js';
import { bars } from '../overview/bars.js';
import { plural } from '../tasks/words.js';
import { length, number } from '../time.js';
import { View } from '../view.js';

const seen = []; // counts, to see how they change
const rateTime = 60_000, rows = 32;

let summary, asked = 0;

async function load(signal) {
  const [status, counts, instances] = await Promise.all([get('/status', shared, { signal }), get('/counts', shared, { signal }), get('/instances', shared, { signal }), summarize(signal)]);
  return { status, counts, instances, summary };
}

// summarize asks for the summary now and then: the server reads all runs of the time for it.
async function summarize(signal) {
  const wait = summary?.done > 5000 ? 15_000 : 5000;
  if (Date.now() - asked < wait) return;
  summary = await get('/summary', { since: '5m', ...shared }, { signal });
  asked = Date.now();
}

function show(data) {
  showAttention(attention(data.status));
  showFigures(data);
  showLanes(data.counts);
  showPartitions(data);
}

function showAttention(items) {
  $('#well').hidden = items.length > 0;
  keyed($('#attention ul'), items, (x) => x.key, () => clone('item'), (li, x) => {
    li.dataset.tone = x.tone;
    $('a', li).href = x.href;
    fill(li, { text: x.text, more: x.more ?? '' });
  });
}

// rateOf says how many tasks finished in a second, from two counts of this page.
function rateOf(counts) {
  const now = Date.parse(counts.now);
  seen.push({ at: now, finished: counts.finished });
  while (seen.length > 2 && seen[1].at <= now - rateTime) seen.shift();
  const first = seen[0];
  const ms = now - first.at;
  if (ms < 1000) return { rate: '…', rate_span: 'a second' };
  const rate = Math.max(0, counts.finished - first.finished) / (ms / 1000);
  return { rate: rate >= 10 ? number(Math.round(rate)) : rate.toFixed(1), rate_span: `a second, in the last ${length(Math.min(ms, rateTime))}` };
}

function showFigures({ counts, instances, summary: s }) {
  const now = Date.parse(counts.now);
  const room = instances.items.reduce((n, x) => n + (x.concurrency ?? 0), 0);
  const heads = counts.lanes.filter((l) => l.waiting).map((l) => Date.parse(l.head));
  const ahead = s.ahead.reduce((a, b) => a + b, 0);
  const ended = s.done + s.failed + s.dead + s.lost;
  const bad = [s.failed && `${number(s.failed)} to be retried`, s.dead && `${number(s.dead)} died`, s.lost && `${number(s.lost)} lost`].filter(Boolean);
  fill($('#figures'), {
    running: number(counts.running), capacity: room ? `of ${number(room)} at most` : '',
    waiting: number(counts.waiting), oldest: heads.length ? `the oldest for ${length(Math.max(0, now - Math.min(...heads)))}` : '',
    dead: number(counts.dead), died: `${number(counts.died)} died since the namespace was made`,
    ...rateOf(counts), finished: `${number(counts.finished)} since the namespace was made`,
    runs: number(ended), failed: bad.join(', '),
    p50: s.lag ? length(s.lag.p50_ms) : '–', p99: s.lag ? length(s.lag.p99_ms) : '–', worst: s.lag ? `worst ${length(s.lag.max_ms)}` : '',
    ahead: number(ahead), schedules: `${plural(s.active, 'schedule')}${s.paused ? `, and ${number(s.paused)} paused` : ''}, ${plural(instances.items.length, 'instance')} now.`,
  });
  const span = `in the last ${length(Date.parse(s.now) - Date.parse(s.from))}`;
  for (const e of $$('.window')) e.textContent = span;
  $('#bars').replaceChildren(bars(s.ahead, `By 5 seconds: ${s.ahead.map(number).join(', ')}`));
}

function showLanes({ now, lanes }) {
  const some = lanes.filter((l) => l.waiting + l.later).sort((a, b) => b.waiting - a.waiting || b.later - a.later).slice(0, 20);
  $('#lanes').hidden = !some.length;
  keyed($('#lanes tbody'), some, (l) => `${l.queue}\n${l.type}\n${l.priority}`, () => clone('lane'), (row, l) => {
    $('a', row).href = '/tasks' + query({ state: l.waiting ? 'waiting' : '', type: l.type, queue: l.queue });
    fill(row, {
      queue: l.queue + (l.priority && l.priority !== 'normal' ? ', ' + l.priority : ''), type: l.type, waiting: number(l.waiting), later: number(l.later),
      oldest: l.waiting && l.head ? length(Math.max(0, Date.parse(now) - Date.parse(l.head))) : '',
    });
  });
}

// showPartitions says what lies in each partition of a namespace that is split, where, and who leads it. One that did not answer is missed by name.
function showPartitions({ counts, instances }) {
  const list = counts.partitions ?? [], missing = (counts.could_not_ask ?? []).map((u) => u.source);
  $('#partitions').hidden = !list.length;
  if (!list.length) return;
  const nodes = new Set(list.map((p) => p.node)), most = (of) => Math.max(...list.map(of)), least = (of) => Math.min(...list.map(of));
  const span = (of) => (most(of) === least(of) ? number(most(of)) : `${number(least(of))} to ${number(most(of))}`);
  fill($('#partitions'), {
    balance: `${plural(list.length, 'partition')} on ${plural(nodes.size, 'node')}. Each has ${span((p) => p.schedules)} schedules and ${span((p) => p.waiting + p.later)} tasks that wait or are due later.`
      + (missing.length ? ` No answer: ${missing.join(', ')}.` : '') + (list.length > rows ? ` Below are the ${rows} with most to do.` : ''),
  });
  const leader = new Map(instances.items.flatMap((x) => (x.leads ?? []).map((p) => [p, nameOf(x.id, x.host)])));
  const busiest = list.length > rows ? list.toSorted((a, b) => b.running + b.waiting - a.running - a.waiting).slice(0, rows) : list;
  keyed($('#partitions tbody'), busiest, (p) => p.partition, () => clone('partition'), (row, p) => fill(row, {
    partition: p.partition, node: p.node ?? '', leader: leader.get(p.partition) ?? 'none', running: number(p.running), waiting: number(p.waiting), later: number(p.later), schedules: number(p.schedules),
  }));
}

const view = new View($('#now'), { load, show, every: 3000 });
live.onChange([], () => view.refresh(), 1000);
view.refresh();
small($('#beat'));
