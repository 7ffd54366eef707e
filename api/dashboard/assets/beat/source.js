// The data of the beat view: which rows there are, the lines of those that are seen, and who led. It asks for what is missing, and for
// the newest part again and again.
import { all, get, shared } from '../api.js';
import { learn } from '../instances/name.js';
import { ask, splice, tally, tooMuch, worse } from './lines.js';
import { stepOf } from './scale.js';

const batch = 60; // schedules in one call: their names are in its address
const together = 3000; // ms: an answer is for all that ask within this time
const kept = 400; // lines that are kept

export class Source {
  constructor() {
    Object.assign(this, { lines: new Map(), rows: [], terms: [], sessions: [], clock: 0, indexed: {}, retired: new Map(), stage: 0, window: undefined, unreadable: '' });
  }

  now() { return Date.now() + this.clock; }

  // refresh asks for what the view needs: { scale, seen (the names of the rows in view), order, match }. The first calls ask for little, so
  // that there is something to see at once: names, then the lines in view, then the sums of all. It returns which partitions did not answer.
  async refresh({ scale, order, match, seen }, signal) {
    if (order === 'worst' || match) this.stage = 2;
    const stage = this.stage;
    this.lacks = [];
    if (stage === 0) await this.begin(signal);
    if (stage === 2) await this.index(scale, order, signal);
    this.sort(order, match);
    if (stage > 0) await this.fill(scale, seen(), signal);
    this.stage = Math.min(2, stage + 1);
    return { could_not_ask: [...new Map([...(this.indexed.lacks ?? []), ...this.lacks].map((u) => [u.source, u])).values()] };
  }

  miss({ could_not_ask = [] }) { this.lacks.push(...could_not_ask); }

  // complete reports whether all has been asked for once.
  get complete() { return this.stage === 2 && this.indexed.at !== undefined; }

  // fill asks for the lines of rows: those that are missing, and the newest part of the others.
  async fill(scale, names, signal) {
    this.frame(scale);
    const missing = names.filter((n) => this.lines.get(n)?.window !== this.window);
    for (let i = 0; i < missing.length; i += batch) await this.load(missing.slice(i, i + batch), signal);
    await this.newest(names.filter((n) => !missing.includes(n)), signal);
    this.forget(names);
  }

  // begin asks for the first schedules alone, so that there is something to see before all are counted.
  async begin(signal) {
    const page = await get('/schedules', { limit: batch }, { signal });
    this.all = page.items.map((s) => ({ name: s.name, ...tally([]) }));
  }

  // index asks which schedules there are, with the sum of each over the whole view.
  async index(scale, order, signal) {
    const last = this.indexed;
    const moved = Math.abs(last.end - scale.end) > scale.span / 4 || last.span !== scale.span;
    const wait = (order === 'worst' || last.lacks?.length ? (moved ? 0 : 15_000) : 60_000) * (this.all?.length > 2000 ? 3 : 1);
    if (last.at && Date.now() - last.at < wait) return;
    const span = Math.ceil(scale.span);
    const retired = await all('/schedules', { retired: true }, 5000);
    this.miss(retired);
    this.retired = new Map(retired.items.map((s) => [s.name, s.retired]));
    try {
      const beat = await ask({ from: scale.from, to: scale.end, step: span + 1, signal });
      this.take(beat);
      this.all = [...beat.lines].map(([name, items]) => ({ name, ...tally(items) }));
      this.counted = true;
    } catch (err) {
      if (!tooMuch(err)) throw err;
      this.all = (await all('/schedules', {}, 100_000)).items.map((s) => ({ name: s.name, ...tally([]) }));
      this.counted = false; // the span has too many slots to put the worst first
    }
    this.indexed = { at: Date.now(), end: scale.end, span: scale.span, lacks: [...this.lacks] };
  }

  stale() { this.indexed.at = 0; }

  sort(order, match) {
    const test = matcher(match);
    this.rows = this.all.filter((r) => test(r.name));
    if (order === 'worst' && this.counted) this.rows.sort((a, b) => worse(a, b) || (a.name < b.name ? -1 : 1));
  }

  // frame says for which time lines are asked: the view with half of it on both sides, so that a small step to the side needs no call.
  frame(scale) {
    const step = stepOf(scale.perPixel);
    const w = this.window;
    const room = scale.span / 2;
    const inside = w && scale.from >= w.from && (scale.end <= w.to || w.open) && scale.from - w.from < scale.span * 3;
    if (w?.step === step && inside) return;
    const from = Math.floor((scale.from - room) / step) * step;
    const open = scale.end + room >= this.now(); // it goes on to the present, and with it
    this.window = { step, from, to: open ? this.now() : Math.ceil((scale.end + room) / step) * step, open };
  }

  async load(names, signal) {
    const w = this.window;
    const to = w.open ? this.now() : w.to;
    try {
      const beat = await ask({ ...w, to, names, signal });
      this.take(beat);
      for (const name of names) {
        const items = beat.lines.get(name), gone = beat.unknown?.includes(name);
        // One that is neither there nor gone lies in a partition that did not answer: it is asked for again.
        this.lines.set(name, items || gone ? { window: w, items: items ?? [], upTo: beat.to, gone } : { items: [], ...this.lines.get(name) });
      }
      if (beat.unknown) this.stale();
    } catch (err) {
      if (err.status === 404) return this.gone(names);
      if (!tooMuch(err)) throw err;
      if (names.length === 1) return void this.lines.set(names[0], { window: w, items: [], refused: err.message });
      const half = names.length >> 1;
      await this.load(names.slice(0, half), signal);
      await this.load(names.slice(half), signal);
    }
  }

  // gone notes that schedules are no longer there, and had no slot in the view.
  gone(names) {
    this.stale();
    for (const name of names) this.lines.set(name, { items: [], ...this.lines.get(name), window: this.window, gone: true });
  }

  // newest asks for the part of lines that may have changed: from the oldest slot that waits on.
  async newest(names, signal) {
    const w = this.window;
    if (!w.open) return; // nothing of the past changes, unless something waits, and that is asked for when the view moves
    names = names.filter((n) => !this.lines.get(n).refused && !this.lines.get(n).gone);
    if (!names.length) return;
    let from = this.now() - Math.max(10_000, w.step * 3);
    for (const n of names) from = Math.min(from, this.lines.get(n).items.find((x) => x.fate === 'pending' || x.fate === 'running' || x.counts?.pending || x.counts?.running)?.at ?? from, Date.parse(this.lines.get(n).upTo) - 5000);
    const whole = w.step * Math.ceil(together / w.step); // so that pages that are open ask for the same
    from = Math.max(w.from, Math.floor(from / whole) * whole);
    for (let i = 0; i < names.length; i += batch) {
      const some = names.slice(i, i + batch);
      const beat = await ask({ from, to: Math.ceil(this.now() / together) * together, step: w.step, names: some, signal, ...shared }).catch((err) => {
        if (err.status !== 404) throw err;
        this.gone(some);
      });
      if (!beat) continue;
      this.take(beat, from);
      // A schedule that is gone keeps the slots that it had: only the newest part was asked for.
      for (const n of beat.unknown ?? []) this.lines.set(n, { ...this.lines.get(n), gone: true });
      if (beat.unknown) this.stale();
      for (const n of some.filter((x) => beat.lines.has(x))) {
        const line = this.lines.get(n);
        this.lines.set(n, { ...line, items: splice(line.items, from, beat.lines.get(n)), upTo: beat.to });
      }
    }
  }

  // take keeps who was there and who led. Those of an older time stay.
  take(beat) {
    this.clock = beat.clock ?? this.clock;
    this.upTo = Math.max(this.upTo ?? 0, Math.min(Date.parse(beat.to), Date.parse(beat.now)));
    this.unreadable = beat.unreadable ?? '';
    this.miss(beat);
    for (const s of beat.sessions) learn(s.instance, s.host);
    merge(this.terms, beat.terms, (t) => t.epoch + '@' + (t.partition ?? ''));
    merge(this.sessions, beat.sessions, (s) => s.instance + ' ' + (s.from ?? ''));
  }

  forget(names) {
    if (this.lines.size <= kept) return;
    const seen = new Set(names);
    for (const name of this.lines.keys()) {
      if (this.lines.size <= kept) return;
      if (!seen.has(name)) this.lines.delete(name);
    }
  }
}

function merge(list, more, key) {
  for (const x of more) {
    const i = list.findIndex((y) => key(y) === key(x));
    if (i < 0) list.push(x);
    else list[i] = x;
  }
}

// matcher tests names: a part of them, or a pattern with * and ?.
export function matcher(text) {
  if (!text) return () => true;
  if (!/[*?]/.test(text)) return (name) => name.toLowerCase().includes(text.toLowerCase());
  const pattern = text.toLowerCase();
  return (name) => like(name.toLowerCase(), pattern);
}

// like compares a name with a pattern. A regular expression would try each way to share the name out among many stars: seven of them
// hold up a page for seconds.
function like(name, pattern) {
  let n = 0, p = 0, star = -1, from = 0;
  while (n < name.length) {
    if (pattern[p] === '*') [star, from] = [p++, n];
    else if (pattern[p] === '?' || pattern[p] === name[n]) [p, n] = [p + 1, n + 1];
    else if (star >= 0) [p, n] = [star + 1, ++from];
    else return false;
  }
  while (pattern[p] === '*') p++;
  return p === pattern.length;
}
