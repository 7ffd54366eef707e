// The filters of tasks. The address holds them.
import { $, $$, calm, el } from '../dom.js';
import { params } from '../page.js';

export const names = ['type', 'queue', 'schedule', 'key', 'error'];

// filter is what the address asks for.
export const filter = () => Object.fromEntries(names.map((name) => [name, params.get(name)]).filter(([, value]) => value));

// watch keeps the form and the address the same, and calls changed when they have changed.
export function watch(form, changed) {
  const show = () => {
    for (const name of names) form.elements[name].value = params.get(name);
  };
  const read = () => {
    params.set(Object.fromEntries(names.map((name) => [name, form.elements[name].value.trim()])));
    changed();
  };
  const narrow = matchMedia('(max-width: 46rem)');
  const fold = () => ($('details', form).open = !narrow.matches || Object.keys(filter()).length > 0); // on a phone the list comes first
  narrow.addEventListener('change', fold);
  fold();
  show();
  form.addEventListener('input', calm(read, 300));
  form.addEventListener('submit', (e) => {
    e.preventDefault();
    read();
  });
  form.addEventListener('reset', () => setTimeout(read)); // when the fields are empty
  addEventListener('popstate', () => {
    show();
    changed();
  });
}

// suggest offers the types and queues of which tasks wait, retry or are planned.
export function suggest(lanes) {
  const lists = { types: lanes.map((l) => l.type), queues: lanes.map((l) => l.queue) };
  for (const [id, values] of Object.entries(lists)) {
    const list = $('#' + id);
    const known = new Set($$('option', list).map((o) => o.value));
    for (const value of new Set(values)) if (!known.has(value)) list.append(el('option', { value }));
  }
}
