// The instances as lanes, and the lead as a line through them: it passes from one to the next as a baton.
import { nameOf } from '../instances/name.js';
import { colours } from './fates.js';

export const laneHeight = 22;
const most = 8;

// pack gives each session a lane: the first that is free, so that the lanes of a long time stay few. Those of a release lie together
// in the order in which they came.
export function pack(beat, scale) {
  const seen = beat.sessions.map((s) => ({
    ...s,
    began: s.from ? Date.parse(s.from) : -Infinity,
    ended: s.to ? Date.parse(s.to) : Infinity,
  })).filter((s) => s.began < scale.end && s.ended > scale.from).sort((a, b) => a.began - b.began);
  const lanes = [];
  const gap = scale.span * 0.02;
  for (const s of seen) {
    let i = lanes.findIndex((l) => l.at(-1).ended + gap < s.began);
    if (i < 0) i = lanes.push([]) - 1;
    lanes[i].push(s);
    s.lane = i;
  }
  const terms = beat.terms.map((t) => ({ ...t, began: t.from ? Date.parse(t.from) : -Infinity, ended: t.to ? Date.parse(t.to) : Infinity }))
    .sort((a, b) => a.epoch - b.epoch);
  for (const t of terms) t.session = seen.find((s) => s.instance === t.instance && s.ended >= t.began && s.began <= t.ended);
  lead(lanes, terms);
  const releases = [...new Set(beat.sessions.map((s) => s.release ?? ''))];
  return { lanes: lanes.slice(0, most), hidden: Math.max(0, lanes.length - most), terms, releases };
}

// lead moves the lanes of those that led to the front, if there are more lanes than are drawn.
function lead(lanes, terms) {
  if (lanes.length <= most) return;
  const led = new Set(terms.map((t) => t.session));
  lanes.sort((a, b) => b.some((s) => led.has(s)) - a.some((s) => led.has(s)));
  lanes.forEach((lane, i) => lane.forEach((s) => (s.lane = i)));
}

export const heightOf = (packed) => Math.max(1, packed.lanes.length) * laneHeight + 6;
const middle = (lane) => lane * laneHeight + laneHeight / 2 + 3;

// releaseTone is the colour of a release: neighbours differ.
const tones = ['accent', 'odd', 'slow', 'focus'];
const toneOf = (packed, release) => tones[packed.releases.indexOf(release ?? '') % tones.length];

export function drawLanes(ctx, packed, scale, now) {
  const p = colours();
  const end = (ms) => Math.min(scale.x(Math.min(ms, now)), scale.width + 20);
  const begin = (ms) => Math.max(scale.x(ms), -20);
  for (const lane of packed.lanes) for (const s of lane) drawSession(ctx, s, begin(s.began), end(s.ended), p, p[toneOf(packed, s.release)]);
  drawLead(ctx, packed, { begin, end, now }, p);
  for (const lane of packed.lanes) for (const s of lane) drawName(ctx, s, begin(s.began), end(s.ended), p);
}

function drawSession(ctx, s, x0, x1, p, tone) {
  const y = middle(s.lane);
  ctx.fillStyle = tone;
  ctx.globalAlpha = 0.22;
  ctx.beginPath();
  ctx.roundRect(x0, y - 8, Math.max(3, x1 - x0), 16, 4);
  ctx.fill();
  ctx.globalAlpha = 1;
  if (!s.lost) return;
  ctx.strokeStyle = p.bad; // a cross ends one that was lost
  ctx.lineWidth = 2.5;
  ctx.beginPath();
  for (const [dx, dy] of [[-5, -5], [5, -5]]) {
    ctx.moveTo(x1 + dx, y + dy);
    ctx.lineTo(x1 - dx, y - dy);
  }
  ctx.stroke();
}

// drawLead draws the spans in which an instance led, and how the lead passed between them. A time without a leader is dashed.
function drawLead(ctx, packed, { begin, end, now }, p) {
  ctx.lineCap = 'round';
  let before;
  for (const t of packed.terms) {
    const lane = t.session?.lane;
    if (lane === undefined || lane >= packed.lanes.length) {
      before = undefined;
      continue;
    }
    const x0 = begin(Math.max(t.began, t.session.began)), x1 = end(t.ended), y = middle(lane) + 6;
    if (before) pass(ctx, before, { x: x0, y }, p);
    ctx.strokeStyle = p.text;
    ctx.lineWidth = 3;
    ctx.setLineDash([]);
    ctx.beginPath();
    ctx.moveTo(x0, y);
    ctx.lineTo(Math.max(x0, x1), y);
    ctx.stroke();
    knob(ctx, x0, y, p);
    before = t.ended === Infinity || t.ended > now ? undefined : { x: x1, y };
  }
  ctx.setLineDash([]);
  ctx.lineCap = 'butt';
}

function pass(ctx, from, to, p) {
  ctx.strokeStyle = to.x - from.x > 4 ? p.bad : p.text;
  ctx.lineWidth = 2.5;
  ctx.setLineDash(to.x - from.x > 4 ? [3, 4] : []);
  ctx.beginPath();
  ctx.moveTo(from.x, from.y);
  const bend = Math.max(8, (to.x - from.x) / 2);
  ctx.bezierCurveTo(from.x + bend, from.y, to.x - bend, to.y, to.x, to.y);
  ctx.stroke();
}

function knob(ctx, x, y, p) {
  ctx.fillStyle = p.card;
  ctx.strokeStyle = p.text;
  ctx.lineWidth = 2;
  ctx.beginPath();
  ctx.arc(x, y, 4, 0, 7);
  ctx.fill();
  ctx.stroke();
}

function drawName(ctx, s, x0, x1, p) {
  const left = Math.max(x0, 0) + 7, room = Math.min(x1, ctx.canvas.clientWidth) - left - 4;
  if (room < 24) return;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, middle(s.lane) - 10, room, 20);
  ctx.clip();
  ctx.fillStyle = p.text;
  ctx.font = '600 11px system-ui, sans-serif';
  ctx.textBaseline = 'middle';
  const release = s.release || 'no release';
  ctx.fillText(release, left, middle(s.lane) - 1);
  const wide = ctx.measureText(release + '  ').width;
  ctx.fillStyle = p.muted;
  ctx.font = '11px system-ui, sans-serif';
  ctx.fillText(nameOf(s.instance, s.host), left + wide, middle(s.lane) - 1);
  ctx.restore();
}

// handovers lists when the lead passed, and the times in which nobody led.
export function handovers(packed) {
  const known = packed.terms.filter((t) => t.began > -Infinity);
  return known.map((t) => {
    const before = packed.terms[packed.terms.indexOf(t) - 1];
    return { at: t.began, gap: before && before.ended < t.began - 20 ? before.ended : undefined };
  });
}

// sayLead says who led in words, for those who do not see the picture.
export const sayLead = (packed, stamp) => packed.terms.map((t) =>
  `${nameOf(t.instance)}${t.release ? ' of ' + t.release : ''} led ${t.from ? 'from ' + stamp(t.began) : 'from the beginning'} ${t.to ? 'to ' + stamp(t.ended) : 'until now'}`);
