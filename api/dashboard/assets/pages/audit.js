import { params } from '../page.js';
import { get, query } from '../api.js';
import { badge, otherOf, rank, troubles, verdict } from '../audit/words.js';
import { $, clone, el, fill, keyed } from '../dom.js';
import { plural, scheduleOf } from '../tasks/words.js';
import { length, number, stamp } from '../time.js';
import { View } from '../view.js';

const names = ['since', 'schedule', 'tolerance'];
const form = $('#ask');
let most = 100;

const load = (signal) => get('/audit', Object.fromEntries(names.map((n) => [n, params.get(n)])), { signal });

function show(audit) {
  const list = [...audit.schedules].sort((a, b) => rank(b) - rank(a) || (a.schedule < b.schedule ? -1 : 1));
  const [tone, words] = verdict(audit);
  const slots = list.reduce((n, r) => n + r.slots, 0);
  fill($('#audit > .card'), { // not below: rows have a verdict too
    verdict: el('strong', { class: tone }, words),
    scope: list.length ? `${plural(slots, 'slot')} of ${plural(list.length, 'schedule')}, from ${stamp(least(list, 'from'), { full: true })} to ${stamp(list[0].to, { full: true })}.` : '',
    lost: [...(audit.unreadable ? [el('p', { class: 'slow' }, audit.unreadable)] : []), ...(audit.lost_writes ?? []).map(lossOf)],
  });
  showWrong(list.filter((r) => rank(r) > 0));
  keyed($('#audit tbody'), list.slice(0, most), (r) => r.schedule, () => clone('report'), showReport);
  $('#shown').textContent = list.length > most ? `The first ${number(most)} of ${number(list.length)}, the worst first.` : 'The worst first.';
  $('[data-pager]').hidden = list.length <= most;
}

const least = (list, name) => list.reduce((min, r) => (r[name] < min ? r[name] : min), list[0][name]);

function lossOf(l) {
  const from = l.from && !l.from.startsWith('0001') ? l.from : '';
  const redis = l.partition ? `Redis (partition ${l.partition})` : 'Redis';
  return el('p', { class: 'bad' }, from ? `${redis} lost its writes from ${stamp(from, { full: true, ms: true })} until ${stamp(l.until, { full: true, ms: true })} at the latest: what ran then may have run again.`
    : `${redis} came back empty after ${stamp(l.known, { full: true, ms: true })}: ${l.archived
      ? `the archive has what was noted until ${stamp(l.archived, { full: true, ms: true })}` : 'the audit knows nothing of the time before'}.`);
}

function showWrong(list) {
  $('#wrong').hidden = !list.length;
  keyed($('#wrong ul'), list.slice(0, 50), (r) => r.schedule, () => el('li'), (li, r) => {
    const said = troubles(r);
    li.dataset.tone = said[0].tone;
    li.replaceChildren(el('a', { href: scheduleOf(r.schedule) }, r.schedule), ': ', el('span', { class: said[0].tone }, said.filter((t) => !t.detail).map((t) => t.text).join('; ') + '.'),
      ...(said.some((t) => t.detail) ? [el('details', {}, el('summary', {}, 'Which slots'), el('ul', {}, said.filter((t) => t.detail).map((t) => el('li', {}, t.text))))] : []),
      ' ', el('a', { href: '/beat' + query({ match: r.schedule, to: r.to, zoom: Math.ceil((Date.parse(r.to) - Date.parse(r.from)) / 1000) }) }, 'on the beat'));
  });
}

const lag = (ms, r) => (r.on_time + r.late + r.failed ? length(ms) : '–');

function showReport(row, r) {
  const [text, kind] = badge(r);
  const link = $('[data-field=schedule]', row);
  link.href = scheduleOf(r.schedule);
  $('.badge', row).dataset.kind = kind;
  fill(row, {
    schedule: r.schedule, verdict: text, slots: number(r.slots), on_time: number(r.on_time), late: number(r.late), missed: number(r.missed), failed: number(r.failed),
    other: number(otherOf(r)), p50: lag(r.lag_p50_ms, r), p99: lag(r.lag_p99_ms, r), max: lag(r.lag_max_ms, r),
  });
}

const view = new View($('#audit'), { load, show });

function look() {
  for (const n of names) form.elements[n].value = params.get(n);
  view.refresh();
}
form.addEventListener('submit', (e) => {
  e.preventDefault();
  params.set(Object.fromEntries(names.map((n) => [n, form.elements[n].value.trim()])), true);
  most = 100;
  view.refresh();
});
$('[data-pager] [data-act=more]').addEventListener('click', () => {
  most += 400;
  view.render();
});
addEventListener('popstate', look);
look();
