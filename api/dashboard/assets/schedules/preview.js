// The slots that a definition would have.
import { get } from '../api.js';

// previewOf asks for the next five slots of a definition. was is the schedule that it changes, if there is one: unless its start changes
// too, a schedule with an interval stays on its grid.
export function previewOf(d, was, signal) {
  const same = was && (d.start ?? '') === (was.start ?? '');
  return get('/preview', {
    count: 5, cron: d.cron, every: d.every, timezone: d.timezone, start: same && d.every ? was.anchor : d.start, until: d.until, jitter: d.jitter,
    name: d.name || was?.name, dst_gap: d.dst?.gap, dst_overlap: d.dst?.overlap,
  }, { signal });
}
