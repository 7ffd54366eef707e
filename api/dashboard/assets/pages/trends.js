import { params } from '../page.js';
import { get } from '../api.js';
import { colours } from '../beat/fates.js';
import { $, $$, calm, fill } from '../dom.js';
import { length, ms, number, stamp, zone } from '../time.js';
import { View } from '../view.js';

const spans = ['1h', '1d', '7d'];
const span = () => (spans.includes(params.get('since')) ? params.get('since') : '1h');
const every = { '1h': 15_000, '1d': 60_000, '7d': 300_000 };
const script = new URL('chart.js', import.meta.url); // beside this script, under the same hash
const library = import(script); // the only page that needs it

// sum adds up what is known, or is null if nothing is.
const sum = (list) => list.filter((v) => v !== null).reduce((a, b) => a + b, 0);
const most = (list) => Math.max(0, ...list.filter((v) => v !== null));

// counted is a count of a step, or a hole while no leader was there to count.
const counted = (name) => (p) => (p.waiting === undefined && !p[name] ? null : p[name]);

// figures are the charts: their lines, how a value is written, and what all of it says in words.
const figures = [
  { id: 'throughput', lines: [['finished a minute', 'good', (p, per) => (p.finished === undefined ? null : p.finished / per)]], words: (v) => number(Math.round(v * 10) / 10),
    says: (d) => `${number(d.points.reduce((a, p) => a + (p.finished ?? 0), 0))} tasks ended well.` },
  { id: 'failures', lines: [...[['failed', 'slow'], ['dead', 'bad'], ['missed', 'odd'], ['skipped', 'quiet'], ['lost', 'focus']].map(([name, tone]) => [name, tone, counted(name)])], words: number,
    says: (_, v) => `${number(sum(v[0]))} attempts failed, ${number(sum(v[1]))} runs are dead, ${number(sum(v[4]))} were lost; ${number(sum(v[2]))} slots were missed and ${number(sum(v[3]))} skipped.` },
  { id: 'backlog', lines: [['waiting', 'bad', (p) => p.waiting ?? null], ['running', 'accent', (p) => p.running ?? null]], words: number,
    says: (_, v) => `At most ${number(most(v[0]))} waited, and ${number(most(v[1]))} ran.` },
  { id: 'lag', lines: [['at most', 'slow', (p) => p.max_lag_ms ?? null], ['on average', 'good', (p) => p.lag_ms ?? null]], words: length,
    says: (_, v) => `A slot waited for ${length(most(v[0]))} at most after it was due.` },
  { id: 'duration', lines: [['at most', 'slow', (p) => p.max_took_ms ?? null], ['on average', 'accent', (p) => p.took_ms ?? null]], words: length,
    says: (_, v) => `The longest run took ${length(most(v[0]))}.` },
];

let drawn = [];
async function show(data) {
  const { chart } = await library;
  const p = colours(), per = ms(data.step) / 60_000;
  const at = data.points.map((x) => Date.parse(x.at) / 1000);
  const marks = data.releases.map((r) => ({ at: Date.parse(r.at) / 1000, name: r.release }));
  const days = span() === '7d';
  const split = (s) => (days ? stamp(s * 1000, { full: true, timeZone: zone() }).slice(5, 16) : stamp(s * 1000, { full: true, timeZone: zone() }).slice(11, 16));
  for (const old of drawn) old.end();
  drawn = figures.map((f) => {
    const root = $('#' + f.id);
    const values = f.lines.map(([, , of]) => data.points.map((x) => of(x, per)));
    fill(root, { says: f.says(data, values) });
    const place = $('.chart', root);
    place.replaceChildren();
    return chart(place, { at, marks, words: f.words, colours: p, split, lines: f.lines.map(([name, tone], i) => ({ name, values: values[i], colour: p[tone] })) });
  });
  fill($('#trends'), { scope: `From ${stamp(data.from)} in steps of ${length(ms(data.step))}. ${marks.length ? 'Another release began to lead: ' + data.releases.map((r) => `${r.release} at ${stamp(r.at)}`).join(', ') + '.' : ''}` });
}

const view = new View($('#trends'), {
  load: (signal) => get('/trends', { since: span() }, { signal }),
  show: (data) => (data.points.some((x) => x.waiting !== undefined || x.done || x.failed) ? (show(data), true) : false),
  empty: 'Nothing is known yet. A leader notes the figures of each minute.',
});

function look() {
  for (const a of $$('#spans a')) a.dataset.span === span() ? a.setAttribute('aria-current', 'true') : a.removeAttribute('aria-current');
  view.every = every[span()];
  view.refresh();
}
$('#spans').addEventListener('click', (e) => {
  const a = e.target.closest('a');
  if (!a || e.ctrlKey || e.metaKey || e.shiftKey) return;
  e.preventDefault();
  params.set({ since: a.dataset.span }, true);
  look();
});
addEventListener('popstate', look);
addEventListener('resize', calm(() => drawn.forEach((x) => x.size())));
document.addEventListener('theme', () => view.data && view.render());
look();
