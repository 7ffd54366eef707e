// A few bars: how many slots come in each step of the next minute.
import { svg } from '../dom.js';

const wide = 6, gap = 2, high = 24;

// bars draws counts. Its label says them.
export function bars(counts, label) {
  const most = Math.max(1, ...counts);
  const picture = svg('svg', { role: 'img', 'aria-label': label, width: counts.length * (wide + gap), height: high, class: 'bars' });
  counts.forEach((n, i) => {
    const tall = n ? Math.max(2, Math.round((high * n) / most)) : 1;
    picture.append(svg('rect', { x: i * (wide + gap), y: high - tall, width: wide, height: tall, rx: 1 }));
  });
  return picture;
}
