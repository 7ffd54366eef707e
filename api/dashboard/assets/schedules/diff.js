// The changes of a schedule, field by field.
import { el } from '../dom.js';

// diff shows changes: the field, what it said, and what it says then.
export function diff(changes) {
  return el('table', { class: 'diff' },
    el('thead', {}, el('tr', {}, ...['Field', 'Before', 'After'].map((h) => el('th', { scope: 'col' }, h)))),
    el('tbody', {}, ...changes.map((c) => el('tr', {}, el('th', { scope: 'row' }, c.field), side('del', c.from), side('ins', c.to)))));
}

// side is one value. A value that is not set has no mark of a removal or of an addition.
const side = (name, text) => el('td', {}, text === '' ? el('span', { class: 'muted' }, 'not set') : el(name, {}, text));

// declaredWarning says of a plan that a release puts its own definition back.
export const declaredWarning = (plan) => `${plan.declared_by ? 'Release ' + plan.declared_by : 'A release'} declares this schedule: its next leader puts its own definition back.`;
