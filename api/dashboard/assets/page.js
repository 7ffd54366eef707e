// The parts of every page: the menu, the zone, the live connection, the state of the view in the address.
import { get } from './api.js';
import { tell } from './ask.js';
import { $, el } from './dom.js';
import * as live from './live.js';
import './search.js';
import { plural } from './tasks/words.js';
import { number, stamp, switchZone, zoneName } from './time.js';

const menu = $('#menu');
menu?.addEventListener('click', () => {
  const open = menu.getAttribute('aria-expanded') !== 'true';
  menu.setAttribute('aria-expanded', open);
  document.body.classList.toggle('menu', open);
});

const zone = $('#zone');
function showZone() {
  if (zone) zone.textContent = zoneName();
}
zone?.addEventListener('click', switchZone);
document.addEventListener('zone', showZone);
showZone();

$('#signout')?.addEventListener('click', async () => {
  const reply = await fetch('/session', { method: 'DELETE' }).catch(() => null);
  if (reply?.ok) location.assign('/login');
  else tell('You are still signed in: ' + ((await reply?.json().catch(() => null))?.detail || 'the server does not answer'), 'bad');
});

if ($('#live')) live.start();
// The events end with the session. A call then leads to signing in again, also from a page that makes none by itself.
document.addEventListener('live', (e) => e.detail.now === 'lost' && get('/me').catch(() => {}));

// The title, the icon, the menu and the banner tell how the namespace is, on every page.
const banner = $('#banner');
let pulse; // the newest

function showPulse() {
  const n = pulse.wrong ?? 0;
  document.title = (n ? `(${n}) ` : '') + document.title.replace(/^\(\d+\) /, '');
  const icon = $('link[rel=icon]');
  if (icon) icon.href = n ? icon.dataset.bad : icon.dataset.good;
  for (const [name, count, what] of [['schedules', pulse.bad, 'not well'], ['dead', pulse.dead, 'dead']]) {
    const link = $(`[data-nav=${name}]`);
    if (!link) continue;
    $('b', link)?.remove();
    if (count) link.append(' ', el('b', { title: `${plural(count, name === 'dead' ? 'task' : 'schedule')} ${what}` }, number(count)));
  }
}

// showBanner says why nothing new can come, or why nothing runs.
function showBanner(now, since) {
  const s = pulse?.stopped;
  const text = now === 'away' && pulse?.since ? `Redis has not answered since ${stamp(pulse.since)}. The page shows what was known then.`
    : now === 'lost' ? `The server has not been there since ${stamp(since)}. The page shows what was known then.`
      : s ? s.text + (s.since ? `, since ${stamp(s.since)}.` : '.') : '';
  if (banner.textContent !== text) banner.textContent = text;
  banner.hidden = !text;
}

if (banner) {
  let now, since;
  document.addEventListener('pulse', (e) => ((pulse = e.detail), showPulse(), showBanner(now, since)));
  document.addEventListener('live', (e) => (({ now, since } = e.detail), showBanner(now, since)));
  document.addEventListener('zone', () => showBanner(now, since));
}

// params are the query of the address, which holds the view. set keeps it without a step in the history, unless step is true.
export const params = {
  get: (name, otherwise = '') => new URLSearchParams(location.search).get(name) ?? otherwise,
  set(values, step = false) {
    const q = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(values)) value === '' || value === null || value === undefined ? q.delete(name) : q.set(name, value);
    const text = q.toString();
    const address = location.pathname + (text && '?' + text);
    if (address === location.pathname + location.search) return;
    history[step ? 'pushState' : 'replaceState'](null, '', address);
  },
};

// named is the thing that the page is about: /schedules/NAME. An address that nobody could have written names nothing.
export function named(prefix) {
  const text = location.pathname.slice(prefix.length);
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
