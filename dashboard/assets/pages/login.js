import { params } from '../page.js';
import { $ } from '../dom.js';

// next is where the viewer came from: an address of this server, and nothing else. It is whole, because a path such as /.//host is read
// as //host once it is made plain, and that is another server.
function next() {
  const from = params.get('next', '/');
  const there = URL.canParse(from, location.origin) ? new URL(from, location.origin) : location;
  return there.origin === location.origin && there.pathname !== location.pathname ? there.href : '/';
}

$('#login').addEventListener('submit', async (e) => {
  e.preventDefault();
  const error = $('#error');
  error.hidden = true;
  const fail = (text) => {
    error.textContent = text;
    error.hidden = false;
    $('#token').select();
  };
  try {
    const reply = await fetch('/session', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ token: $('#token').value }) });
    if (reply.ok) return location.assign(next());
    fail((await reply.json()).detail);
  } catch {
    fail('the server cannot be reached');
  }
});
