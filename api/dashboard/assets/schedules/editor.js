// The form of a definition. While it is filled in, it shows the slots that would come. It shows a change before it is made.
import { get } from '../api.js';
import { ask } from '../ask.js';
import { $, $$, calm, el, fill } from '../dom.js';
import { clear, json, listOf, refused, unsaved, wholeNumber } from '../form.js';
import { suggest } from '../tasks/filters.js';
import { slotList } from './next.js';
import { previewOf } from './preview.js';
import { review } from './review.js';
import { cadence, capital, zoneOf } from './words.js';

const texts = ['task', 'start', 'jitter', 'missed', 'catch_up', 'overlap', 'until', 'queue', 'priority', 'timeout', 'backoff', 'backoff_cap'];
const numbers = ['max_runs', 'max_attempts'];
const beats = ['url', 'start', 'fail']; // of a heartbeat
const ofCron = ['cron', 'timezone', 'dst_gap', 'dst_overlap'];
const ofEvery = ['every', 'start'];
const whens = [...ofCron, ...ofEvery, 'jitter', 'until']; // the fields that the preview judges

// offer suggests types and queues: those that have tasks, and those that the one who looks may enqueue.
async function offer() {
  const [counts, me] = await Promise.all([get('/counts'), get('/me')]);
  suggest([...counts.lanes, ...(me.types ?? []).map((type) => ({ type, queue: me.queues?.[0] ?? 'default' }))]);
}

export class Editor {
  // done(name) is called after a change, leave() when it is given up.
  constructor({ done, leave }) {
    Object.assign(this, { form: $('#definition'), done, leave });
    this.unsaved = unsaved(this.form);
    const look = calm(() => this.preview(), 300);
    this.form.addEventListener('input', () => {
      this.showWhen();
      look();
    });
    this.form.addEventListener('submit', (e) => {
      e.preventDefault();
      this.review();
    });
    $('[data-act=leave]', this.form).addEventListener('click', () => leave?.());
    document.addEventListener('zone', () => this.was && this.preview());
    for (const zone of Intl.supportedValuesOf?.('timeZone') ?? []) $('#zones').append(el('option', { value: zone }));
    offer().catch(() => {}); // only suggestions
  }

  // show fills the form with what a schedule says. One with a revision is changed; else one is made.
  show(s) {
    this.was = s;
    this.made = !s.revision || !s.name;
    for (const e of $$('[data-new]', this.form)) e.hidden = !this.made;
    for (const e of $$('[data-old]', this.form)) e.hidden = this.made;
    const payload = s.payload === undefined ? '' : JSON.stringify(s.payload, null, 2);
    const values = { ...s, payload, secret: s.secret?.join(', '), dst_gap: s.dst?.gap, dst_overlap: s.dst?.overlap };
    for (const part of beats) values['heartbeat_' + part] = s.heartbeat?.[part];
    if (values.missed === 'once') values.missed = '';
    if (values.overlap === 'allow') values.overlap = '';
    for (const name of [...texts, ...numbers, ...ofCron, 'every', 'name', 'payload', 'secret', ...beats.map((part) => 'heartbeat_' + part)]) this.form.elements[name].value = values[name] ?? '';
    this.form.elements.when.value = s.cron ? 'cron' : 'every';
    clear(this.form);
    this.unsaved.saved();
    this.showWhen();
    this.preview();
  }

  // mayLeave asks whether to give up the changes. It resolves to true if so, or if there are none.
  async mayLeave() {
    if (this.unsaved.changed()) {
      const sure = await ask({
        title: 'Give up the changes?', body: 'They are not saved.', action: 'Give them up', danger: true, act: async () => true,
        ready: async (dialog) => void ($('[data-act=cancel]', dialog).textContent = 'Go on editing'),
      });
      if (!sure) return false;
    }
    this.unsaved.saved();
    return true;
  }

  showWhen() {
    for (const e of $$('[data-when]', this.form)) e.hidden = e.dataset.when !== this.form.elements.when.value;
  }

  // definition is what the form says. A field that is empty is left out. It throws a refusal for what cannot be sent at all.
  definition() {
    const value = (name) => this.form.elements[name].value.trim();
    const d = {};
    const cron = this.form.elements.when.value === 'cron';
    const left = cron ? ofEvery : ofCron;
    for (const name of ['name', ...ofEvery, ...ofCron, ...texts]) if (value(name) && !left.includes(name) && !name.startsWith('dst_')) d[name] = value(name);
    if (!this.made) d.name = this.was.name;
    const dst = Object.fromEntries(['gap', 'overlap'].map((k) => [k, value('dst_' + k)]).filter(([, v]) => cron && v));
    if (Object.keys(dst).length) d.dst = dst;
    const heartbeat = Object.fromEntries(beats.map((part) => [part, value('heartbeat_' + part)]).filter(([, v]) => v));
    if (Object.keys(heartbeat).length) d.heartbeat = { url: '', ...heartbeat };
    for (const name of numbers) if (value(name)) d[name] = wholeNumber(name, value(name));
    if (value('secret')) d.secret = listOf(value('secret'));
    if (value('payload')) d.payload = json('payload', value('payload'));
    return d;
  }

  // preview shows the slots that come, or what is wrong with when they come.
  async preview() {
    this.call?.abort();
    const call = (this.call = new AbortController());
    const box = $('.ahead', this.form);
    const value = (name) => this.form.elements[name].value.trim();
    const cron = this.form.elements.when.value === 'cron';
    if (!value(cron ? 'cron' : 'every')) return fill(box, { words: 'Say when it runs.', slots: null });
    const d = { name: value('name'), until: value('until'), jitter: value('jitter') };
    if (cron) Object.assign(d, { cron: value('cron'), timezone: value('timezone'), dst: { gap: value('dst_gap'), overlap: value('dst_overlap') } });
    else Object.assign(d, { every: value('every'), start: value('start') });
    try {
      const next = await previewOf(d, this.made ? undefined : this.was, call.signal);
      clear(this.form, whens);
      const paused = this.was?.paused ? ' It is paused: none of these runs until it is resumed.' : '';
      fill(box, { words: capital(cadence(d)) + (zoneOf(d) && ' in ' + zoneOf(d)) + '.' + paused, slots: slotList(next.slots, zoneOf(d)) });
    } catch (err) {
      if (call.signal.aborted) return;
      clear(this.form, whens);
      fill(box, { words: err.message, slots: null });
      const fields = (err.fields ?? []).map((f) => ({ ...f, pointer: '#/' + f.field.split(' ')[0] })); // parameters: they have no place in a body
      if (fields.length) refused(this.form, { message: err.message, fields }, { quiet: true });
    }
  }

  async review() {
    clear(this.form);
    const submit = $('[type=submit]', this.form);
    submit.disabled = true;
    try {
      const d = this.definition();
      const done = await review(d, this.made ? undefined : this.was);
      if (!done) return;
      this.unsaved.saved();
      this.done(done.name);
    } catch (err) {
      refused(this.form, err);
    } finally {
      submit.disabled = false;
    }
  }
}
