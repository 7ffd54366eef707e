// A deed to all tasks that a filter matches. The server does it. A dialog asks with care for a deed that cannot be undone.
import { get, newKey, post } from '../api.js';
import { ask } from '../ask.js';
import { $, el } from '../dom.js';
import { number } from '../time.js';
import { deeds, whatOf } from './act.js';
import { line, plural } from './words.js';

const typedAbove = 1000; // tasks to delete
const mostGroups = 5;

// many asks whether to do a deed to all tasks that a filter matches: it says first how many there are. It resolves to the bulk action that
// has begun, or to undefined. The page may be left then: the instances go on.
export function many(deed, filter) {
  const words = deeds[deed];
  const said = el('p', { role: 'status' }, 'Counting …');
  let about = 0;
  const key = newKey(); // for each try to begin the same one
  const careful = deed === 'delete' ? care({ state: 'dead', ...filter }) : undefined;
  return ask({
    title: `${words.name} all ${whatOf(deed, filter)}?`, body: [said, ...(careful?.body ?? [])], action: words.name + ' them all', danger: deed !== 'retry',
    ready: async (dialog, signal) => {
      const [count] = await Promise.all([
        countAll({ action: deed, filter, dry_run: true }, signal, (n) => (said.textContent = `Counting … ${plural(n.matched)} so far`)), careful?.look(signal),
      ]);
      about = count.matched;
      const rest = count.unreadable ? ` ${plural(count.unreadable)} more cannot be read, and stay as they are.` : '';
      said.textContent = (about ? `${plural(about)} match now. Those that come to match meanwhile are included. The server does it: you need not wait.` : 'No task matches now.') + rest;
      if (about) $('[data-act=ok]', dialog).textContent = `${words.name} ${plural(about)}`;
      careful?.know(about, signal);
      return about > 0;
    },
    act: (data) => {
      careful?.check(data, about);
      return post('/bulk', { action: deed, filter, about, ...(data.get('reason')?.trim() && { reason: data.get('reason').trim() }) }, { key });
    },
  });
}

// care has the parts of a dialog that deletes: the errors that the tasks died of, a copy of them, why, and their number if they are many.
function care(filter) {
  const groups = el('ul');
  const copy = el('button', { type: 'button', 'data-act': 'download' }, 'Download first');
  const told = el('span', { class: 'hint', role: 'status' }, 'JSON lines, with the payloads.');
  const typed = el('div');
  const body = [
    'onbeat forgets them, with their payloads and their errors. This cannot be undone.', groups, el('p', {}, copy, ' ', told),
    el('label', {}, 'Why', el('input', { name: 'reason', maxlength: 200, required: true, autocomplete: 'off' }), el('span', { class: 'hint' }, 'The events keep it.')), typed,
  ];
  return {
    body,
    // look shows the largest groups.
    async look(signal) {
      if (filter.state !== 'dead') return;
      const { state, ...rest } = filter;
      const { items, next } = await get('/failures', rest, { signal });
      const more = items.length > mostGroups || next ? [el('li', {}, 'and others')] : [];
      groups.replaceChildren(...items.slice(0, mostGroups).map((g) => el('li', {}, `${number(g.tasks)} ${g.type || 'not readable here'}: ${line(g.error || 'no error was given', 120)}`)), ...more);
    },
    // know tells how many there are.
    know(about, signal) {
      copy.disabled = !about;
      copy.onclick = () => download(filter, copy, told, signal);
      if (about > typedAbove) typed.replaceChildren(el('label', {}, `Type ${about} to delete them`, el('input', { name: 'number', inputmode: 'numeric', required: true, autocomplete: 'off' })));
    },
    check(data, about) {
      if (!data.get('reason').trim()) throw new Error('say why: the events keep it');
      if (about > typedAbove && data.get('number').replace(/[\s,.]/g, '') !== String(about)) throw new Error(`type ${about}, the number of the tasks`);
    },
  };
}

// download saves the tasks that a filter matches, each as a line of JSON.
async function download(filter, button, told, signal) {
  button.disabled = true;
  try {
    const parts = [];
    let after = '', n = 0;
    do {
      const page = await get('/tasks', { ...filter, limit: 1000, after }, { signal });
      parts.push(page.items.map((t) => JSON.stringify(t) + '\n').join(''));
      n += page.items.length;
      told.textContent = `${plural(n)} so far …`;
      after = page.next ?? '';
    } while (after);
    const url = URL.createObjectURL(new Blob(parts, { type: 'application/jsonl' }));
    el('a', { href: url, download: `${filter.state}-tasks.jsonl` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
    told.textContent = `${plural(n)} downloaded.`;
  } catch (err) {
    if (!signal.aborted) told.textContent = err.message;
  }
  button.disabled = false;
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
