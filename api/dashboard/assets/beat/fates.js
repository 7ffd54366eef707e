// The fates of slots: their words, and their marks. Each mark has a shape of its own, so that colour is not needed to read it.

// worst first. tone is the colour; grave says that it is no good news.
export const fates = {
  lost: { word: 'lost', tone: 'bad', grave: true, says: 'Nothing accounts for it: a promise broke.' },
  duplicated: { word: 'ran twice', tone: 'odd', grave: true, says: 'It ran again although nothing was wrong with its run: a promise broke.' },
  early: { word: 'early', tone: 'odd', grave: true, says: 'It began before it was due: a promise broke.' },
  off_grid: { word: 'off the grid', tone: 'odd', grave: true, says: 'A task ran for a time that is no slot.' },
  failed: { word: 'failed', tone: 'bad', grave: true, says: 'It ran and failed for good.' },
  missed: { word: 'missed', tone: 'bad', grave: true, says: 'A hole: nobody was there to run it, and its schedule does not make up for it.' },
  late: { word: 'late', tone: 'lag3', grave: true, says: 'It ran, and began more than a second after it was due.' },
  unknown: { word: 'unknown', tone: 'quiet', says: 'The history does not reach back to it, or does not tell.' },
  pending: { word: 'pending', tone: 'accent', says: 'It is due, or waits for a retry.' },
  running: { word: 'running', tone: 'accent', says: 'An instance runs it now.' },
  cancelled: { word: 'cancelled', tone: 'quiet', says: 'Somebody cancelled it, or a newer slot took its place.' },
  skipped: { word: 'skipped', tone: 'quiet', says: 'The run before it was still going.' },
  paused: { word: 'paused', tone: 'quiet', says: 'Its schedule was paused.' },
  changed: { word: 'changed', tone: 'quiet', says: 'Its schedule was made, changed or deleted around that time.' },
  on_time: { word: 'on time', tone: 'lag0', says: 'It ran; the dot is where it began.' },
};
export const order = Object.keys(fates);
export const wordOf = (fate) => fates[fate]?.word ?? fate;

// The steps of lag by which a dot is coloured.
export const lags = [
  { tone: 'lag0', below: 50, word: 'less than 50 ms' },
  { tone: 'lag1', below: 250, word: '50 to 250 ms' },
  { tone: 'lag2', below: 1000, word: '250 ms to 1 s' },
  { tone: 'lag3', below: Infinity, word: 'more than 1 s' },
];
export const lagTone = (ms) => lags.find((x) => (ms ?? 0) < x.below).tone;

const tones = ['card', 'inset', 'ground', 'line', 'text', 'muted', 'quiet', 'accent', 'on-accent', 'focus', 'good', 'bad', 'odd', 'slow', 'bad-soft', 'odd-soft', 'good-soft', 'slow-soft', 'lag0', 'lag1', 'lag2', 'lag3'];
let palette;

// colours returns the tokens of the page as a canvas wants them. They are read once, and again when light becomes dark.
export function colours() {
  if (palette) return palette;
  const probe = document.createElement('i');
  probe.hidden = true;
  probe.style.forcedColorAdjust = 'none'; // where the system chooses colours, it would choose one for all marks
  document.body.append(probe);
  palette = {};
  for (const tone of tones) {
    probe.style.color = `var(--${tone})`;
    palette[tone] = getComputedStyle(probe).color;
  }
  probe.remove();
  return palette;
}
const marks = new Map();
for (const media of ['(prefers-color-scheme: dark)', '(forced-colors: active)']) {
  matchMedia(media).addEventListener('change', () => {
    palette = undefined;
    marks.clear();
    document.dispatchEvent(new Event('theme'));
  });
}

// drawMark draws the mark of a slot around a point. Marks are drawn once and copied: a picture has thousands.
export function drawMark(ctx, x, y, slot, r = 4.5) {
  const scale = devicePixelRatio || 1;
  const tone = slot.fate === 'on_time' ? lagTone(slot.lag) : fates[slot.fate]?.tone ?? 'quiet';
  const again = slot.attempt > 1;
  const key = `${slot.fate} ${tone} ${again} ${r} ${scale}`;
  const half = Math.ceil(r + 5);
  let mark = marks.get(key);
  if (!mark) {
    mark = document.createElement('canvas');
    mark.width = mark.height = Math.ceil(half * 2 * scale);
    const c = mark.getContext('2d');
    c.scale(scale, scale);
    c.translate(half, half);
    paint(c, slot.fate, r, colours()[tone], colours());
    if (again) ring(c, r + Math.max(1.6, r * 0.58), colours()[tone]);
    marks.set(key, mark);
  }
  ctx.drawImage(mark, x - half, y - half, half * 2, half * 2);
}

function path(c, ...points) {
  c.beginPath();
  points.forEach(([x, y], i) => (i ? c.lineTo(x, y) : c.moveTo(x, y)));
}

function disc(c, x, r) {
  c.beginPath();
  c.arc(x, 0, r, 0, 7);
}

function ring(c, r, colour) {
  c.strokeStyle = colour;
  c.lineWidth = 1.4;
  disc(c, 0, r);
  c.stroke();
}

// shapes draw one mark each, around 0, 0. fill and line have the colour of its tone; p has all colours.
const shapes = {
  on_time(c, r) {
    disc(c, 0, r);
    c.fill();
  },
  late(c, r) {
    path(c, [-r, -r], [r * 1.1, 0], [-r, r]);
    c.fill();
  },
  early(c, r) {
    path(c, [r, -r], [-r * 1.1, 0], [r, r]);
    c.fill();
  },
  failed(c, r, p) {
    path(c, [0, -r * 1.2], [r * 1.2, 0], [0, r * 1.2], [-r * 1.2, 0]);
    c.closePath();
    hollow(c, p);
  },
  missed(c, r, p) {
    disc(c, 0, r * 1.1);
    c.setLineDash([2.2, 2]);
    hollow(c, p);
  },
  lost(c, r, p) {
    c.fillRect(-r * 1.1, -r * 1.1, r * 2.2, r * 2.2);
    c.strokeStyle = p.card;
    cross(c, r * 0.6);
  },
  duplicated(c, r, p) {
    disc(c, r * 0.55, r * 0.85);
    c.fill();
    disc(c, -r * 0.55, r * 0.85);
    hollow(c, p);
  },
  off_grid(c, r) {
    path(c, [-r, 0], [r, 0]);
    c.stroke();
    path(c, [0, -r], [0, r]);
    c.stroke();
  },
  pending(c, r, p) {
    disc(c, 0, r);
    hollow(c, p, 1.4);
    path(c, [0, -r * 0.6], [0, 0], [r * 0.5, 0]);
    c.stroke();
  },
  running(c, r, p) {
    disc(c, 0, r);
    hollow(c, p, 1.4);
    disc(c, 0, r * 0.4);
    c.fill();
  },
  cancelled: (c, r) => cross(c, r * 0.75),
  skipped(c, r) {
    path(c, [-r * 0.6, r], [r * 0.6, -r]);
    c.stroke();
  },
  paused(c, r) {
    c.fillRect(-r * 0.7, -r * 0.9, r * 0.5, r * 1.8);
    c.fillRect(r * 0.2, -r * 0.9, r * 0.5, r * 1.8);
  },
  changed(c, r, p) {
    c.beginPath();
    c.rect(-r * 0.7, -r * 0.7, r * 1.4, r * 1.4);
    hollow(c, p, 1.4);
  },
  unknown(c, r) {
    c.font = `bold ${r * 2.6}px system-ui, sans-serif`;
    c.textAlign = 'center';
    c.textBaseline = 'middle';
    c.fillText('?', 0, 0.5);
  },
};

function paint(c, fate, r, colour, p) {
  c.save();
  c.fillStyle = c.strokeStyle = colour;
  c.lineWidth = 2;
  c.lineJoin = 'round';
  (shapes[fate] ?? shapes.unknown)(c, r, p);
  c.restore();
}

function hollow(c, p, width = 1.8) {
  c.fillStyle = p.card;
  c.fill();
  c.lineWidth = width;
  c.stroke();
}

function cross(c, r) {
  path(c, [-r, -r], [r, r]);
  c.stroke();
  path(c, [r, -r], [-r, r]);
  c.stroke();
}
