// Cron expressions in words. One of an uncommon form stays as it is.

const macros = { '@yearly': '0 0 1 1 *', '@annually': '0 0 1 1 *', '@monthly': '0 0 1 * *', '@weekly': '0 0 * * 0', '@daily': '0 0 * * *', '@midnight': '0 0 * * *', '@hourly': '0 * * * *' };
const days = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];
const months = ['', 'January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'];
const two = (n) => String(n).padStart(2, '0');

// cronWords writes an expression in words: "at 02:00 on Mon to Fri".
export function cronWords(text) {
  const fields = (macros[text.trim().toLowerCase()] ?? text).trim().split(/\s+/);
  const [sec, min, hour, dom, month, dow] = fields.length === 5 ? ['0', ...fields] : fields;
  if (fields.length < 5 || fields.length > 6) return 'cron ' + text;
  const time = timeWords(sec, min, hour);
  const day = dayWords(dom, month, dow);
  if (time === undefined || day === undefined) return 'cron ' + text;
  return [time, day || (time.startsWith('at') ? 'every day' : '')].filter(Boolean).join(' ');
}

const any = (field) => field === '*' || field === '?' || field === '*/1';

// step returns n of "*/n" if it divides a whole, so that all steps are alike.
function step(field, whole) {
  const n = Number(/^\*\/(\d+)$/.exec(field)?.[1]);
  return n && whole % n === 0 ? n : undefined;
}

// numbers returns those of a list such as 1,5.
function numbers(field) {
  return /^\d+(,\d+)*$/.test(field) ? field.split(',').map(Number) : undefined;
}

function timeWords(sec, min, hour) {
  if (any(min) && any(hour)) {
    if (any(sec)) return 'every second';
    if (step(sec, 60)) return `every ${step(sec, 60)} s`;
  }
  if (sec !== '0' && sec !== '00') return undefined;
  const hours = hourWords(hour);
  if (any(min)) return hours === undefined ? undefined : 'every minute' + hours;
  if (step(min, 60)) return hours === undefined ? undefined : `every ${step(min, 60)} min` + hours;
  const minutes = numbers(min);
  if (!minutes) return undefined;
  const past = minutes.map((m) => ':' + two(m)).join(', ');
  if (any(hour)) return 'every hour at ' + past;
  if (step(hour, 24)) return `every ${step(hour, 24)} h at ${past}`;
  const at = numbers(hour);
  if (!at) return hours === undefined ? undefined : `every hour at ${past}${hours}`;
  if (at.length * minutes.length > 6) return undefined;
  return 'at ' + at.flatMap((h) => minutes.map((m) => `${two(h)}:${two(m)}`)).join(', ');
}

// hourWords says between which hours something is.
function hourWords(hour) {
  if (any(hour)) return '';
  const range = /^(\d+)-(\d+)$/.exec(hour) ?? /^((\d+))$/.exec(hour);
  return range ? ` from ${two(range[1])}:00 to ${two(range[2])}:59` : undefined;
}

function dayWords(dom, month, dow) {
  const inMonth = any(month) ? '' : nameList(month, months);
  if (inMonth === undefined || (!any(dom) && !any(dow))) return undefined;
  let words = '';
  if (!any(dow)) {
    const list = nameList(dow, days);
    if (list === undefined) return undefined;
    words = 'on ' + list;
  } else if (!any(dom)) {
    const list = numbers(dom);
    if (!list) return undefined;
    words = `on day ${list.join(', ')} of ${inMonth ? '' : 'each month'}`.trim();
    return inMonth ? `${words} ${inMonth}` : words;
  }
  return [words, inMonth && 'in ' + inMonth].filter(Boolean).join(' ');
}

// nameList writes numbers, names and ranges of them by name.
function nameList(field, names) {
  const one = (text) => (/^\d+$/.test(text) ? names[Number(text)] : names.find((n) => n && n.slice(0, 3).toLowerCase() === text.toLowerCase()));
  const parts = field.split(',').map((part) => {
    const ends = part.split('-').map(one);
    return ends.length <= 2 && ends.every(Boolean) ? ends.join(' to ') : undefined;
  });
  return parts.every(Boolean) ? parts.join(', ') : undefined;
}
