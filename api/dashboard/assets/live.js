// The events of the namespace, live. All tabs of a browser share one stream, because a browser opens six connections to a host: the
// tab that holds the lock has it, and passes events on. When that tab is left, the next one goes on after the last event.
import { $, calm } from './dom.js';

const name = 'onbeat events';
const tabs = navigator.locks && 'BroadcastChannel' in self ? new BroadcastChannel(name) : undefined; // locks need https, or this machine
const listeners = new Set();
let state = 'connecting';
let started = false;
let holds = false; // this tab has the stream
let leave; // gives up the lock, or the wait for it
let source;
let silence;
let last = ''; // behind which event to go on: its ID, in a namespace that is split a place in each partition
let since = 0; // when the connection was lost
let newest; // the status in short

// on calls fn with each event that is of one of the kinds (none: of any). It returns a function that ends it.
export function on(kinds, fn) {
  const x = { kinds: new Set(kinds), fn };
  listeners.add(x);
  return () => listeners.delete(x);
}

// onChange calls fn a moment after events of the kinds: the page may show old data. While they come without a pause, it calls fn repeatedly.
export const onChange = (kinds, fn, ms = 400) => on(kinds, calm(fn, ms, 5000));

function show(now) {
  if (now === state) return;
  const was = state;
  state = now;
  if (now === 'lost') since = Date.now();
  const e = $('#live');
  if (e) {
    e.dataset.state = now;
    e.textContent = { live: 'live', away: 'Redis away', lost: 'connection lost', connecting: 'connecting' }[now];
  }
  document.dispatchEvent(new CustomEvent('live', { detail: { now, was, since } }));
}

// isCut reports whether nothing new can come: then a page shows old data.
export const isCut = () => state === 'lost' || state === 'away';

// feel takes the status in short.
function feel(pulse) {
  newest = pulse;
  show(pulse.away ? 'away' : 'live');
  document.dispatchEvent(new CustomEvent('pulse', { detail: pulse }));
}

export function start() {
  if (started) return;
  started = true;
  if (!tabs) return void open();
  tabs.onmessage = ({ data }) => {
    if (data.event) hear(data.event, data.at);
    else if (data.pulse) feel(data.pulse);
    else if (data.state) show(data.state);
    else if (holds) {
      tabs.postMessage({ state });
      if (newest && state !== 'lost') tabs.postMessage({ pulse: newest }); // while Redis is away no other comes
    }
  };
  tabs.postMessage({}); // in which state is it, and the namespace?
  take();
}

// take takes the stream when no other tab has it, until the page is left.
function take() {
  const left = new AbortController();
  const until = new Promise((resolve) => (leave = () => (left.abort(), resolve())));
  navigator.locks.request(name, { signal: left.signal }, () => (open(), until)).catch(() => {});
}

function hear(event, at) {
  last = at;
  for (const x of listeners) if (!x.kinds.size || x.kinds.has(event.event)) x.fn(event);
}

// tell shows a state in all tabs.
function tell(now) {
  show(now);
  tabs?.postMessage({ state: now });
}

function open() {
  holds = true;
  source = new EventSource('/v1/events?status=true' + (last && '&after=' + encodeURIComponent(last)));
  source.onopen = () => {
    clearTimeout(silence);
    if (state === 'live' && !last) tell('lost'); // nobody knows what has happened since another tab had it
    tell('live');
  };
  source.addEventListener('status', (m) => {
    const pulse = JSON.parse(m.data);
    tabs?.postMessage({ pulse });
    feel(pulse);
  });
  source.onmessage = (m) => {
    const event = JSON.parse(m.data);
    tabs?.postMessage({ event, at: m.lastEventId });
    hear(event, m.lastEventId);
  };
  source.onerror = () => {
    clearTimeout(silence);
    silence = setTimeout(() => tell('lost'), 1500); // a short break is no news
    if (source.readyState === EventSource.CLOSED) setTimeout(() => holds && open(), 2000 + Math.random() * 1000); // else the browser tries again
  };
}

// rest leaves the stream to another tab: this one hears nothing from now on, and passes nothing on.
function rest() {
  holds = false;
  clearTimeout(silence);
  source?.close();
  leave?.();
}

// wake goes on with the events. The page has missed those of meanwhile, so it asks anew for all that it shows, as after a lost connection.
function wake() {
  if (!started) return;
  show('lost');
  if (!tabs) return open();
  tabs.postMessage({});
  take();
}
addEventListener('pagehide', rest);
document.addEventListener('freeze', rest);
addEventListener('pageshow', (e) => e.persisted && wake()); // back from the browser's cache
document.addEventListener('resume', wake);
