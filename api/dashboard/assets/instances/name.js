// Instances by the name that people know: the host or the pod, then the last letters of the ID. The first letters are alike.
import { get, shared } from '../api.js';
import { copier } from '../copy.js';
import { el } from '../dom.js';
import { on } from '../live.js';

const key = 'onbeat-hosts';
const most = 500;
const made = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/; // an ID that onbeat made; another one is a name by itself
let hosts = new Map();
try {
  hosts = new Map(JSON.parse(sessionStorage.getItem(key) ?? '[]'));
} catch {} // a browser that keeps nothing

// learn keeps the host of an instance, for pages that know only its ID.
export function learn(id, host) {
  if (!id || !host || hosts.get(id) === host) return;
  hosts.set(id, host);
  try {
    sessionStorage.setItem(key, JSON.stringify([...hosts].slice(-most)));
  } catch {}
}

on(['joined', 'leader', 'lost', 'suspected'], (e) => learn(e.fields.instance, e.fields.host));

// known asks once for the hosts of the instances that are there, if one of the IDs is of none that is known.
let asked;
export function known(ids, signal) {
  if (ids.some((id) => id && made.test(id) && !hosts.has(id))) asked ??= get('/instances', shared, { signal }).then(({ items }) => items.forEach((x) => learn(x.id, x.host)), () => (asked = undefined));
  return asked;
}

// nameOf is the name as text, and nameTag the name with a button that copies the whole ID.
export function nameOf(id, host = hosts.get(id)) {
  if (!id || !made.test(id)) return id ?? '';
  return `${host ? host + ' ' : ''}…${id.slice(-6)}`;
}

export const nameTag = (id, host) => (id ? el('span', { class: 'instance' }, nameOf(id, host), ' ', copier(id)) : '');
