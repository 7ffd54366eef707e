// Times and durations in words. Times are in the zone of the browser, or in UTC if the viewer asks for it.

const key = 'onbeat-zone';
let utc = false;
try {
  utc = localStorage.getItem(key) === 'utc';
} catch {} // a browser that keeps nothing

export const zoneName = () => (utc ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone);

// zone returns the time zone of what the page shows.
export const zone = () => (utc ? 'UTC' : undefined);

export function switchZone() {
  utc = !utc;
  try {
    localStorage.setItem(key, utc ? 'utc' : 'local');
  } catch {}
  document.dispatchEvent(new Event('zone'));
}

const parts = { year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' };

function split(date, timeZone) {
  const p = Object.fromEntries(new Intl.DateTimeFormat('en-GB', { ...parts, timeZone }).formatToParts(date).map((x) => [x.type, x.value]));
  return { day: `${p.year}-${p.month}-${p.day}`, time: `${p.hour}:${p.minute}:${p.second}` };
}

// stamp writes a moment: its time if it is today, else its day too. With ms, the thousandths.
export function stamp(at, { ms = false, timeZone = zone(), full = false } = {}) {
  const date = new Date(at);
  if (!at || Number.isNaN(+date)) return '';
  const p = split(date, timeZone);
  const time = p.time + (ms ? '.' + String(date.getUTCMilliseconds()).padStart(3, '0') : '');
  return full || split(new Date(), timeZone).day !== p.day ? p.day + ' ' + time : time;
}

// ago writes how long something is from now: "3 min ago", "in 20 s".
export function ago(at, now = Date.now()) {
  const ms = new Date(at) - now;
  if (Math.abs(ms) < 1000) return 'now';
  return ms > 0 ? 'in ' + length(ms) : length(-ms) + ' ago';
}

// length writes a duration in ms in at most two units.
export function length(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return '';
  if (ms < 1000) return Math.round(ms) + ' ms';
  if (ms < 10_000) return (ms / 1000).toFixed(1).replace(/\.0$/, '') + ' s';
  const s = Math.round(ms / 1000);
  if (s < 60) return s + ' s';
  const units = [[86_400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  const i = units.findIndex(([n]) => s >= n);
  const [n, name] = units[i];
  const rest = units[i + 1] && Math.floor((s % n) / units[i + 1][0]);
  return Math.floor(s / n) + ' ' + name + (rest ? ' ' + rest + ' ' + units[i + 1][1] : '');
}

// ms reads a duration as Go or the API writes it: 1m0.5s, 2d.
export function ms(text) {
  const unit = { w: 604_800_000, d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1, 'µs': 0.001, us: 0.001, ns: 0.000001 };
  let sum = 0;
  for (const [, n, u] of String(text ?? '').matchAll(/([\d.]+)(ms|µs|us|ns|w|d|h|m|s)/g)) sum += n * unit[u];
  return sum;
}

// number writes a count.
export const number = (n) => Number(n ?? 0).toLocaleString('en-US');
