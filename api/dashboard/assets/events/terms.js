// Who led when, and why the lead moved, as events tell it.

// cause says why an instance began to lead. before are the events before that, the newest first, up to the change of leader before.
function cause(e, before, last) {
  const f = e.fields;
  const of = (kind) => before.find((x) => x.event === kind && x.fields.instance === f.before);
  const promoted = before.find((x) => x.event === 'promoted' && x.fields.release === f.release);
  if (before.some((x) => x.event === 'suspected wrongly' && x.fields.instance === f.instance)) return 'it had been suspected wrongly, and leads again by its rank';
  if (of('suspected')) return 'the leader before showed no sign of life';
  if (of('lost')) return 'the leader before was lost';
  if (of('stood down')) return 'the leader before could not schedule';
  if (of('asked to drain')) return `the leader before was asked to leave by ${of('asked to drain').fields.by}`;
  if (of('asked to resign')) return `the leader before was asked to resign by ${of('asked to resign').fields.by}`;
  if (of('draining') || of('left')) return 'the leader before was told to stop';
  if (promoted) return `its release was promoted by ${promoted.fields.by}`;
  if (!f.before) return 'no instance led';
  if (last?.release && last.release !== f.release) return `its release came after ${last.release}`;
  return 'its rank is higher';
}

// late reports whether an event came soon after a term had begun.
const late = (e, term) => Date.parse(e.at) - Date.parse(term.from) < 30_000;

const together = 30_000; // ms in which an instance takes the lead of one partition after the other
const near = (a, b) => a === b || Math.abs(new Date(a) - new Date(b)) < together;

// termsOf reads the terms out of events, the oldest first, and returns the newest first. Each partition of a namespace that is split has a
// leader of its own. Terms of an instance in several of them are one if they begin and end together, for one reason.
export function termsOf(events) {
  const all = [...Map.groupBy(events, (e) => e.id.split('@')[1])].flatMap(([partition, some]) => termsIn(some, partition));
  const terms = [];
  for (const t of all.sort((a, b) => Date.parse(a.from) - Date.parse(b.from))) {
    const alike = (x) => x.instance === t.instance && x.why === t.why && near(x.from, t.from) && near(x.to, t.to);
    const one = terms.find((x) => alike(x) && !x.partitions.includes(t.partitions[0]));
    if (one) one.partitions.push(...t.partitions);
    else terms.push(t);
  }
  return terms.reverse();
}

// termsIn reads the terms of one partition, the oldest first.
function termsIn(events, partition) {
  const terms = [];
  let since = []; // events since the last change of leader, the newest first
  for (const e of events) {
    const open = terms.at(-1);
    if (e.event === 'leader') {
      if (open && !open.to) open.to = e.at;
      terms.push({ instance: e.fields.instance, host: e.fields.host, release: e.fields.release, epoch: e.fields.epoch, from: e.at, why: cause(e, since, open), partitions: [partition] });
      since = [];
    } else if (e.event === 'no leader') {
      if (open && !open.to) open.to = Number(e.fields.since) || e.at;
    }
    // A leader that died may be lost only when the next one leads already.
    if (e.event === 'lost' && terms.length > 1 && terms.at(-2).instance === e.fields.instance && late(e, terms.at(-1))) terms.at(-1).why = 'the leader before was lost';
    since.unshift(e);
  }
  return terms;
}
