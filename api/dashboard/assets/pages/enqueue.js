import { params } from '../page.js';
import { get, newKey, place, post } from '../api.js';
import { $, el, fill, may } from '../dom.js';
import { clear, json, listOf, momentAt, refuse, refused, unsaved, wholeNumber } from '../form.js';
import { suggest } from '../tasks/filters.js';
import { pathOf } from '../tasks/words.js';
import { zoneName } from '../time.js';

const form = $('#enqueue');
const texts = ['type', 'queue', 'priority', 'id', 'keep', 'unique', 'unique_for', 'key', 'timeout', 'backoff', 'backoff_cap'];
const numbers = ['key_limit', 'max_attempts'];
const guard = form && unsaved(form);
const key = newKey();

// specOf is the task that the form describes. A field that is empty is left out. It throws a refusal, as the API does, for what cannot
// be sent at all.
function specOf() {
  const value = (name) => form.elements[name].value.trim();
  const spec = {};
  for (const name of texts) if (value(name)) spec[name] = value(name);
  for (const name of numbers) if (value(name)) spec[name] = wholeNumber(name, value(name));
  if (value('secret')) spec.secret = listOf(value('secret'));
  if (value('payload')) spec.payload = json('payload', value('payload'));
  if (form.elements.when.value === 'in') spec.in = value('in') || refuse('in', 'empty', 'such as 90s, 1h30m or 2d');
  if (form.elements.when.value === 'at') spec.at = momentAt('at', value('at'));
  return spec;
}

async function send(e) {
  e.preventDefault();
  clear(form);
  const submit = $('[type=submit]', form);
  submit.disabled = true;
  try {
    const done = await post('/tasks', specOf(), { key });
    fill(form, { done: ['Enqueued: ', el('a', { href: pathOf(done.id) }, done.id), '. The form stays as it is, for the next one.'] });
    if (form.elements.id.value) form.elements.id.value = '';
    guard.saved();
  } catch (err) {
    fill(form, { done: null });
    refused(form, err, { above: err.body?.id && [err.message + '. ', el('a', { href: pathOf(err.body.id) }, 'Show that task')] });
  } finally {
    submit.disabled = false;
  }
}

function showWhen() {
  for (const name of ['in', 'at']) $(`label[for=${name}]`, form).hidden = form.elements.when.value !== name;
  $('[data-zone]', form).textContent = zoneName();
}

// copy fills the form with what another task has, but not what there can be only once.
function copy(t) {
  const values = { type: t.type, queue: t.queue, key: t.key, timeout: t.timeout, max_attempts: t.max_attempts, secret: t.secret?.join(', ') };
  if (t.priority !== 'normal') values.priority = t.priority;
  if (t.payload !== undefined) values.payload = JSON.stringify(t.payload, null, 2);
  for (const [name, value] of Object.entries(values)) if (value) form.elements[name].value = value;
  guard.saved();
  fill(form, { done: ['Like ', el('a', { href: pathOf(t.id) }, t.id), t.payload === undefined && t.encrypted ? ', without its payload: ' + t.encrypted : '.'] });
}

if (may('operator')) {
  for (const name of ['type', 'queue', 'payload', 'key']) form.elements[name].value = params.get(name);
  guard.saved();
  if (params.get('like')) get(place`/tasks/${params.get('like')}`).then(copy, (err) => refused(form, err));
  form.addEventListener('submit', send);
  form.addEventListener('change', showWhen);
  form.addEventListener('input', () => fill(form, { done: null }));
  document.addEventListener('zone', showWhen);
  showWhen();
  Promise.all([get('/counts'), get('/me')]).then(([n, me]) => {
    suggest([...n.lanes, ...(me.types ?? []).map((type) => ({ type, queue: me.queues?.[0] ?? 'default' }))]);
  }, () => {}); // only suggestions
}
