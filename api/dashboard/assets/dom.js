// The document: finding, making and filling elements. Text from the API is only ever set as text.

export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

// role of the one who looks.
const rank = { viewer: 1, operator: 2, admin: 3 };
export const may = (need) => rank[document.documentElement.dataset.role] >= rank[need];

// el makes an element: el('td', {class: 'num'}, 'text', node, ...). A property that is null or false is left out.
export function el(name, props = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) e.addEventListener(key.slice(2), value);
    else e.setAttribute(key, value === true ? '' : value);
  }
  e.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}

// svg is el for SVG.
export function svg(name, props = {}, ...children) {
  const e = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(props)) if (value !== null && value !== undefined) e.setAttribute(key, value);
  e.append(...children);
  return e;
}

// clone copies the template t-NAME and fills its fields: <span data-field="name"> gets fields.name as text, a node or a list.
export function clone(name, fields = {}) {
  const root = $('#t-' + name).content.cloneNode(true).firstElementChild;
  fill(root, fields);
  return root;
}

// fill fills the fields below an element. One that fields does not have stays as it is; null empties it. Text that is there already is
// left alone, so that a viewer can select it while the page goes on.
export function fill(root, fields) {
  for (const e of [root, ...$$('[data-field]', root)]) {
    const name = e.dataset?.field;
    if (name === undefined || !(name in fields)) continue;
    const value = fields[name];
    if (typeof value === 'string' && value !== '' && !e.children.length && e.textContent === value) continue;
    if (value instanceof Node && e.firstChild === value && e.childNodes.length === 1) continue;
    replace(e, ...[value].flat().filter((v) => v !== null && v !== undefined && v !== ''));
  }
  return root;
}

// replace puts other children in place of those of an element. If an old child had the focus, the first button or link gets it: else a
// person without a mouse would begin at the top of the page again.
export function replace(e, ...children) {
  const held = e !== document.activeElement && e.contains(document.activeElement);
  e.replaceChildren(...children);
  if (held) ($('button, a[href]', e) ?? $('#main'))?.focus();
}

// keyed shows items as the children of an element, by key(item). It makes new children, and keeps those that are there, so that the
// focus stays where it is; show(child, item) fills either.
export function keyed(parent, items, key, make, show) {
  const wanted = new Set(items.map(key));
  const there = new Map();
  for (const child of [...parent.children]) {
    if (wanted.has(child.dataset.key)) there.set(child.dataset.key, child);
    else child.remove();
  }
  let at = parent.firstElementChild;
  for (const item of items) {
    const child = there.get(key(item)) ?? make(item);
    child.dataset.key = key(item);
    show(child, item);
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
  }
}

// keepFocus changes what is below an element. If the focus was there and its place has gone, it goes to the first button that is left.
export function keepFocus(root, change) {
  const had = root.contains(document.activeElement);
  change();
  if (had && !document.activeElement?.checkVisibility()) document.activeElement?.blur();
  if (had && !root.contains(document.activeElement)) $$('button', root).find((b) => b.checkVisibility())?.focus();
}

// calm returns a function that calls fn a moment after its last call, and at the latest when the first one is most ms ago.
export function calm(fn, ms = 200, most = Infinity) {
  let timer, first;
  return (...args) => {
    clearTimeout(timer);
    first ??= Date.now();
    timer = setTimeout(() => {
      first = undefined;
      fn(...args);
    }, Math.max(0, Math.min(ms, first + most - Date.now())));
  };
}
