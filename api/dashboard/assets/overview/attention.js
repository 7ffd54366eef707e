// Trouble that needs attention, the worst first: from the status, with the page that shows more of each.
import { query } from '../api.js';
import { line, pathOf, scheduleOf } from '../tasks/words.js';
import { length, number } from '../time.js';

// pages are the pages of the commands that the status names.
const pages = [
  [/^onbeat schedules list --retired/, () => '/schedules?state=retired'],
  [/^onbeat schedules /, (t) => scheduleOf(t.name)],
  [/^onbeat tasks show (.+)/, (t, id) => pathOf(id)],
  [/^onbeat tasks failures/, () => '/dead'],
  [/^onbeat tasks list --state running/, () => '/tasks' + query({ state: 'running' })],
  [/^onbeat tasks list/, (t) => '/tasks' + query({ state: 'waiting', type: t.name })],
  [/^onbeat instances/, () => '/instances'],
  [/^onbeat audit/, () => '/audit'],
];

// moment is the beat around an incident.
function moment(t, asked) {
  const from = Date.parse(t.since), to = Date.parse(t.until ?? asked);
  const span = Math.max(60_000, (to - from) * 2);
  return '/beat' + query({ zoom: Math.round(span / 1000), to: new Date((from + to + span) / 2).toISOString() });
}

function hrefOf(t, asked) {
  if (t.kind === 'incident' && t.until) return moment(t, asked);
  for (const [command, page] of pages) {
    const found = command.exec(t.show);
    if (found) return page(t, found[1]);
  }
  return '/events';
}

// An item has key, tone, text, href, and more: a sentence in small. Two troubles may be alike but for their text, so equal keys are numbered.
export function attention({ asked, trouble, more, could_not_ask: unasked }) {
  const items = trouble.map((t) => ({
    key: `${t.kind} ${t.name} ${t.show}`, tone: t.warning ? 'slow' : 'bad', href: hrefOf(t, asked), text: [t.name, t.kind.replaceAll('_', ' ')].filter(Boolean).join(' '),
    more: line(t.text, 300) + (t.until ? `, ${length(Date.parse(asked) - Date.parse(t.since))} ago` : t.since ? `, for ${length(Date.parse(asked) - Date.parse(t.since))}` : ''),
  }));
  items.push(...unasked.map((u) => ({ key: 'unasked ' + u.source, tone: 'bad', href: '/events', text: 'could not ask ' + u.source, more: line(u.error, 300) })));
  if (more) items.push({ key: 'more', tone: 'slow', href: '/schedules', text: `and ${number(more)} more` });
  const seen = new Map();
  for (const x of items) {
    const n = (seen.get(x.key) ?? 0) + 1;
    seen.set(x.key, n);
    x.key += ' ' + n;
  }
  return items;
}
