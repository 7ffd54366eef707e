// Receives the requests of onbeat, and refuses those that were not signed with SHOP_KEY. Node 22.18 and later run it as it is.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';

const key: string = process.env.SHOP_KEY!;
const done = new Set<string>(); // IDs of tasks; a real receiver keeps them with its effect

function genuine(headers: IncomingHttpHeaders, body: Buffer): boolean {
  const id = String(headers['webhook-id']), at = String(headers['webhook-timestamp']);
  if (!(Math.abs(Date.now() / 1000 - Number(at)) <= 300)) return false;
  const want = Buffer.from('v1,' + createHmac('sha256', key).update(`${id}.${at}.`).update(body).digest('base64'));
  return String(headers['webhook-signature']).split(' ').some((text) => {
    const one = Buffer.from(text);
    return one.length === want.length && timingSafeEqual(one, want);
  });
}

createServer(async (request, response) => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const body = Buffer.concat(parts);
  if (!genuine(request.headers, body)) {
    console.log('refused');
    response.writeHead(401).end();
    return;
  }
  const task = String(request.headers['webhook-id']);
  if (!done.has(task)) { // a run may be repeated: its task has the same ID
    console.log('warming', JSON.parse(body.toString()).page);
    done.add(task);
  }
  response.writeHead(204).end();
}).listen(Number(process.env.PORT ?? 8102), '127.0.0.1', () => console.log('listening'));
