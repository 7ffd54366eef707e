-- The history of runs, slots, schedules and events. All times are of the clock of Redis.
--
-- A later migration may only add: tables, columns that are null or have a default, indexes. Each statement passes over what is there. The release before it must be able to go on
-- writing and reading, because a rollout runs both, and a rollback runs it alone.

-- How far each namespace is archived. The instance that adds rows moves the position in the same transaction.
create table if not exists onbeat_positions (
  namespace text collate "C" primary key,
  history   text not null,        -- the last entry of the stream of the history,
  runs      text not null,        -- of that of the runs that no schedule made,
  events    text not null,        -- and of that of events
  schedules bigint not null,      -- the version of the last change of a schedule
  read      bigint not null,      -- entries of the history that were archived
  lost      bigint not null,      -- entries that were lost before they could be
  at        timestamptz,          -- when the position moved last
  history_added bigint not null,  -- how many entries Redis had added to the history up to there; 0 if it does not tell
  runs_added    bigint not null,  -- the same of runs
  since     timestamptz,          -- what the history lacked when following began is older; null: nothing
  trimmed   timestamptz,          -- rows older than this may have been removed
  keep_ms   bigint not null       -- how long the namespace keeps its rows
);

-- Each run of a task, and each slot that was pushed and did not run. A day is a partition.
create table if not exists onbeat_runs (
  namespace  text collate "C" not null,
  task       text collate "C" not null,
  begun      timestamptz not null, -- when it was claimed; when it was noted, if that is not known or more than three days before
  outcome    text collate "C" not null,
  attempt    integer not null,
  schedule   text collate "C" not null, -- the schedule that made the task; empty: none did
  slot       timestamptz,          -- null: a trigger, a backfill or a caller made the task
  due        timestamptz,
  claimed    timestamptz,
  ended      timestamptz,
  took_ms    bigint,
  error      text not null,
  output     text not null,
  why        text not null,
  type       text not null,
  queue      text not null,
  instance   text not null,
  generation bigint,
  release    text not null,
  noted      timestamptz not null, -- with entry and line: its place in the history
  entry      bigint not null,
  line       integer not null,
  primary key (namespace, task, begun, outcome, attempt)
) partition by range (begun);

-- Rows go here if their day has no partition: their time is far from the present, or the user may not make tables.
create table if not exists onbeat_runs_default partition of onbeat_runs default;

create index if not exists onbeat_runs_noted on onbeat_runs (namespace, noted);
create index if not exists onbeat_runs_history on onbeat_runs (namespace, noted, entry, line) where schedule <> '';
create index if not exists onbeat_runs_schedule on onbeat_runs (namespace, schedule, noted) where schedule <> '';

-- Ranges of a schedule's slots that were never pushed. Outcome was: the rule, in why, that held from first_slot until noted.
create table if not exists onbeat_fates (
  namespace  text collate "C" not null,
  schedule   text collate "C" not null,
  outcome    text collate "C" not null,
  first_slot timestamptz,
  last_slot  timestamptz,
  slots      bigint not null,
  why        text not null,
  instance   text not null,
  generation bigint,
  release    text not null,
  noted      timestamptz not null,
  entry      bigint not null,
  line       integer not null,
  primary key (namespace, schedule, noted, entry, line, outcome)
);

create index if not exists onbeat_fates_noted on onbeat_fates (namespace, noted, entry, line);

-- What a schedule said from a change on.
create table if not exists onbeat_revisions (
  namespace  text collate "C" not null,
  schedule   text collate "C" not null,
  revision   bigint not null,
  at         timestamptz,
  what       text not null,
  who        text not null,
  definition text not null,        -- empty: it was deleted or retired
  primary key (namespace, schedule, revision)
);

create index if not exists onbeat_revisions_at on onbeat_revisions (namespace, at);

-- State changes: who joined, led, was lost; what people did.
create table if not exists onbeat_events (
  namespace text collate "C" not null,
  at        timestamptz not null,  -- with entry: its place in the stream of events
  entry     bigint not null,
  kind      text collate "C" not null,
  fields    jsonb not null,
  primary key (namespace, at, entry, kind)
);

-- Spans of which entries were lost before they were archived, or with the tables that had them.
create table if not exists onbeat_losses (
  namespace text collate "C" not null,
  since     timestamptz not null,
  until     timestamptz not null,
  stream    text collate "C" not null, -- history, runs, events or revisions
  entries   bigint,               -- null: Redis cannot tell
  primary key (namespace, until, since, stream)
);

-- The schedules there are, as after their last change: what brings them back if Redis comes back empty.
create table if not exists onbeat_schedules (
  namespace  text collate "C" not null,
  schedule   text collate "C" not null,
  definition text not null,
  last       text not null,        -- revision, last slot, runs, anchor, paused: times in milliseconds since 1970
  pause      text not null,        -- since when it is paused (the same), by whom; a line break, and why
  primary key (namespace, schedule)
);
