// Slots that come: in the zone of the viewer, and in that of the schedule.
import { el } from '../dom.js';
import { length, stamp } from '../time.js';
import { moment } from '../tasks/words.js';
import { thereOf } from './words.js';

// dueWords says when a slot with a jitter is due.
export const dueWords = (x) => (x.due && Date.parse(x.due) !== Date.parse(x.slot) ? `due ${length(Date.parse(x.due) - Date.parse(x.slot))} later, by its jitter` : '');

// slotList lists slots. For one beside another time zone both are shown.
export function slotList(slots, zone) {
  if (!slots.length) return el('p', { class: 'muted' }, 'No slot comes.');
  return el('ol', { class: 'slots' }, ...slots.map((x) => el('li', {},
    moment(x.slot, { full: true, ms: new Date(x.slot).getMilliseconds() > 0 }), ' ',
    el('span', { class: 'of' }, [thereOf(x.slot, zone) && `${stamp(x.slot, { full: true, timeZone: zone })} ${x.zone}`, dueWords(x), x.explain].filter(Boolean).join(' · ')))));
}
