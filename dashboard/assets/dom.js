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

// fill fills the fields below an element. One that fields does not have stays as it is; null empties it.
export function fill(root, fields) {
  for (const e of [root, ...$$('[data-field]', root)]) {
    const name = e.dataset?.field;
    if (name === undefined || !(name in fields)) continue;
    const value = fields[name];
    e.replaceChildren(...[value].flat().filter((v) => v !== null && v !== undefined && v !== ''));
  }
  return root;
}

// once returns a function that calls fn a moment after its last call.
export function calm(fn, ms = 200) {
  let timer;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => fn(...args), ms);
  };
}
