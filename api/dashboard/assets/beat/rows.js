// The rows of schedules: for each slot a tick where it is due and a mark where it began, or bars of many slots.
import { colours, drawMark, fates, lagTone } from './fates.js';
import { place } from './lines.js';

export const fit = (canvas, width, height) => {
  const scale = devicePixelRatio || 1;
  const w = Math.round(width * scale), h = Math.round(height * scale);
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
  canvas.style.width = width + 'px';
  canvas.style.height = height + 'px';
  const ctx = canvas.getContext('2d');
  ctx.setTransform(scale, 0, 0, scale, 0, 0);
  ctx.clearRect(0, 0, width, height);
  return ctx;
};

// drawGrid draws the ground behind the rows: the marks of the axis, the times without a leader, when the lead passed, the unknown time.
export function drawGrid(ctx, height, scale, { axis, passed, now, known = now }) {
  const p = colours();
  ctx.fillStyle = p.inset;
  const x = scale.x(now);
  if (scale.x(known) < scale.width) ctx.fillRect(Math.max(0, scale.x(known)), 0, scale.width, height);
  ctx.fillStyle = p.line;
  for (const a of axis) ctx.fillRect(Math.round(scale.x(a.at)), 0, a.midnight && !a.day ? 2 : 1, height);
  for (const h of passed) {
    const at = scale.x(h.at);
    if (h.gap !== undefined && at >= 0) {
      ctx.fillStyle = p['bad-soft'];
      const from = Math.max(0, scale.x(h.gap));
      ctx.fillRect(from, 0, at - from, height);
    }
    ctx.strokeStyle = p.muted;
    ctx.lineWidth = 1;
    ctx.setLineDash([2, 3]);
    ctx.beginPath();
    ctx.moveTo(at, 0);
    ctx.lineTo(at, height);
    ctx.stroke();
    ctx.setLineDash([]);
  }
  if (x <= scale.width) {
    ctx.fillStyle = p.accent;
    ctx.fillRect(x, 0, 1.5, height);
  }
}

// drawRow draws the items of a schedule around y.
export function drawRow(ctx, y, scale, { items, now, chosen, hovered, retired, tall = 9, most = 4.5 }) {
  const p = colours();
  ctx.fillStyle = p.line;
  const end = retired ? Date.parse(retired.at) : now;
  ctx.fillRect(0, y, Math.min(scale.width, scale.x(end)), 1);
  if (retired) drawEnd(ctx, scale.x(end), y, retired, p, tall);
  if (!items) return;
  const slack = scale.perPixel * 40;
  const first = Math.max(0, place(items, scale.from - slack) - 1);
  let i = first;
  for (; i < items.length && items[i].at <= scale.end; i++) {
    if (items[i].sum) drawSum(ctx, y, scale, items[i], p, tall, now);
    else drawDue(ctx, y, scale, items[i], p, tall);
  }
  const r = radius(items, first, i, scale, most);
  for (let k = first; k < i; k++) if (!items[k].sum) drawMark(ctx, xOf(items[k], scale), y, items[k], r);
  for (const x of [hovered, chosen]) if (x) drawFrame(ctx, y, scale, x, p, { tone: x === chosen ? 'focus' : 'muted', tall, r });
}

// drawEnd draws where a release retired the schedule: the line ends.
function drawEnd(ctx, x, y, { release }, p, tall) {
  ctx.fillStyle = p.odd;
  ctx.fillRect(x - 1, y - tall, 2, tall * 2);
  ctx.font = '11px system-ui, sans-serif';
  ctx.textBaseline = 'middle';
  ctx.fillText('retired' + (release ? ' by ' + release : ''), x + 6, y);
}

// radius is that of the marks: where slots lie close together their marks are small, so that each is seen.
function radius(items, first, end, scale, most) {
  if (end - first < 3) return most;
  const apart = (scale.x(items[end - 1].at) - scale.x(items[first].at)) / (end - first - 1);
  return Math.round(Math.min(most, Math.max(2, apart * 0.42)) * 2) / 2;
}

// xOf is where the mark of an item is.
export const xOf = (item, scale) => (item.sum ? scale.x((item.at + item.until) / 2) : scale.x(item.began ?? item.due));

// drawDue draws the tick of a slot, and a line from it to where the run began.
function drawDue(ctx, y, scale, slot, p, tall) {
  const x = scale.x(slot.due);
  ctx.fillStyle = p.muted;
  ctx.fillRect(x - 0.5, y - tall, 1, tall * 0.4); // above the mark, and below it
  ctx.fillRect(x - 0.5, y + tall * 0.6, 1, tall * 0.4);
  if (slot.fate === 'missed') { // a hole in the line
    ctx.fillStyle = p.card;
    ctx.fillRect(x - 9, y - 1, 18, 3);
  }
  const far = xOf(slot, scale) - x;
  if (Math.abs(far) < 2) return;
  ctx.fillStyle = p[lagTone(slot.lag)];
  ctx.fillRect(x, y - 0.5, far, 2);
}

// drawSum draws many slots as one bar: good below, in the colour of the worst lag, and each grave fate above it, large enough to see.
function drawSum(ctx, y, scale, sum, p, tall, now) {
  const x = scale.x(sum.at), wide = Math.max(2, scale.x(Math.min(sum.until, now)) - x - 1);
  const high = tall * 1.7, top = y - high / 2;
  const parts = Object.entries(sum.counts).sort(([a], [b]) => Object.keys(fates).indexOf(a) - Object.keys(fates).indexOf(b));
  let at = top;
  for (const [fate, n] of parts) {
    const good = fate === 'on_time';
    const part = good ? top + high - at : Math.min(top + high - at, Math.max(4, (n / sum.count) * high));
    ctx.fillStyle = p[good ? lagTone(Math.min(sum.lag ?? 0, sum.counts.late ? 999 : Infinity)) : fates[fate]?.tone ?? 'quiet'];
    ctx.globalAlpha = good ? 0.85 : 1;
    if (fate === 'missed') hole(ctx, x, at, wide, part, p);
    else if (fate === 'failed') outline(ctx, x, at, wide, part);
    else if (!good && !fates[fate]?.grave) stripes(ctx, x, at, wide, part);
    else ctx.fillRect(x, at, wide, part);
    at += part;
  }
  ctx.globalAlpha = 1;
  if (!sum.retried) return;
  ctx.fillStyle = p.text; // a dot above: some took more than one run
  ctx.fillRect(x + wide / 2 - 1.5, top - 3, 3, 2);
}

function hole(ctx, x, y, wide, high, p) {
  ctx.fillRect(x, y, wide, 1.5);
  ctx.fillRect(x, y + high - 1.5, wide, 1.5);
  ctx.fillStyle = p['bad-soft'];
  ctx.fillRect(x, y + 1.5, wide, high - 3);
}

function outline(ctx, x, y, wide, high) {
  ctx.strokeStyle = ctx.fillStyle;
  ctx.lineWidth = 1.5;
  ctx.strokeRect(x + 0.75, y + 0.75, Math.max(1, wide - 1.5), high - 1.5);
}

function stripes(ctx, x, y, wide, high) {
  for (let at = 0; at < high; at += 4) ctx.fillRect(x, y + at, wide, Math.min(2, high - at));
}

function drawFrame(ctx, y, scale, item, p, { tone, tall, r }) {
  const x = xOf(item, scale);
  const half = item.sum ? Math.max(4, (scale.x(item.until) - scale.x(item.at)) / 2) : r + 5;
  ctx.strokeStyle = p[tone];
  ctx.lineWidth = 2;
  ctx.beginPath();
  ctx.roundRect(x - half - 1, y - tall - 3, half * 2 + 2, tall * 2 + 6, 4);
  ctx.stroke();
}

// near finds the item of a row whose mark is nearest to a place.
export function near(items, x, scale, reach = 14) {
  let best, far = reach;
  for (let i = Math.max(0, place(items, scale.at(x) - scale.perPixel * 200) - 1); i < items.length; i++) {
    const it = items[i];
    const to = it.sum ? Math.max(0, Math.abs(xOf(it, scale) - x) - (scale.x(it.until) - scale.x(it.at)) / 2) : Math.min(Math.abs(xOf(it, scale) - x), Math.abs(scale.x(it.due) - x));
    if (to < far) [best, far] = [it, to];
    if (scale.x(it.at) > x + reach) break;
  }
  return best;
}
