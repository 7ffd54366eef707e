// The picture: lanes above, rows below. Only the rows in view are drawn, and only when something moved.
import { $ } from '../dom.js';
import { stamp } from '../time.js';
import { drawLanes, handovers, heightOf, pack, sayLead } from './lanes.js';
import { drawGrid, drawRow, fit, near } from './rows.js';
import { axis } from './scale.js';
import { colours } from './fates.js';
import { countsOf, scheduleOf } from './story.js';

const axisHeight = 22;

export class Picture {
  // state: { source, scale, chosen: {name, item}, hovered }
  constructor(state) {
    this.state = state;
    this.rows = $('#rows');
    this.slots = $('#slots');
    this.lanes = $('#lanes');
    this.labels = [];
    const again = () => this.draw();
    this.rows.addEventListener('scroll', again, { passive: true });
    for (const e of ['theme', 'zone']) document.addEventListener(e, again);
    new ResizeObserver(again).observe($('#beat'));
    matchMedia('(max-width: 46rem)').addEventListener('change', again);
  }

  get narrow() { return matchMedia('(max-width: 46rem)').matches; }
  get tall() { return this.narrow ? 44 : 28; }
  middle(i) { return i * this.tall - this.rows.scrollTop + (this.narrow ? 30 : 14); }

  // seen are the names of the rows in view, and some beyond.
  seen() {
    const first = Math.max(0, Math.floor(this.rows.scrollTop / this.tall) - 10);
    const count = Math.ceil((this.rows.clientHeight || 600) / this.tall) + 20;
    return this.state.source.rows.slice(first, first + count).map((r) => r.name);
  }

  // draw draws before the next frame.
  draw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.paint();
      this.live();
    });
  }

  // live draws again when the present has moved by half a pixel.
  live() {
    clearTimeout(this.timer);
    if (this.state.scale.follow && !document.hidden) this.timer = setTimeout(() => this.draw(), Math.max(30, this.state.scale.perPixel / 2));
  }

  paint() {
    const { source, scale } = this.state;
    const list = source.rows;
    scale.tick();
    this.state.moved?.();
    if (!this.rows.clientWidth) return; // the table is there in its place
    this.layout(list.length);
    const marks = axis(scale);
    const packed = (this.packed = pack(source, scale));
    this.paintLanes(packed, marks);
    const height = this.rows.clientHeight;
    const ctx = fit(this.slots, scale.width, height);
    const known = $('#beat').dataset.state === 'stale' ? source.upTo : source.now();
    drawGrid(ctx, height, scale, { axis: marks, passed: handovers(packed), now: source.now(), known });
    const first = Math.floor(this.rows.scrollTop / this.tall);
    const last = Math.min(list.length, Math.ceil((this.rows.scrollTop + height) / this.tall));
    for (let i = first; i < last; i++) this.paintRow(ctx, i);
    this.paintLabels(first, last);
  }

  layout(count) {
    const height = Math.max(1, count) * this.tall;
    $('#space').style.height = height + 'px';
    this.state.scale.width = Math.max(60, this.rows.clientWidth - this.slots.offsetLeft);
    $('#port').style.height = Math.min(height, this.rows.clientHeight) + 'px';
  }

  paintLanes(packed, marks) {
    const { scale, source } = this.state;
    const high = heightOf(packed);
    const ctx = fit(this.lanes, scale.width, high + axisHeight);
    drawGrid(ctx, high, scale, { axis: marks, passed: handovers(packed), now: source.now() });
    drawLanes(ctx, packed, scale, source.now());
    const p = colours();
    ctx.font = '11px system-ui, sans-serif';
    ctx.textBaseline = 'middle';
    if (packed.hidden) {
      ctx.fillStyle = p.muted;
      ctx.fillText(`and ${packed.hidden} more`, 4, high + axisHeight / 2);
    }
    ctx.textAlign = 'center';
    for (const a of marks) {
      const x = scale.x(a.at);
      if (x < (packed.hidden ? 110 : 28) || x > scale.width - 28) continue;
      ctx.fillStyle = a.midnight ? p.text : p.muted;
      ctx.fillText(a.text, x, high + axisHeight / 2);
    }
    ctx.textAlign = 'start';
    const says = sayLead(packed, stamp).slice(-5).join('; ') + (packed.hidden ? `; ${packed.hidden} more lanes are not drawn` : '');
    if (this.says !== says) this.lanes.setAttribute('aria-label', 'Instances and who leads: ' + ((this.says = says) || 'nobody'));
  }

  paintRow(ctx, i) {
    const { source, scale, chosen, hovered } = this.state;
    const name = source.rows[i].name, line = source.lines.get(name), y = this.middle(i);
    const of = (x) => (x?.name === name ? x.item : undefined);
    const retired = source.retired.get(name);
    drawRow(ctx, y, scale, { items: line?.items, now: source.now(), chosen: of(chosen), hovered: of(hovered), retired });
    if (line && !line.refused) return;
    const p = colours();
    ctx.font = '12px system-ui, sans-serif';
    ctx.textBaseline = 'middle';
    ctx.fillStyle = p.muted;
    ctx.fillText(line ? 'too many slots for this span: zoom in' : '…', 12, y - 1);
  }

  // paintLabels writes the names of the rows in view. A row keeps its link while it is in view; those that left are used again.
  paintLabels(first, last) {
    const { source, chosen } = this.state;
    const need = Math.ceil(this.rows.clientHeight / this.tall) + 1;
    if (this.labels.length !== need) {
      this.labels = Array.from({ length: need }, () => ({ a: document.createElement('a') }));
      $('#names').replaceChildren(...this.labels.map((l) => l.a));
    }
    const free = new Set(this.labels);
    for (let i = first; i < last; i++) {
      const label = this.labels[i % need];
      free.delete(label);
      const retired = source.retired.get(source.rows[i].name);
      if (label.row !== source.rows[i] || label.retired !== retired?.at) write(label, source.rows[i], retired);
      label.a.style.transform = `translateY(${i * this.tall - this.rows.scrollTop}px)`;
      label.a.toggleAttribute('data-on', label.row.name === chosen?.name);
    }
    for (const l of free) l.a.hidden = true;
    for (let i = first; i < last; i++) this.labels[i % need].a.hidden = false;
  }

  // hit finds the slot at a place of the canvas.
  hit(x, y) {
    const { source, scale } = this.state;
    const i = Math.floor((y + this.rows.scrollTop) / this.tall);
    const row = source.rows[i];
    const item = row && near(source.lines.get(row.name)?.items ?? [], x, scale);
    return item && { name: row.name, item, x, y: this.middle(i) };
  }

  // reveal scrolls to a row.
  reveal(i) {
    const top = i * this.tall, view = this.rows;
    if (top < view.scrollTop) view.scrollTop = top;
    else if (top + this.tall > view.scrollTop + view.clientHeight) view.scrollTop = top + this.tall - view.clientHeight;
  }
}

const alarming = ['lost', 'duplicated', 'early', 'failed', 'missed'];

function write(label, row, retired) {
  const { a } = label;
  label.row = row;
  label.retired = retired?.at;
  a.title = row.name + (retired ? ` was retired${retired.release ? ' by ' + retired.release : ''} at ${stamp(retired.at)}` : '') + (countsOf(row.counts) && ': ' + countsOf(row.counts));
  a.toggleAttribute('data-retired', !!retired);
  a.toggleAttribute('data-bad', alarming.some((f) => row.counts[f]));
  if (a.textContent === row.name) return;
  a.textContent = row.name;
  a.href = scheduleOf(row.name);
}
