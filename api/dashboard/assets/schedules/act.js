// Deeds to a schedule.
import { newKey, place, post, remove } from '../api.js';
import { ask, tell } from '../ask.js';
import { $, calm, el, may } from '../dom.js';
import { json, momentAt, momentIn } from '../form.js';
import { pathOf as taskPath, plural } from '../tasks/words.js';
import { length, ms, number, stamp, zoneName } from '../time.js';
import { gapOf } from './words.js';

// do at once; each resolves to true if it was done.
async function now(call, done) {
  try {
    done(await call());
    return true;
  } catch (err) {
    tell(err.message, 'bad');
    return false;
  }
}

// pause asks why a schedule is paused. Everybody who meets the pause reads it.
export function pause(name) {
  const reason = el('input', { name: 'reason', maxlength: 200, autocomplete: 'off' });
  return ask({
    title: `Pause ${name}?`, body: ['No slot runs until it is resumed.', el('label', {}, 'Why', reason, el('span', { class: 'hint' }, 'Shown wherever the pause is.'))], action: 'Pause',
    act: async () => {
      const why = reason.value.trim();
      const r = await post(place`/schedules/${name}/pause`, why ? { reason: why } : undefined);
      tell(`${name}: ${r.result}. No slot runs until it is resumed.`);
      return true;
    },
  });
}

export const resume = (name) => now(() => post(place`/schedules/${name}/resume`), (r) => tell(`${name}: ${r.result}, on its old grid.`));
export const restore = (name) => now(() => post(place`/schedules/${name}/restore`), () => tell(`${name} is back, on its old grid.`));

// trigger asks whether to run a schedule once, with its own payload or another.
export function trigger(name) {
  const payload = el('textarea', { name: 'payload', rows: 5, spellcheck: 'false' });
  const label = el('label', {}, 'Payload', payload, el('span', { class: 'hint' }, 'JSON, in place of that of the schedule.'));
  const more = el('details', {}, el('summary', {}, 'With another payload'), label);
  const key = newKey(); // a call without an answer is sent again as the same
  return ask({
    title: `Run ${name} now?`, body: ['Its task runs once, outside the grid. The slots come as before.', more], action: 'Trigger it',
    act: async () => {
      const text = payload.value.trim();
      const r = await post(place`/schedules/${name}/trigger`, text ? { payload: json('payload', text) } : undefined, { key });
      tell(['Triggered: ', el('a', { href: taskPath(r.id) }, r.id)]);
      return true;
    },
  });
}

// drop asks whether to delete a schedule.
export function drop(s) {
  const body = ['No later slot runs. Tasks of slots that have come stay. It can be restored for 30 days.'];
  const release = s.release ? `Release ${s.release}` : 'A release';
  if (s.origin === 'declared') body.push(`${release} declares it: its next leader makes it anew. To end it, take it out of the declaration.`);
  return ask({
    title: `Delete ${s.name}?`, body, action: 'Delete the schedule', danger: true,
    act: async () => {
      await remove(place`/schedules/${s.name}`);
      tell(`${s.name} is deleted.`);
      return true;
    },
  });
}

const day = 24 * 3_600_000;
const judged = 9000; // slots, of the 10,000 that the server judges at once
const typedAbove = 1000; // slots to run
const dated = { placeholder: '2026-11-26 14:00', spellcheck: 'false', autocomplete: 'off' };

// backfill asks for a time, counts its slots, and runs them. It offers those of a week whose work was not done, or of less of a schedule that
// comes very often.
export function backfill(s) {
  const name = s.name;
  const back = Math.min(7 * day, judged * (gapOf(s) ?? day));
  const from = el('input', { ...dated, name: 'from', required: true, value: momentIn(Date.now() - back) });
  const to = el('input', { ...dated, name: 'to' });
  const failed = el('input', { type: 'checkbox', name: 'failed', checked: true });
  const again = el('input', { type: 'checkbox', name: 'again' });
  const said = el('p', { role: 'status' }, 'Counting …'), typed = el('div');
  const key = newKey();
  let about = 0;
  const order = (more) => {
    const b = { from: momentAt('from', from.value), ...more };
    if (to.value) b.to = momentAt('to', to.value);
    if (failed.checked) b.failed = true;
    if (again.checked) b.again = true;
    return b;
  };
  const count = (signal) => post(place`/schedules/${name}/backfill`, order({ dry_run: true }), { key: undefined, signal });
  const fields = el('div', { class: 'fields' },
    el('div', { class: 'pair' },
      el('label', {}, 'From', from, el('span', { class: 'hint' }, `In ${zoneName()}; this moment included.`)),
      el('label', {}, 'To', to, el('span', { class: 'hint' }, 'Empty: now.'))),
    el('label', { class: 'check' }, failed, ' only slots that failed, or were missed, skipped, cancelled or lost'),
    el('label', { class: 'check' }, again, ' also those that a backfill of the last seven days has run'));
  // told says what would run, and asks for its number if that is large.
  const told = (r) => {
    about = r.added;
    typed.replaceChildren(...(about > typedAbove ? [el('label', {}, `Type ${about} to run them`, el('input', { name: 'number', inputmode: 'numeric', required: true, autocomplete: 'off' }))] : []));
    return wordsOf(r, s, failed.checked, again.checked);
  };
  return ask({
    title: `Backfill ${name}`, action: 'Run these slots',
    body: ['The task of each of these slots runs, oldest first and behind all tasks on time.', fields, said, typed],
    ready: (dialog, signal) => counting(dialog, { fields, said, count, told }, signal),
    act: async (data) => {
      if (about > typedAbove && data.get('number')?.replace(/[\s,.]/g, '') !== String(about)) throw new Error(`type ${about}, the number of the slots`);
      const r = await post(place`/schedules/${name}/backfill`, order(), { key });
      tell(`${plural(r.added, 'slot')} of ${number(r.slots)} will run.`);
      return true;
    },
  });
}

// wordsOf says which slots would run: their fates, the first and the last, and how long they take one after the other.
function wordsOf(r, s, failed, again) {
  if (!r.slots) return failed ? 'No slot of this time failed or was missed.' : 'This time has no slot.';
  const ran = r.slots - r.added;
  const fates = Object.entries(r.outcomes ?? {}).map(([fate, n]) => `${number(n)} ${fate.replaceAll('_', ' ')}`).join(', ');
  const parts = [plural(r.slots, 'slot') + (fates ? ` (${fates})` : '') + (ran ? `, of which an earlier backfill has added ${number(ran)}: ${number(r.added)} would run.` : '.')];
  if (r.first) parts.push(`From ${stamp(r.first)} to ${stamp(r.last)}.`);
  if (r.added && s.usual) parts.push(`They run one after the other, while no slot on time waits: ${length(r.added * ms(s.usual))} in all, as a run usually takes ${length(ms(s.usual))}.`);
  if (again) parts.push('Those of an earlier backfill that still wait are not run twice.');
  return parts.join(' ');
}

// counting counts the slots whenever the fields change, and lets the dialog be confirmed if there are some.
async function counting(dialog, { fields, said, count, told }, signal) {
  const ok = $('[data-act=ok]', dialog);
  const error = $('[data-field=error]', dialog);
  let turn = 0;
  const look = async () => {
    const mine = ++turn;
    ok.disabled = true;
    let r, wrong = '';
    try {
      r = await count(signal);
    } catch (err) {
      if (signal.aborted) return false;
      wrong = err.message;
    }
    if (mine !== turn) return undefined;
    const some = r?.added > 0;
    said.textContent = r ? told(r) : '';
    ok.textContent = some ? `Run ${plural(r.added, 'slot')}` : 'Run these slots';
    error.textContent = wrong;
    error.hidden = !wrong;
    ok.disabled = !some;
    return some;
  };
  fields.addEventListener('input', () => (ok.disabled = true));
  fields.addEventListener('input', calm(look, 300));
  return look();
}

const labels = {
  trigger: 'Trigger …', pause: 'Pause …', resume: 'Resume', backfill: 'Backfill …', edit: 'Edit', copy: 'Make one like it', delete: 'Delete …', restore: 'Restore',
};

// deedsFor are those for a schedule as it stands; the server would refuse the others.
export function deedsFor(s) {
  if (s.deleted) return may('admin') ? ['restore'] : [];
  if (s.retired) return [];
  const deeds = may('operator') ? ['trigger', s.paused ? 'resume' : 'pause', 'backfill'] : [];
  if (!may('admin')) return deeds;
  return s.encrypted ? [...deeds, 'delete'] : [...deeds, 'edit', 'copy', 'delete']; // a payload that cannot be shown would be lost
}

// button is one that does a deed. The element that holds it has the listener.
export const button = (deed, props = {}) => el('button', { type: 'button', 'data-act': deed, ...props }, labels[deed]);

// act does a deed, and resolves to true if something has changed.
export function act(deed, s) {
  switch (deed) {
    case 'trigger': return trigger(s.name);
    case 'pause': return pause(s.name);
    case 'resume': return resume(s.name);
    case 'backfill': return backfill(s);
    case 'delete': return drop(s);
    case 'restore': return restore(s.name);
  }
}
