import '../page.js';
import { $ } from '../dom.js';

// next is where the viewer came from: a path of this server, and nothing else.
function next() {
  const path = new URLSearchParams(location.search).get('next') || '/';
  const there = new URL(path, location.origin);
  return there.origin === location.origin ? there.pathname + there.search : '/';
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
