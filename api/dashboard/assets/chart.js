// Charts over time, drawn by uPlot. They are a file of their own, which only the page of trends loads.
import uPlot from './vendor/uplot/uPlot.iife.min.js';

// chart draws lines below an element. at are the times in s; lines are {name, values, colour, fill}, in which null is a hole; marks are {at, name};
// words writes a value; colours are those of the page.
export function chart(root, { at, lines, marks, words, colours, split }) {
  const axis = { stroke: colours.muted, grid: { stroke: colours.line, width: 1 }, ticks: { stroke: colours.line, width: 1 }, font: '12px system-ui, sans-serif' };
  const plot = new uPlot({
    width: root.clientWidth, height: 170, cursor: { sync: { key: 'trends' }, drag: { x: false, y: false } },
    legend: { live: true }, scales: { y: { range: (_, low, high) => [0, Math.max(high ?? 0, 1) * 1.1] } },
    axes: [{ ...axis, space: 90, values: (_, list) => list.map(split) }, { ...axis, size: 70, values: (_, list) => list.map(words) }],
    series: [
      { value: (_, v) => (v === null || v === undefined ? '' : split(v)) },
      ...lines.map((l) => ({ label: l.name, stroke: l.colour, fill: l.fill, width: 2, points: { size: 5 }, spanGaps: false, value: (_, v) => (v === null || v === undefined ? '—' : words(v)) })),
    ],
    hooks: { draw: [(u) => drawMarks(u, marks, colours)] },
  }, [at, ...lines.map((l) => l.values)], root);
  return { size: () => plot.setSize({ width: root.clientWidth, height: 170 }), end: () => plot.destroy() };
}

// drawMarks draws a line for each release, with its name.
function drawMarks(u, marks, colours) {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colours.accent;
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.setLineDash([4, 3]);
  for (const m of marks) {
    const x = Math.round(u.valToPos(m.at, 'x', true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.fillText(m.name, x + 4, bbox.top + 11 * devicePixelRatio);
  }
  ctx.restore();
}
