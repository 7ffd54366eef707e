// The legend: each mark with what it means.
import { el } from '../dom.js';
import { drawMark, fates, lags } from './fates.js';
import { drawRow, fit } from './rows.js';
import { Scale } from './scale.js';

function sample(draw) {
  const canvas = el('canvas', { 'aria-hidden': 'true' });
  draw(fit(canvas, 26, 24));
  return canvas;
}
const entry = (draw, ...text) => el('li', {}, sample(draw), el('span', {}, text));
const mark = (slot) => (ctx) => drawMark(ctx, 12, 12, slot);

export function legend() {
  const scale = new Scale({ span: 26, end: 26, now: () => 26 });
  scale.width = 26;
  const sum = (counts, lag) => (ctx) => drawRow(ctx, 12, scale, { items: [{ sum: true, at: 6, until: 18, counts, lag, count: Object.values(counts).reduce((a, b) => a + b) }], now: 26 });
  return [
    ...lags.filter((l) => l.below <= 1000).map((l) => entry(mark({ fate: 'on_time', lag: l.below - 1 }), el('b', {}, 'on time'), ': began ' + l.word + ' after it was due')),
    ...['late', 'missed', 'failed', 'pending', 'running', 'skipped', 'paused', 'cancelled', 'changed', 'unknown', 'lost', 'duplicated', 'early'].map((fate) =>
      entry(mark({ fate, lag: 5000 }), el('b', {}, fates[fate].word), ': ' + fates[fate].says)),
    entry(mark({ fate: 'on_time', lag: 0, attempt: 2 }), el('b', {}, 'a ring'), ': a later attempt; the run before it failed or was lost'),
    entry(sum({ on_time: 60 }, 10), el('b', {}, 'a bar'), ': many slots, in the colour of the worst lag'),
    entry(sum({ failed: 20, on_time: 40 }, 10), el('b', {}, 'a bar with a red frame'), ': some failed'),
    entry(sum({ missed: 20, on_time: 40 }, 10), el('b', {}, 'a bar with a gap'), ': some were missed'),
    entry(sum({ skipped: 20, on_time: 40 }, 10), el('b', {}, 'a bar with stripes'), ': some were skipped or paused'),
    entry((ctx) => { ctx.fillStyle = getComputedStyle(document.body).color; ctx.fillRect(0, 10, 26, 3); }, el('b', {}, 'a thick line in the lanes'), ': this instance leads; where it bends, the lead passes on, dashed and red while nobody led'),
  ];
}
