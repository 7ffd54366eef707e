// The window of time that a picture shows, and its axis.
import { zone } from '../time.js';

const s = 1000, m = 60 * s, h = 60 * m, d = 24 * h;
export const spans = { '1m': m, '5m': 5 * m, '1h': h, '6h': 6 * h, '1d': d, '7d': 7 * d };
const shortest = 2 * s, longest = 31 * d, earliest = 366 * d;
const within = (x, least, most) => Math.min(Math.max(x, least), most);

// Scale maps times to places. It follows the present, or stands still.
export class Scale {
  constructor({ span = spans['5m'], end = 0, now }) {
    Object.assign(this, { span: within(span, shortest, longest), now, width: 800, follow: !end });
    this.end = end ? within(end, earliest, now() + this.ahead) : now(); // an address may say what no picture has
    this.tick();
  }

  // ahead is the part of the picture that is still to come while it follows.
  get ahead() { return this.span * 0.06; }
  get from() { return this.end - this.span; }
  get perPixel() { return this.span / this.width; }
  x(ms) { return ((ms - this.from) / this.span) * this.width; }
  at(x) { return this.from + x * this.perPixel; }

  // tick moves a picture that follows to the present.
  tick() {
    if (this.follow) this.end = this.now() + this.ahead;
  }

  pan(ms) {
    this.end = Math.min(this.end + ms, this.now() + this.ahead);
    this.follow = ms > 0 && this.end >= this.now() + this.ahead;
  }

  // zoom changes the span around a place, by default the present or the middle.
  zoom(span, x) {
    const next = within(span, shortest, longest);
    const around = x === undefined ? (this.follow ? this.now() : this.end - this.span / 2) : this.at(x);
    const part = (around - this.from) / this.span;
    this.span = next;
    this.end = around + (1 - part) * next;
    this.end = Math.min(this.end, this.now() + this.ahead);
    this.tick();
  }

  // show moves the picture as little as it takes to have a moment well inside.
  show(ms) {
    const margin = this.span * 0.08;
    if (ms < this.from + margin) this.pan(ms - margin - this.from);
    else if (ms > this.end - margin && !this.follow) this.pan(ms + margin - this.end);
  }
}

const steps = [20, 50, 100, 200, 500, s, 2 * s, 3 * s, 5 * s, 10 * s, 15 * s, 30 * s, m, 2 * m, 5 * m, 10 * m, 15 * m, 30 * m, h, 2 * h, 3 * h, 6 * h, 12 * h, d, 2 * d, 7 * d];

// stepOf is the length of time that has room for one mark.
export const stepOf = (perPixel, pixels = 5) => steps.find((x) => x >= perPixel * pixels) ?? steps.at(-1);

let clock = {};

function formats() {
  if (clock.zone === zone() && clock.day) return clock;
  const make = (o) => new Intl.DateTimeFormat('en-GB', { ...o, hourCycle: 'h23', timeZone: zone() });
  const two = '2-digit';
  return (clock = {
    zone: zone(),
    second: make({ hour: two, minute: two, second: two }),
    minute: make({ hour: two, minute: two }),
    day: make({ weekday: 'short', day: 'numeric', month: 'short' }),
    parts: make({ year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' }),
  });
}

// offset is how far the zone of the page is from UTC at a moment.
function offset(ms) {
  const p = Object.fromEntries(formats().parts.formatToParts(ms).map((x) => [x.type, +x.value]));
  return Date.UTC(p.year, p.month - 1, p.day, p.hour, p.minute, p.second) - Math.floor(ms / 1000) * 1000;
}

// axis lists the moments to write below a picture, with their words. Days begin at midnight of the zone.
export function axis(scale, apart = 90) {
  const step = stepOf(scale.perPixel, apart);
  const f = formats();
  const shift = offset(scale.from);
  const list = [];
  for (let at = Math.ceil((scale.from + shift) / step) * step - shift; at <= scale.end; at += step) {
    const midnight = (at + shift) % d === 0;
    const text = step >= d || midnight ? f.day.format(at) : step >= m ? f.minute.format(at) : f.second.format(at) + (step < s ? '.' + String(at % s).padStart(3, '0').slice(0, 2) : '');
    list.push({ at, text, midnight, day: step >= d });
  }
  return list;
}
