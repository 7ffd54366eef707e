// Deeds to instances. A pause needs an operator, every other deed an admin.
import { place, post } from '../api.js';
import { ask, tell } from '../ask.js';
import { el } from '../dom.js';
import { stamp } from '../time.js';
import { nameOf } from './name.js';

const button = (label, onclick, aria) => el('button', { type: 'button', onclick, 'aria-label': aria }, label);

async function sure(question, path, body, done, then) {
  const ok = await ask({
    ...question,
    act: async () => {
      const r = await post(path, body);
      tell(typeof done === 'function' ? done(r) : done);
      return true;
    },
  });
  if (ok) then();
}

// onInstance are the buttons for an instance.
export function onInstance(x, then) {
  const list = [];
  if (x.leader) {
    list.push(button('Resign …', () => sure({
      title: `Resign ${nameOf(x.id, x.host)}?`, body: 'It gives up the lead, and another instance leads at once. This one works on, and leads again only if no other can, or if its release is promoted.', action: 'Resign',
    }, place`/instances/${x.id}/resign`, undefined, `${nameOf(x.id, x.host)} has given up the lead.`, then), `Resign ${nameOf(x.id, x.host)}`));
  }
  if (x.state !== 'draining') {
    list.push(button('Drain …', () => sure({
      title: `Drain ${nameOf(x.id, x.host)}?`, body: 'It takes no more work, finishes its runs, and its process ends, as SIGTERM does. Nothing here starts it again. If this page comes from it, the page is without a server then.', action: 'Drain', danger: true,
    }, place`/instances/${x.id}/drain`, undefined, `${nameOf(x.id, x.host)} finishes its runs, and leaves.`, then), `Drain ${nameOf(x.id, x.host)}`));
  }
  return list;
}

// onRelease is the button that makes a release the newest.
export const onRelease = (release, then) => button('Promote …', () => sure({
  title: `Make ${release} the newest release?`, body: 'It counts as if it had been rolled out now: one of its instances leads, and its schedules are in force.', action: 'Promote',
}, '/instances/promote', { release }, (r) => (r.leads ? `${nameOf(r.leader)} leads: it is of release ${release}.` : `Release ${release} is the newest. ${nameOf(r.leader) || 'No instance'} leads now.`), then), `Promote release ${release}`);

// onAll is the button for a pause of all instances, or for its end.
export function onAll(list, then) {
  if (list.paused_until) {
    return button('Resume', async () => {
      try {
        await post('/instances/resume');
        tell('Instances begin tasks again.');
      } catch (err) {
        tell(err.message, 'bad');
      }
      then();
    });
  }
  return button('Pause …', async () => {
    const length = el('input', { name: 'for', value: '1m', required: true, autocomplete: 'off' });
    const reason = el('input', { name: 'reason', maxlength: 200, autocomplete: 'off' });
    const done = await ask({
      title: 'Pause all instances?', action: 'Pause',
      body: ['No instance begins a task for that time. For a planned failover of Redis, for example. What runs goes on, and slots that come meanwhile run afterwards.', el('label', {}, 'For ', length, el('span', { class: 'hint' }, ' at most 10m')),
        el('label', {}, 'Why', reason, el('span', { class: 'hint' }, 'Shown wherever the pause is.'))],
      act: async (data) => {
        const why = data.get('reason').trim();
        const r = await post('/instances/pause', { for: data.get('for'), ...(why && { reason: why }) });
        tell(`No instance begins a task until ${stamp(r.until)}.`);
        return true;
      },
    });
    if (done) then();
  });
}
