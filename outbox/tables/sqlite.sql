CREATE TABLE IF NOT EXISTS onbeat_outbox (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  namespace  TEXT    NOT NULL DEFAULT '',  -- '': that of the mover that comes first
  task       TEXT    NOT NULL,             -- its ID
  type       TEXT    NOT NULL,
  record     BLOB    NOT NULL,             -- the task as Redis will have it
  mark       TEXT    NOT NULL,             -- names the row in Redis while it is moved
  delay_ms   INTEGER NOT NULL DEFAULT 0,   -- counted from added
  unique_key TEXT    NOT NULL DEFAULT '',
  unique_ms  INTEGER NOT NULL DEFAULT 0,
  added      INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),  -- unix ms
  refused    INTEGER,                      -- unix ms; NULL: it waits
  error      TEXT                          -- why it was refused
);

CREATE INDEX IF NOT EXISTS onbeat_outbox_waiting ON onbeat_outbox (namespace, id) WHERE refused IS NULL;

CREATE INDEX IF NOT EXISTS onbeat_outbox_refused ON onbeat_outbox (namespace, id) WHERE refused IS NOT NULL;
