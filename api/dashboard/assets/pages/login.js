import { $ } from '../dom.js';
import { params } from '../page.js';

// next is where the viewer came from: an address of this server, and nothing else. It is whole: a path such as //host would be another
// server.
function next() {
  try {
    const there = new URL(new URLSearchParams(location.search).get('next') || '/', location.origin);
    return there.origin === location.origin ? there.href : '/';
  } catch {
    return '/'; // no address at all
  }
}

$('#ended').hidden = !params.get('ended');
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
