// What can be done to tasks: to one, or by the server to all that a filter matches.
import { newKey, place, post, remove } from '../api.js';
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

// button is one that does a deed. What holds it has the listener.
export const button = (deed, label, props = {}) => el('button', { type: 'button', 'data-act': deed, ...props }, label ?? deeds[deed].name);

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

// renew refreshes a view after a deed to what a row shows, when it is done. If the row has gone, and the focus with it, the one beside it
// gets the focus.
export async function renew(view, row, done) {
  const beside = row.nextElementSibling ?? row.previousElementSibling;
  await done;
  await view.refresh();
  if (!row.isConnected && beside && document.activeElement === document.body) $('a', beside)?.focus();
}

// whatOf says what a deed to all tasks that a filter matches is done to: "dead tasks of type mail".
export function whatOf(deed, filter) {
  const live = deed === 'cancel' && !filter.state;
  return filterWords(live ? filter : { state: 'dead', ...filter }, live ? 'tasks that run, wait, retry or are planned' : 'tasks');
}

// many asks whether to do a deed to all tasks that a filter matches: it says first how many there are. It resolves to the bulk action that
// has begun, or to undefined. The page may be left then: the instances go on.
export function many(deed, filter) {
  const words = deeds[deed];
  const said = el('p', { role: 'status' }, 'Counting …');
  let about = 0;
  const key = newKey(); // for each try to begin the same one
  return ask({
    title: `${words.name} all ${whatOf(deed, filter)}?`, body: said, action: words.name + ' them all', danger: deed !== 'retry',
    ready: async (dialog, signal) => {
      const count = await countAll({ action: deed, filter, dry_run: true }, signal, (n) => (said.textContent = `Counting … ${plural(n.matched)} so far`));
      about = count.matched;
      const rest = count.unreadable ? ` ${plural(count.unreadable)} more cannot be read, and stay as they are.` : '';
      said.textContent = (about ? `${plural(about)} match now. Those that come to match meanwhile are included. The server does it: you need not wait.` : 'No task matches now.') + rest;
      return about > 0;
    },
    act: () => post('/bulk', { action: deed, filter, about }, { key }),
  });
}

// countAll has the server count page after page, and says after each how far it is.
async function countAll(bulk, signal, say) {
  const sum = { matched: 0, unreadable: 0, next: '' };
  do {
    const page = await post('/tasks/bulk', { ...bulk, after: sum.next || undefined }, { signal, key: undefined });
    sum.matched += page.matched;
    sum.unreadable += page.unreadable;
    sum.next = page.next ?? '';
    say(sum);
  } while (sum.next && !signal.aborted);
  return sum;
}
