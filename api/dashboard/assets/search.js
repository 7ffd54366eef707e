// A search for anything, by Ctrl-K or the button in the header: pages, schedules, instances, and tasks by their ID or type.
import { get } from './api.js';
import { $, $$, clone, el } from './dom.js';
import { nameOf } from './instances/name.js';
import { number } from './time.js';

const most = 12; // that are shown
const mostRead = 2000; // schedules

// pages are those of the menu.
const pages = () => $$('#pages [data-nav]').map((a) => ({ name: a.firstChild.textContent.trim(), what: 'page', href: a.href }));

async function read(signal) {
  const [schedules, instances] = await Promise.all([get('/schedules', { limit: mostRead }, { signal }), get('/instances', {}, { signal })]);
  return [
    ...schedules.items.map((s) => ({ name: s.name, what: `schedule, ${s.health}`, href: '/schedules/' + encodeURIComponent(s.name), also: s.task })),
    ...instances.items.map((x) => ({ name: nameOf(x.id, x.host), what: `instance of ${x.release || 'no release'}`, href: '/instances', also: x.id })),
  ];
}

// find returns the places that a text may mean: first those whose name begins with it, last those that any text can ask for.
function find(text, all) {
  const part = text.toLowerCase();
  const at = (x) => (x.name.toLowerCase().startsWith(part) ? 0 : x.name.toLowerCase().includes(part) ? 1 : x.also?.toLowerCase().includes(part) ? 2 : 3);
  const found = all.filter((x) => at(x) < 3).sort((a, b) => at(a) - at(b));
  const rest = text && [
    { name: text, what: 'open the task of this ID', href: '/tasks/' + encodeURIComponent(text) },
    { name: `*${text}*`, what: 'tasks of such types', href: '/tasks?type=' + encodeURIComponent(`*${text}*`) },
    { name: text, what: `schedules with it in their name${found.length > most ? `: ${number(found.length)} names match` : ''}`, href: '/schedules?match=' + encodeURIComponent(text) },
  ];
  return [...found.slice(0, most), ...(rest || [])];
}

// search opens the dialog.
export function search() {
  if ($('dialog[open]')) return;
  const dialog = clone('search');
  const input = $('input', dialog), list = $('ul', dialog), said = $('[data-field=said]', dialog);
  const left = new AbortController();
  let all = pages(), found = [], at = 0;
  const choose = (i) => {
    at = (i + found.length) % (found.length || 1);
    [...list.children].forEach((li, k) => li.setAttribute('aria-selected', k === at));
    list.children[at]?.scrollIntoView({ block: 'nearest' });
    list.children[at] ? input.setAttribute('aria-activedescendant', list.children[at].id) : input.removeAttribute('aria-activedescendant');
  };
  const look = () => {
    found = find(input.value.trim(), all);
    list.replaceChildren(...found.map((x, i) => el('li', { role: 'option', id: 'found-' + i, 'data-at': i }, el('span', {}, x.name), ' ', el('small', {}, x.what))));
    choose(0);
  };
  const go = () => found[at] && location.assign(found[at].href);
  input.addEventListener('input', look);
  input.addEventListener('keydown', (e) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (!step) return;
    e.preventDefault();
    choose(at + step);
  });
  list.addEventListener('click', (e) => {
    const li = e.target.closest('li');
    if (li) (choose(Number(li.dataset.at)), go());
  });
  $('form', dialog).addEventListener('submit', (e) => (e.preventDefault(), go()));
  dialog.addEventListener('close', () => (left.abort(), dialog.remove()));
  document.body.append(dialog);
  dialog.showModal();
  look();
  read(left.signal).then((more) => ((all = [...all, ...more]), (said.textContent = ''), look()), (err) => left.signal.aborted || (said.textContent = err.message));
}

document.addEventListener('keydown', (e) => {
  if ((e.ctrlKey || e.metaKey) && !e.shiftKey && !e.altKey && e.key.toLowerCase() === 'k') {
    e.preventDefault();
    search();
  }
});
$('#search')?.addEventListener('click', search);
