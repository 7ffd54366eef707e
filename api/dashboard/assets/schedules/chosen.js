// The schedules that are chosen on the list, and the deeds to all of them at once.
import { newKey, place, post } from '../api.js';
import { ask, tell } from '../ask.js';
import { $, el, fill } from '../dom.js';
import { plural } from '../tasks/words.js';
import { number } from '../time.js';

const mostNames = 8; // in a dialog
const typedAbove = 1000; // schedules to run

const deeds = {
  trigger: { name: 'Run', done: 'triggered', body: 'The task of each runs once, outside the grid. The slots come as before.', fits: () => true, call: (name, ...more) => post(place`/schedules/${name}/trigger`, ...more) },
  pause: { name: 'Pause', done: 'paused', body: 'No slot of these runs until they are resumed.', fits: (s) => !s.paused, call: (name, ...more) => post(place`/schedules/${name}/pause`, ...more) },
  resume: { name: 'Resume', done: 'resumed', body: 'Their slots come again, on their old grids.', fits: (s) => s.paused, call: (name, ...more) => post(place`/schedules/${name}/resume`, ...more) },
};

// Chosen keeps which schedules are chosen, by name, and shows a bar while some are. all() lists those that the filters leave; changed is
// called when a deed was done.
export class Chosen {
  constructor(bar, { all, changed }) {
    Object.assign(this, { bar, all, changed, names: new Set() });
    bar.addEventListener('click', (e) => {
      const what = e.target.dataset.act;
      if (what in deeds) this.ask(what);
      if (what === 'all') this.set(all().map((s) => s.name), true);
      if (what === 'none') this.set([...this.names], false);
    });
  }

  has(name) {
    return this.names.has(name);
  }

  set(names, on) {
    for (const n of names) this.names[on ? 'add' : 'delete'](n);
    this.onset?.();
    this.show();
  }

  // show forgets those that are no longer in the list, and says how many are chosen.
  show() {
    const list = this.list();
    this.names = new Set(list.map((s) => s.name));
    this.bar.hidden = !list.length;
    fill(this.bar, { count: `${number(list.length)} chosen` });
    const all = this.all().length;
    $('[data-act=all]', this.bar).textContent = `Choose all ${number(all)}`;
    $('[data-act=all]', this.bar).hidden = all === list.length;
    for (const [deed, { name, fits }] of Object.entries(deeds)) {
      const n = list.filter(fits).length, button = $(`[data-act=${deed}]`, this.bar);
      button.hidden = !n;
      button.textContent = `${name} ${number(n)} …`;
    }
  }

  list() {
    return this.all().filter((s) => this.names.has(s.name));
  }

  // ask asks whether to do a deed to the chosen, and does it to one after the other. Leaving the dialog meanwhile stops it there.
  async ask(deed) {
    const { name, done, body, fits, call } = deeds[deed];
    const list = this.list().filter(fits);
    const reason = deed === 'pause' && el('input', { name: 'reason', maxlength: 200, autocomplete: 'off' });
    const typed = deed === 'trigger' && list.length > typedAbove;
    const said = el('p', { role: 'status' });
    const keys = new Map(list.map((s) => [s.name, newKey()])); // a call without an answer is sent again as the same
    let n = 0;
    await ask({
      title: `${name} ${schedules(list.length)}?`, action: `${name} ${schedules(list.length)}`,
      body: [
        el('p', {}, list.slice(0, mostNames).map((s) => s.name).join(', ') + (list.length > mostNames ? ` and ${number(list.length - mostNames)} others` : '') + '.'), body,
        ...(reason ? [el('label', {}, 'Why', reason, el('span', { class: 'hint' }, 'Shown wherever the pause is.'))] : []),
        ...(typed ? [el('label', {}, `Type ${list.length} to run them`, el('input', { name: 'number', inputmode: 'numeric', required: true, autocomplete: 'off' }))] : []), said,
      ],
      act: async (data, dialog, signal) => {
        if (typed && data.get('number').replace(/[\s,.]/g, '') !== String(list.length)) throw new Error(`type ${list.length}, the number of the schedules`);
        const why = reason && reason.value.trim();
        while (n < list.length && !signal.aborted) {
          const s = list[n];
          try {
            await call(s.name, why ? { reason: why } : undefined, { key: keys.get(s.name) });
          } catch (err) {
            throw new Error(`${s.name}: ${err.message}. ${schedules(n)} ${done} before it.`, { cause: err });
          }
          said.textContent = `${number(++n)} of ${number(list.length)} ${done}.`;
        }
      },
    });
    if (!n) return;
    tell(`${schedules(n)} ${done}.`);
    this.set(list.slice(0, n).map((s) => s.name), false);
    this.changed();
  }
}

const schedules = (n) => plural(n, 'schedule');
