// The revisions of a schedule: what it said, who changed it, and back to one of them.
import { get, place, post, put } from '../api.js';
import { ask, tell } from '../ask.js';
import { $, clone, el, fill, keyed, may } from '../dom.js';
import { moment, plural } from '../tasks/words.js';
import { ago, stamp } from '../time.js';
import { View } from '../view.js';
import { declaredWarning, diff } from './diff.js';
import { slotList } from './next.js';
import { previewOf } from './preview.js';
import { capital, zoneOf } from './words.js';

const kinds = { made: 'good', restored: 'good', reverted: 'odd', changed: 'odd', deleted: 'bad', retired: 'slow' };

// historyView shows the revisions below an element. present() is the schedule as it is now; changed() is called after a reversion.
export function historyView(root, name, { present, changed }) {
  let want = 10;
  const pager = $('[data-pager]', root);
  const view = new View(root, {
    empty: 'No revision is known.',
    load: (signal) => get(place`/schedules/${name}/revisions`, { limit: want }, { signal }),
    show({ items, next }) {
      keyed($('ol', root), items, (r) => String(r.revision), () => clone('revision'), (li, r) => showRevision(li, r, r === items[0], present()));
      pager.hidden = !next;
      fill(pager, { shown: `The newest ${items.length} of up to 50.` });
      return items.length > 0;
    },
  });
  $('[data-act=more]', pager).addEventListener('click', () => {
    want = 50;
    view.refresh();
  });
  root.addEventListener('click', async (e) => {
    const li = e.target.closest('li');
    if (e.target.dataset.act === 'revert' && (await revert(name, li.revision, present()))) changed();
  });
  return view;
}

// showRevision shows one. The newest is what the schedule says; its own number may be higher, as a pause raises it too.
function showRevision(li, r, newest, present) {
  li.dataset.kind = kinds[r.what] ?? '';
  const here = present && !present.deleted && !present.retired; // a schedule that has gone is restored first
  const isNow = here && newest;
  const back = may('admin') && r.definition && here && !isNow;
  const by = r.by ? 'by ' + r.by : r.release ? 'by release ' + r.release : '';
  fill(li, {
    title: capital(r.what) + (isNow ? ', as it is now' : ''), at: r.at ? [moment(r.at), `, ${ago(r.at)}`] : '',
    more: [by, 'revision ' + r.revision].filter(Boolean).join(' · '),
  });
  const key = [r.revision, isNow, back].join();
  if (li.key === key) return; // so that details that the viewer has opened stay open
  li.key = key;
  li.revision = r;
  const changes = r.changes ?? [];
  fill(li, {
    changes: [
      changes.length > 0 && el('details', { open: changes.length < 4 }, el('summary', {}, plural(changes.length, 'field')), diff(changes)),
      r.encrypted && el('p', { class: 'muted' }, r.encrypted),
      r.definition && el('details', {}, el('summary', {}, 'What it said'), el('pre', { tabindex: 0 }, JSON.stringify(r.definition, null, 2))),
    ].filter(Boolean),
    act: back ? el('button', { type: 'button', 'data-act': 'revert', 'aria-label': `Go back to it … revision ${r.revision} of ${stamp(r.at)}` }, 'Go back to it …') : null,
  });
}

// revert asks whether to go back to a revision. It shows first what changes, and the slots that come then.
function revert(name, r, present) {
  const said = el('p', { role: 'status' }, 'Looking what would change …');
  const shown = el('div');
  return ask({
    title: `Back to revision ${r.revision}?`, action: 'Go back to it',
    body: [`It says again what it said ${r.at ? 'since ' + stamp(r.at) : 'then'}. That is a new revision; the present one stays in the list.`, said, shown],
    ready: async (dialog, signal) => {
      const plan = r.encrypted ? {} : await put(place`/schedules/${name}` + '?dry_run=true', { ...r.definition, name }, { signal });
      if (plan.result === 'unchanged') {
        said.textContent = 'It says the same already.';
        return false;
      }
      said.textContent = plan.declared ? declaredWarning(plan) : '';
      const next = await previewOf(r.definition, present, signal).catch(() => undefined);
      const slots = next && [el('h3', {}, 'Its next slots then'), slotList(next.slots, zoneOf(r.definition))];
      shown.replaceChildren(...[plan.changes?.length && diff(plan.changes), ...(slots ?? [])].filter(Boolean));
      return true;
    },
    act: async () => {
      await post(place`/schedules/${name}/revert`, { revision: r.revision });
      tell(`${name} says again what it said at revision ${r.revision}.`);
      return true;
    },
  });
}
