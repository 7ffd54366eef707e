-- The tables of PostgreSQL's 0001_tables.sql, which says what is in them, without partitions. Times are milliseconds since 1970, UTC.
--
-- A later migration may only add: tables, columns that are null or have a default, indexes. Each statement passes over what is there.

create table if not exists onbeat_positions (
  namespace text primary key,
  history   text not null,
  runs      text not null,
  events    text not null,
  schedules integer not null,
  read      integer not null,
  lost      integer not null,
  at        integer,
  history_added integer not null,
  runs_added integer not null,
  since     integer,
  trimmed   integer,
  keep_ms   integer not null
);

create table if not exists onbeat_runs (
  namespace  text not null,
  task       text not null,
  begun      integer not null,
  outcome    text not null,
  attempt    integer not null,
  schedule   text not null,
  slot       integer,
  due        integer,
  claimed    integer,
  ended      integer,
  took_ms    integer,
  error      text not null,
  output     text not null,
  why        text not null,
  type       text not null,
  queue      text not null,
  instance   text not null,
  generation integer,
  release    text not null,
  noted      integer not null,
  entry      integer not null,
  line       integer not null,
  primary key (namespace, task, begun, outcome, attempt)
);

create index if not exists onbeat_runs_noted on onbeat_runs (namespace, noted);
create index if not exists onbeat_runs_history on onbeat_runs (namespace, noted, entry, line) where schedule <> '';
create index if not exists onbeat_runs_schedule on onbeat_runs (namespace, schedule, noted) where schedule <> '';

create table if not exists onbeat_fates (
  namespace  text not null,
  schedule   text not null,
  outcome    text not null,
  first_slot integer,
  last_slot  integer,
  slots      integer not null,
  why        text not null,
  instance   text not null,
  generation integer,
  release    text not null,
  noted      integer not null,
  entry      integer not null,
  line       integer not null,
  primary key (namespace, schedule, noted, entry, line, outcome)
);

create index if not exists onbeat_fates_noted on onbeat_fates (namespace, noted, entry, line);

create table if not exists onbeat_revisions (
  namespace  text not null,
  schedule   text not null,
  revision   integer not null,
  at         integer,
  what       text not null,
  who        text not null,
  definition text not null,
  primary key (namespace, schedule, revision)
);

create index if not exists onbeat_revisions_at on onbeat_revisions (namespace, at);

create table if not exists onbeat_events (
  namespace text not null,
  at        integer not null,
  entry     integer not null,
  kind      text not null,
  fields    text not null,
  primary key (namespace, at, entry, kind)
);

create table if not exists onbeat_losses (
  namespace text not null,
  since     integer not null,
  until     integer not null,
  stream    text not null,
  entries   integer,
  primary key (namespace, until, since, stream)
);

create table if not exists onbeat_schedules (
  namespace  text not null,
  schedule   text not null,
  definition text not null,
  last       text not null,
  pause      text not null,
  primary key (namespace, schedule)
);
