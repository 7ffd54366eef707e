// Calls of the API. An error is a Problem: its message is the sentence of the API, which the onbeat command prints too.

export class Problem extends Error {
  constructor(status, body) {
    super(body?.detail || 'the server answered with status ' + status);
    this.status = status;
    this.fields = body?.errors || [];
    this.body = body;
  }
}

// query writes parameters. Those that are empty are left out; of a list each item is one.
export function query(params = {}) {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    for (const v of Array.isArray(value) ? value : [value]) {
      if (v !== undefined && v !== null && v !== '') q.append(name, v);
    }
  }
  const text = q.toString();
  return text && '?' + text;
}

// place writes a path with names in it: place`/schedules/${name}/pause`.
export function place(parts, ...names) {
  return parts.reduce((path, part, i) => path + encodeURIComponent(names[i - 1]) + part);
}

// newKey makes an Idempotency-Key. All tries of one deed send the same: a try without an answer, or with 503, may have done it.
// crypto.randomUUID is not there on pages that came over plain http from another machine.
export const newKey = () => ({ text: crypto.getRandomValues(new Uint32Array(4)).join('-') });

// shared has the pages that are open share what they ask: an answer may be a little older than the next would be.
export const shared = { age: '2500ms' };

export const get = (path, params, options) => call('GET', path + query(params), undefined, options);
export const post = (path, body, options) => call('POST', path, body, { key: newKey(), ...options });
export const put = (path, body, options) => call('PUT', path, body, options);
export const remove = (path, options) => call('DELETE', path, undefined, options);

// all reads a list of pages to its end, or to most items, as one page.
export async function all(path, params = {}, most = 10_000) {
  const items = [];
  let could_not_ask;
  for (let after = ''; ;) {
    const page = await get(path, { ...params, after });
    items.push(...page.items);
    after = page.next;
    could_not_ask = page.could_not_ask ?? could_not_ask;
    if (!after || items.length >= most) return { items, could_not_ask };
  }
}

// call makes a call. A session that has ended leads to the page for signing in. Options: signal, match (an If-Match), key (the
// Idempotency-Key; call renews it when the deed is done, and when an earlier try had another body), etag (a function that gets the ETag).
async function call(method, path, body, { signal, match, key, etag } = {}) {
  const headers = { Accept: 'application/json' };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (match) headers['If-Match'] = match;
  if (key) headers['Idempotency-Key'] = key.text;
  let reply;
  try {
    reply = await fetch('/v1' + path, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw new Problem(0, { detail: 'the server cannot be reached (it may be restarting)' });
  }
  if (reply.status === 401) {
    location.assign('/login?ended=true&next=' + encodeURIComponent(location.pathname + location.search));
    return new Promise(() => {}); // the page is left
  }
  const text = await reply.text();
  let json;
  try {
    json = text ? JSON.parse(text) : undefined;
  } catch {
    throw new Problem(reply.status, { detail: 'the answer is not from onbeat: is there a proxy between?' });
  }
  if (key && (reply.ok || reply.status === 422)) Object.assign(key, newKey()); // the next call is another deed
  if (!reply.ok) throw new Problem(reply.status, json);
  etag?.(reply.headers.get('ETag'));
  return json;
}
