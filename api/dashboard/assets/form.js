// Forms whose fields the API judges. A refusal of the API, and of what cannot be sent at all, stands beside its field.
import { $, $$, el, fill } from './dom.js';
import { stamp, zone } from './time.js';

// refuse throws a refusal as the API would.
export function refuse(field, reason, hint) {
  throw Object.assign(new Error(`${field}: ${reason} (${hint})`), { fields: [{ field, reason, hint, pointer: '#/' + field }] });
}

export const wholeNumber = (name, text) => (/^-?\d+$/.test(text) ? Number(text) : refuse(name, 'not a whole number', 'such as 3'));

export function json(name, text) {
  try {
    return JSON.parse(text);
  } catch (err) {
    return refuse(name, 'not JSON', err.message);
  }
}

// listOf reads a text with commas between.
export const listOf = (text) => text.split(',').map((s) => s.trim()).filter(Boolean);

// momentAt reads a time of a form, which is in the zone that the page shows: a day, with a time of 24 hours or without. A field of the
// browser would show the 12 hours of its language.
export function momentAt(name, text) {
  const [, day, time = '00:00'] = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?))?$/.exec(text.trim()) ?? [];
  const at = new Date(`${day}T${time}${zone() === 'UTC' ? 'Z' : ''}`);
  return Number.isNaN(+at) ? refuse(name, 'not a moment', 'such as ' + momentIn(Date.now())) : at.toISOString();
}

// momentIn writes a time for such a field.
export const momentIn = (at) => stamp(at, { full: true });

// unsaved has the browser ask before the page is left with a form that was changed. saved says that what the form holds now is no change.
export function unsaved(form) {
  const text = () => JSON.stringify([...new FormData(form)]);
  const hold = (e) => e.preventDefault();
  let was = text();
  const changed = () => text() !== was;
  const look = () => (changed() ? addEventListener('beforeunload', hold) : removeEventListener('beforeunload', hold));
  form.addEventListener('input', look);
  return {
    changed,
    saved() {
      was = text();
      look();
    },
  };
}

// fieldAt is the control of a place in the body: that of #/dst/gap has the name dst_gap; of #/payload/… it is the payload.
function fieldAt(form, f) {
  const path = (f.pointer ?? '').split('/').slice(1);
  const field = form.elements[path.join('_')] ?? form.elements[path[0]] ?? form.elements[f.field];
  return field?.id ? field : undefined;
}

// clear takes the refusals off a form, or off some fields of it.
export function clear(form, names) {
  if (!names) for (const e of $$('[data-field=error]', form)) e.hidden = true;
  for (const e of $$('[aria-invalid]', form)) {
    if (names && !names.includes(e.name)) continue;
    $('#error-' + e.id, form)?.remove();
    e.removeAttribute('aria-invalid');
    e.removeAttribute('aria-describedby');
  }
}

// refused shows each refusal beside its field, and the whole message above all if a refusal has no field. The focus goes to the first
// field, unless quiet is set. A text in above is shown above all in any case.
export function refused(form, err, { above, quiet = false } = {}) {
  const marked = new Set();
  const fields = err.fields ?? [];
  for (const f of fields) {
    const control = fieldAt(form, f);
    const id = 'error-' + control?.id;
    if (!control || $('#' + id, form)) continue;
    control.after(el('span', { class: 'error', id }, f.reason + (f.hint ? ': ' + f.hint : '')));
    control.setAttribute('aria-invalid', 'true');
    control.setAttribute('aria-describedby', id);
    const details = control.closest('details');
    if (details && !quiet) details.open = true;
    marked.add(control);
  }
  const first = [...form.elements].find((e) => marked.has(e));
  if (!quiet) first?.focus();
  if (!above && first && fields.every((f) => fieldAt(form, f))) return;
  fill(form, { error: above ?? err.message });
  const place = $('[data-field=error]', form);
  place.hidden = false;
  if (!quiet) place.scrollIntoView({ block: 'center' });
}
