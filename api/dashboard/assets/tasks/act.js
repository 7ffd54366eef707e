// Deeds to tasks: to one, or by the server to all that a filter matches.
import { place, post, remove } from '../api.js';
import { ask, tell } from '../ask.js';
import { $, el, may } from '../dom.js';
import { filterWords, plural } from './words.js';

export const deeds = {
  cancel: { name: 'Cancel', done: 'cancelled, or asked to stop', doing: 'Cancelling' },
  retry: { name: 'Retry', done: 'due again', doing: 'Retrying' },
  delete: { name: 'Delete', done: 'deleted', doing: 'Deleting' },
};

const onState = { running: ['cancel'], waiting: ['cancel'], retrying: ['cancel'], planned: ['cancel'], dead: ['retry', 'delete'], done: ['delete'] };

// deedsFor are those for one task in a state; the server would refuse the others.
export const deedsFor = (state) => (may('operator') ? (onState[state] ?? []) : []);

// deedsForAll are those for the tasks of a state ("": of any). To delete many needs an admin.
export const deedsForAll = (state) => (state ? deedsFor(state) : ['cancel', 'retry']).filter((d) => may(d === 'delete' ? 'admin' : 'operator'));

// button is one that does a deed to one task, or asks first: then it ends in dots. The element that holds it has the listener.
export const button = (deed, label, props = {}) => el('button', { type: 'button', 'data-act': deed, ...props }, label ?? deeds[deed].name + (deed === 'retry' ? '' : ' …'));

// one does a deed to a task, and resolves to true if it was done.
export async function one(deed, t) {
  if (deed === 'retry') {
    try {
      await post(place`/tasks/${t.id}/retry`);
    } catch (err) {
      tell(err.message, 'bad');
      return false;
    }
    tell(`${t.id} is due again.`);
    return true;
  }
  const runs = t.state === 'running';
  const body = deed === 'delete' ? 'onbeat forgets it, with its payload and its errors.' : runs ? 'The instance that runs it is asked to stop it. It may have done something already.' : 'It will not run.';
  return ask({
    title: `${deeds[deed].name} ${t.id}?`, body, action: deed === 'cancel' ? 'Cancel the task' : 'Delete the task', danger: true,
    act: async () => {
      const r = deed === 'delete' ? await remove(place`/tasks/${t.id}`) : await post(place`/tasks/${t.id}/cancel`);
      tell(`${t.id}: ${r.result}.`);
      return true;
    },
  });
}

// several does a deed to each of some tasks to which it applies, and resolves to true if it was done to one.
export async function several(deed, tasks) {
  const some = tasks.filter((t) => deedsFor(t.state).includes(deed));
  const call = { retry: (t) => post(place`/tasks/${t.id}/retry`), cancel: (t) => post(place`/tasks/${t.id}/cancel`), delete: (t) => remove(place`/tasks/${t.id}`) }[deed];
  const each = async () => {
    const refused = [];
    for (const t of some) await call(t).catch((err) => refused.push(`${t.id}: ${err.message}`)); // one after the other: they are few
    const done = some.length - refused.length;
    if (done) tell(`${plural(done)} ${deeds[deed].done}.`);
    if (refused.length) tell(`${plural(refused.length)} refused. ${refused[0]}`, 'bad');
    return done > 0;
  };
  if (deed === 'retry') return each();
  const body = deed === 'delete' ? 'onbeat forgets them, with their payloads and their errors. This cannot be undone.' : 'Those that wait will not run. Those that run are asked to stop, and may have done something already.';
  return ask({ title: `${deeds[deed].name} ${plural(some.length)}?`, body, action: `${deeds[deed].name} ${plural(some.length)}`, danger: true, act: each });
}

// renew refreshes a view after a deed to what a row shows, when it is done. If the row has gone, and the focus with it, the one beside it
// gets the focus.
export async function renew(view, row, done) {
  const beside = row.nextElementSibling ?? row.previousElementSibling;
  await done;
  await view.refresh();
  if (!row.isConnected && beside && document.activeElement === document.body) $('a', beside)?.focus();
}

// whatOf names the tasks of a filter that a deed applies to: "dead tasks of type mail".
export function whatOf(deed, filter) {
  const live = deed === 'cancel' && !filter.state;
  return filterWords(live ? filter : { state: 'dead', ...filter }, live ? 'tasks that run, wait, retry or are planned' : 'tasks');
}
