// The runs of a schedule: the fates of its slots, attempt by attempt.
import { get, place } from '../api.js';
import { $, clone, fill, keyed } from '../dom.js';
import { known, nameTag } from '../instances/name.js';
import { pathOf, plural } from '../tasks/words.js';
import { length, ms, stamp } from '../time.js';
import { View } from '../view.js';
import { kindOf, thereOf } from './words.js';

// runsView shows the runs below an element. zone() is the time zone of the schedule.
export function runsView(root, name, zone) {
  let want = 20;
  const pager = $('[data-pager]', root);
  const view = new View(root, {
    empty: 'No run of it is known.',
    async load(signal) {
      const items = [];
      let after = '';
      do {
        const page = await get(place`/schedules/${name}/runs`, { limit: want - items.length, after }, { signal });
        items.push(...page.items);
        after = page.next ?? '';
      } while (after && items.length < want);
      await known(items.map((r) => r.instance), signal);
      return { items, after };
    },
    show({ items, after }) {
      keyed($('tbody', root), items, keyOf, () => clone('run'), (row, r) => showRun(row, r, zone()));
      pager.hidden = !after;
      fill(pager, { shown: `The newest ${plural(items.length, 'run')} shown.` });
      return items.length > 0;
    },
  });
  $('[data-act=more]', pager).addEventListener('click', () => {
    want += want < 200 ? 80 : 500;
    view.refresh();
  });
  return view;
}

const keyOf = (r) => [r.task, r.attempt, r.began, r.ended, r.outcome].join(' ');

function showRun(row, r, zone) {
  const at = r.slot ?? '';
  const link = $('[data-field=slot]', row);
  link.href = pathOf(r.task);
  const outcome = $('[data-field=outcome]', row);
  outcome.dataset.kind = kindOf(r.outcome);
  const backfilled = r.task.endsWith('+backfill') ? 'backfilled' : '';
  fill(row, {
    slot: at ? stamp(at, { ms: new Date(at).getMilliseconds() > 0 })  : 'by hand', there: [thereOf(at, zone), backfilled].filter(Boolean).join(' · '),
    outcome: r.outcome, attempt: r.attempt > 1 ? 'attempt ' + r.attempt : '',
    why: r.why ?? '', error: r.error ?? '',
    began: r.began ? stamp(r.began, { ms: true }) : r.ended ? 'did not run' : '',
    took: [r.lag && `${length(ms(r.lag))} after it was due`, r.took && 'took ' + length(ms(r.took))].filter(Boolean).join(', '),
    on: r.release ?? '', instance: row.instance === r.instance ? row.named : (row.named = nameTag((row.instance = r.instance))),
  });
}
