// The events of the namespace, live. One stream a page; it goes on where it broke off.
import { $, calm } from './dom.js';

const listeners = new Set();
let state = 'connecting';
let source;
let silence;

// on calls fn with each event that is of one of the kinds (none: of any). It returns a function that ends it.
export function on(kinds, fn) {
  const x = { kinds: new Set(kinds), fn };
  listeners.add(x);
  return () => listeners.delete(x);
}

// onChange calls fn a moment after events of the kinds: what it shows may be old.
export const onChange = (kinds, fn, ms = 400) => on(kinds, calm(fn, ms));

function show(now) {
  if (now === state) return;
  const was = state;
  state = now;
  const e = $('#live');
  if (e) {
    e.dataset.state = now;
    e.textContent = { live: 'live', lost: 'connection lost', connecting: 'connecting' }[now];
  }
  document.dispatchEvent(new CustomEvent('live', { detail: { now, was } }));
}

export function start() {
  if (source) return;
  source = new EventSource('/v1/events');
  source.onopen = () => {
    clearTimeout(silence);
    show('live');
  };
  source.onmessage = (m) => {
    const event = JSON.parse(m.data);
    for (const x of listeners) if (!x.kinds.size || x.kinds.has(event.event)) x.fn(event);
  };
  source.onerror = () => {
    clearTimeout(silence);
    silence = setTimeout(() => show('lost'), 1500); // a short break is no news
    if (source.readyState !== EventSource.CLOSED) return; // the browser tries again
    source = undefined;
    setTimeout(start, 2000 + Math.random() * 1000);
  };
}
addEventListener('pagehide', () => source?.close());
