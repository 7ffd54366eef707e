// What can be done to tasks: to one, or by the server to all that a filter matches.
import { newKey, place, post, remove } from '../api.js';
import { ask, tell } from '../ask.js';
import { $, el, may } from '../dom.js';
import { number } from '../time.js';
import { filterWords, plural } from './words.js';

const deeds = {
  cancel: { name: 'Cancel', done: 'cancelled, or asked to stop', doing: 'Cancelling' },
  retry: { name: 'Retry', done: 'due again', doing: 'Retrying' },
  delete: { name: 'Delete', done: 'deleted', doing: 'Deleting' },
};

const onState = { running: ['cancel'], due: ['cancel'], dead: ['retry', 'delete'], done: ['delete'] };

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

// renew refreshes a view after a deed to what a row shows. If the row has gone, the focus goes to the one beside it.
export async function renew(view, row) {
  const beside = row.nextElementSibling ?? row.previousElementSibling;
  await view.refresh();
  if (!row.isConnected && beside) $('a', beside)?.focus();
}

// many asks whether to do a deed to all tasks that a filter matches: it says first how many there are, then how far the server is. It
// resolves to the sum of what the server did, or to undefined if that is nothing.
export async function many(deed, filter) {
  const words = deeds[deed];
  const said = el('p', { role: 'status' }, 'Counting …');
  const bar = el('progress', { hidden: true, 'aria-label': words.doing });
  const whole = deed === 'cancel' && !filter.state ? { ...filter, state: '' } : { state: 'dead', ...filter };
  let matched = 0;
  let sum;
  await ask({
    title: `${words.name} all ${filterWords(whole, deed === 'cancel' && !whole.state ? 'due and running tasks' : 'tasks')}?`,
    body: [said, bar], action: words.name + ' them all', danger: deed !== 'retry',
    ready: async (dialog, signal) => {
      const count = await walk({ action: deed, filter, dry_run: true }, signal, (n) => (said.textContent = `Counting … ${plural(n.matched)} so far`));
      matched = count.matched;
      const rest = count.unreadable ? ` ${plural(count.unreadable)} more cannot be read, and stay as they are.` : '';
      said.textContent = (matched ? `${plural(matched)} match now. Those that come to match meanwhile are included.` : 'No task matches now.') + rest;
      return matched > 0;
    },
    act: async (_, dialog, signal) => {
      $('[data-act=cancel]', dialog).textContent = 'Stop';
      bar.hidden = false;
      bar.max = matched;
      const done = await walk({ action: deed, filter }, signal, (n) => {
        sum = n;
        bar.max = Math.max(bar.max, n.matched);
        bar.value = n.matched;
        said.textContent = `${number(n.changed)} of about ${plural(matched)} ${words.done}. Leave this page open meanwhile.`;
      });
      return done;
    },
  });
  if (sum) tell(`${plural(sum.changed)} ${words.done}` + (sum.next ? '; then stopped.' : sum.changed < sum.matched ? `; ${plural(sum.matched - sum.changed)} had changed meanwhile.` : '.'));
  return sum;
}

// walk has the server work on page after page, and says after each how far it is. A page that got no answer is asked for again, under
// the same key: the server does nothing twice.
async function walk(bulk, signal, say) {
  const sum = { matched: 0, changed: 0, unreadable: 0, next: '' };
  do {
    const page = await patiently({ ...bulk, after: sum.next || undefined }, signal);
    for (const name of ['matched', 'changed', 'unreadable']) sum[name] += page[name];
    sum.next = page.next ?? '';
    say(sum);
  } while (sum.next && !signal.aborted);
  return sum;
}

const passing = [0, 408, 429, 503];

async function patiently(bulk, signal) {
  const key = bulk.dry_run ? undefined : newKey();
  for (let tries = 1; ; tries++) {
    try {
      return await post('/tasks/bulk', bulk, { key });
    } catch (err) {
      if (!passing.includes(err.status) || tries === 6 || signal.aborted) throw err;
    }
    await new Promise((resolve) => setTimeout(resolve, 500 * 2 ** tries));
  }
}
