// The bulk actions under way, and for a while after, whoever began them: how far each is, to stop it, and to have it go on.
import { get, place, post } from '../api.js';
import { tell } from '../ask.js';
import { $, clone, el, fill, keyed, may } from '../dom.js';
import * as live from '../live.js';
import { ago, number } from '../time.js';
import { View } from '../view.js';
import { deeds, whatOf } from './act.js';
import { plural } from './words.js';

const shown = 5;
const minute = 60_000;
const lasting = { done: 10 * minute, stopped: 24 * 60 * minute, failed: 24 * 60 * minute }; // for which one that has ended is shown

const isOpen = (e) => e.state === 'waiting' || e.state === 'running';
const isShown = (e) => isOpen(e) || Date.now() - new Date(e.at) < lasting[e.state];

// mayGoOn reports whether the one who looks may have it go on.
const mayGoOn = (e) => may(e.action === 'delete' ? 'admin' : 'operator');

const least = (e) => (e.at_least ? 'at least ' : '');

// farWords says how far a bulk action is.
function farWords(e) {
  const deed = deeds[e.action];
  const far = `${least(e)}${number(e.changed)}${e.about ? ' of about ' + plural(Math.max(e.about, e.matched)) : ''} ${deed.done}`;
  switch (e.state) {
    case 'waiting':
      return far + '; an instance is to go on with it.';
    case 'running':
      return far + '.';
    case 'stopped':
      return `${far}; then ${e.stopped_by || 'somebody'} stopped it, ${ago(e.at)}.`;
    case 'failed':
      return `${far}; then it failed, ${ago(e.at)}: ${e.error}.`;
  }
  return `Done, ${ago(e.at)}: ${endWords(e)}`;
}

function endWords(e) {
  const rest = [];
  if (e.matched > e.changed) rest.push(`${plural(e.matched - e.changed)} had changed meanwhile`);
  if (e.unreadable) rest.push(`${plural(e.unreadable)} cannot be read, and stay as they are`);
  return `${least(e)}${plural(e.changed)} ${deeds[e.action].done}${rest.length ? '; ' + rest.join('; ') : ''}.`;
}

function show(item, e) {
  const what = `${deeds[e.action].doing} all ${whatOf(e.action, e.filter)}`;
  fill(item, { what, by: `for ${e.by || 'somebody'}${e.reason ? ': ' + e.reason : ''}`, far: farWords(e) });
  const bar = $('progress', item);
  bar.hidden = !isOpen(e);
  bar.setAttribute('aria-label', what);
  if (e.about) [bar.max, bar.value] = [Math.max(e.about, e.matched, 1), e.matched];
  const act = isOpen(e) ? may('operator') && 'stop' : e.state !== 'done' && mayGoOn(e) && 'resume';
  if (item.act === act) return;
  item.act = act;
  const focus = item.contains(document.activeElement);
  fill(item, { act: act ? el('button', { type: 'button', 'data-act': act, 'aria-label': `${names[act]}: ${what}` }, names[act]) : null });
  if (focus) $('button', item)?.focus();
}

const names = { stop: 'Stop', resume: 'Go on' };
const asks = { stop: (id) => post(place`/bulk/${id}/stop`), resume: (id) => post(place`/bulk/${id}/resume`) };

// Bulks shows them in an element. changed is called when one has ended.
export class Bulks {
  constructor(root, changed) {
    this.root = root;
    this.changed = changed;
    this.open = new Map(); // ID -> those who wait for its end
    this.view = new View(root, { load: (signal) => get('/bulk', {}, { signal }), show: (list) => this.show(list.items) });
    root.addEventListener('click', (e) => e.target.dataset.act in names && this.ask(e.target));
    live.onChange(['tasks changed', 'bulk begun', 'bulk done', 'bulk stopped', 'bulk failed'], () => this.view.refresh(), 1000);
    this.view.refresh();
  }

  show(items) {
    const list = items.filter((e) => deeds[e.action] && isShown(e)).slice(0, shown);
    this.root.hidden = !list.length;
    keyed($('ul', this.root), list, (e) => e.id, () => clone('bulk'), show);
    this.view.every = list.some(isOpen) ? 1000 : list.length ? minute : 0;
    for (const e of items) this.note(e);
    return true;
  }

  // note tells those who wait for it that a bulk action has ended, if it was open when it was seen last.
  note(e) {
    if (isOpen(e) && !this.open.has(e.id)) this.open.set(e.id, []);
    if (isOpen(e) || !this.open.has(e.id)) return;
    const waiting = this.open.get(e.id);
    this.open.delete(e.id);
    this.changed();
    if (waiting.length) tell(e.state === 'done' ? endWords(e) : farWords(e), e.state === 'failed' ? 'bad' : 'done');
    for (const done of waiting) done(e);
  }

  // follow shows a bulk action that has just begun. It resolves when it has ended.
  follow(e) {
    const ended = new Promise((resolve) => this.open.set(e.id, [...(this.open.get(e.id) ?? []), resolve]));
    this.view.refresh();
    return ended;
  }

  async ask(button) {
    const id = button.closest('li').dataset.key;
    button.disabled = true;
    try {
      await asks[button.dataset.act](id);
    } catch (err) {
      tell(err.message, 'bad');
    }
    button.disabled = false;
    this.view.refresh();
  }
}
