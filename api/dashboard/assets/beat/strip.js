// The beat in little, for other pages: the strip of one schedule, strips for the rows of a list, and a small beat of all.
import { el } from '../dom.js';
import { length } from '../time.js';
import { View } from '../view.js';
import { colours } from './fates.js';
import { drawLanes, handovers, heightOf, pack } from './lanes.js';
import { ask, tally, tooMuch } from './lines.js';
import { drawGrid, drawRow, fit } from './rows.js';
import { axis, Scale, stepOf } from './scale.js';
import { Source } from './source.js';
import { countsOf } from './story.js';

const batch = 60;
const usual = 600; // how wide a strip is that is not shown yet

// room is how wide a canvas in an element may be.
function room(box) {
  const style = getComputedStyle(box);
  return Math.max(40, box.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight));
}

// drawStrip draws the items of a schedule onto a canvas, and says them in its label. The canvas takes the width of its parent.
export function drawStrip(canvas, items, { from, to, now = to, height = 28, width = room(canvas.parentElement) }) {
  const scale = new Scale({ span: to - from, end: to, now: () => now });
  scale.width = width;
  const ctx = fit(canvas, scale.width, height);
  drawRow(ctx, height / 2, scale, { items, now, tall: Math.min(9, height / 3), most: Math.min(4.5, height / 6) });
  const sum = tally(items);
  canvas.setAttribute('role', 'img');
  canvas.setAttribute('aria-label', `The last ${length(now - from)}: ` + (countsOf(sum.counts) || 'no slots') + (sum.lag ? `; worst lag ${length(sum.lag)}` : ''));
}

// strips draws the last time of many schedules by few calls: list has { canvas, name }. A page calls it when it shows its rows.
export async function strips(list, { span = 3_600_000, signal, height } = {}) {
  for (let i = 0; i < list.length; i += batch) {
    const some = list.slice(i, i + batch);
    const step = stepOf(span / room(some[0].canvas.parentElement));
    const to = Date.now(), from = to - span;
    const beat = await ask({ from, to, step, names: some.map((x) => x.name), signal });
    const now = Date.parse(beat.now);
    const widths = some.map((x) => room(x.canvas.parentElement)); // before the first is drawn: to measure between costs a layout each
    some.forEach((x, k) => drawStrip(x.canvas, beat.lines.get(x.name) ?? [], { from: now - span, to: now, height, width: widths[k] }));
  }
}

// strip keeps the strip of one schedule in an element up to date. It returns its view.
export function strip(root, { schedule, span = 3_600_000, every = 10_000, height = 32 }) {
  const canvas = el('canvas');
  const words = el('p', { class: 'muted' });
  root.append(canvas, words);
  let items = [], now = 0;
  const draw = () => drawStrip(canvas, items, { from: now - span, to: now, height });
  const view = new View(root, {
    every,
    async load(signal) {
      const step = stepOf(span / (root.clientWidth ? room(root) : usual));
      const to = Date.now();
      try {
        const beat = await ask({ from: to - span, to, step, names: [schedule], signal });
        return { items: beat.lines.get(schedule) ?? [], now: Date.parse(beat.now) };
      } catch (err) {
        if (!tooMuch(err)) throw err;
        return { items: [], now: to };
      }
    },
    show(data) {
      ({ items, now } = data);
      draw();
      const sum = tally(items);
      words.textContent = `In the last ${length(span)}: ` + (countsOf(sum.counts) || 'no slots') + (sum.lag ? `; worst lag ${length(sum.lag)}` : '') + '.';
    },
  });
  new ResizeObserver(() => now && draw()).observe(root);
  document.addEventListener('theme', draw);
  view.refresh();
  return view;
}

// small keeps a small beat in an element up to date: the lanes, and the worst of the schedules. It returns its view.
export function small(root, { span = 600_000, most = 8 } = {}) {
  const source = new Source();
  const scale = new Scale({ span, now: () => source.now() });
  const canvas = el('canvas', { role: 'img' });
  root.append(canvas);
  const names = () => source.rows.slice(0, most).map((r) => r.name);
  const view = new View(root, {
    every: 3000,
    load: (signal) => source.refresh({ scale, order: 'worst', match: '', seen: names }, signal),
    show() {
      if (!source.all.length) return false;
      drawSmall(canvas, source, scale, names());
      canvas.setAttribute('aria-label', `The last ${length(span)} of ${names().length} of ${source.all.length} schedules: ` +
        source.rows.slice(0, most).map((r) => `${r.name}: ${countsOf(r.counts) || 'no slots'}`).join('; '));
    },
    empty: 'No schedules yet.',
  });
  const again = () => source.all?.length && drawSmall(canvas, source, scale, names());
  new ResizeObserver(again).observe(root);
  document.addEventListener('theme', again);
  view.refresh();
  return view;
}

const tall = 26, foot = 20;

function drawSmall(canvas, source, scale, names) {
  if (!canvas.parentElement.clientWidth) return;
  const wide = room(canvas.parentElement), side = Math.min(150, wide * 0.3);
  scale.width = wide - side;
  scale.tick();
  const packed = pack(source, scale), now = source.now(), p = colours();
  const high = heightOf(packed), height = high + names.length * tall + foot;
  const ctx = fit(canvas, wide, height);
  const marks = axis(scale);
  ctx.font = '12px system-ui, sans-serif';
  ctx.textBaseline = 'middle';
  ctx.fillStyle = p.text;
  names.forEach((name, i) => ctx.fillText(shorten(ctx, name, side - 10), 0, high + i * tall + tall / 2));
  ctx.translate(side, 0);
  ctx.beginPath();
  ctx.rect(0, 0, scale.width, height);
  ctx.clip();
  drawGrid(ctx, height - foot, scale, { axis: marks, passed: handovers(packed), now });
  drawLanes(ctx, packed, scale, now);
  names.forEach((name, i) => drawRow(ctx, high + i * tall + tall / 2, scale, { items: source.lines.get(name)?.items, now, tall: 8, most: 4 }));
  ctx.font = '11px system-ui, sans-serif';
  ctx.fillStyle = p.muted;
  ctx.textAlign = 'center';
  for (const a of marks) if (scale.x(a.at) > 25 && scale.x(a.at) < scale.width - 25) ctx.fillText(a.text, scale.x(a.at), height - foot / 2);
  ctx.textAlign = 'start';
}

function shorten(ctx, text, wide) {
  if (ctx.measureText(text).width <= wide) return text;
  while (text && ctx.measureText(text + '…').width > wide) text = text.slice(0, -1);
  return text + '…';
}
