// A change of a schedule, shown before it is made: field by field, with the slots that come then. Somebody else may change the schedule
// meanwhile: then the API refuses the change, and it is shown anew, together with the other one.
import { get, newKey, place, post, put } from '../api.js';
import { ask, tell } from '../ask.js';
import { $, el } from '../dom.js';
import { declaredWarning, diff } from './diff.js';
import { slotList } from './next.js';
import { previewOf } from './preview.js';
import { capital, pathOf, zoneOf } from './words.js';

// review asks whether to make a schedule (was is undefined), or to change it from what it was. It resolves to the plan that was carried
// out, or to undefined. It throws what the API refuses about the definition.
export async function review(d, was) {
  const plan = await planOf(d, was);
  if (plan.result === 'unchanged') {
    tell('It says the same already: nothing to change.');
    return undefined;
  }
  if (!was && plan.result === 'would change') throw taken(d.name);
  const said = el('div');
  let base = was, wanted = d;
  const key = newKey();
  await show(said, d, base, plan);
  return ask({
    title: was ? `Change ${was.name}?` : `Make ${d.name}?`, action: was ? 'Change it' : 'Make it', body: said,
    act: async (_, dialog) => {
      try {
        const done = was ? await put(place`/schedules/${was.name}`, wanted, { match: `"${base.revision}"` }) : await post('/schedules', d, { key });
        tell([was ? 'Changed: ' : 'Made: ', el('a', { href: pathOf(done.name) }, done.name), '.']);
        return done;
      } catch (err) {
        if (err.status !== 412) throw err;
        [base, wanted] = await renewed(said, wanted, base);
        $('[data-act=ok]', dialog).textContent = 'Change it all the same';
        throw new Error('Somebody changed it meanwhile. What they changed stays, but for the fields that you change too.');
      }
    },
  });
}

const planOf = (d, was) => (was ? put(place`/schedules/${was.name}` + '?dry_run=true', d) : post('/schedules?dry_run=true', d, { key: undefined }));

function taken(name) {
  const field = { field: 'name', reason: 'a schedule has this name', hint: 'choose another, or edit that one', pointer: '#/name' };
  return Object.assign(new Error(`schedule "${name}" exists`), { fields: [field] });
}

// show shows a plan: warnings, the fields, the slots.
async function show(root, d, was, plan, before = []) {
  const zone = zoneOf(d);
  const next = await previewOf(d, was).catch(() => undefined);
  root.replaceChildren(...[
    ...before,
    plan.declared && el('p', { class: 'slow' }, declaredWarning(plan)),
    was?.paused && el('p', {}, 'It stays paused: none of these slots runs until it is resumed.'),
    plan.changes?.length && diff(plan.changes),
    next && el('h3', {}, was ? 'Its next slots then' : 'Its first slots'),
    next && slotList(next.slots, zone),
  ].filter(Boolean));
}

const fields = [
  'task', 'payload', 'secret', 'heartbeat', 'queue', 'priority', 'timeout', 'max_attempts', 'backoff', 'backoff_cap',
  'every', 'cron', 'timezone', 'dst', 'start', 'until', 'max_runs', 'jitter', 'missed', 'catch_up', 'overlap',
];

// rebased makes the change from base to d one of what the schedule says now.
function rebased(d, base, now) {
  const touched = (f) => JSON.stringify(d[f]) !== JSON.stringify(base[f]);
  return Object.fromEntries([['name', d.name], ...fields.map((f) => [f, touched(f) ? d[f] : now[f]])].filter(([, value]) => value !== undefined));
}

const heading = (r) => `${capital(r.what)} meanwhile${r.by ? ' by ' + r.by : r.release ? ' by release ' + r.release : ''}:`;

// renewed shows what another has changed, and what this change would do now. It returns the schedule as it is, and the definition wanted.
async function renewed(root, mine, base) {
  const now = await get(place`/schedules/${base.name}`);
  const { items } = await get(place`/schedules/${base.name}/revisions`, { limit: 10 });
  const others = items.filter((r) => r.revision > base.revision);
  const told = others.flatMap((r) => [el('p', {}, el('strong', {}, heading(r))), ...(r.changes?.length ? [diff(r.changes)] : [])]);
  const d = rebased(mine, base, now);
  const plan = await planOf(d, now);
  if (!others.length) told.push(el('p', {}, 'It was paused, resumed or otherwise touched meanwhile; what it says is the same.'));
  told.push(el('p', {}, el('strong', {}, plan.result === 'unchanged' ? 'It says already what you want.' : 'Your change would then be:')));
  await show(root, d, now, plan, told);
  return [now, d];
}
