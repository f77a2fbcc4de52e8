CREATE TABLE schema_versions (
    version INTEGER PRIMARY KEY,
    applied_at TEXT NOT NULL
) STRICT;

CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tasks (
    ord INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    priority INTEGER NOT NULL,
    owner TEXT,
    created INTEGER NOT NULL,
    -- When the lease may be taken over, in nanoseconds; null without a lease.
    expires INTEGER,
    -- How many dependencies are missing or not completed.
    waiting INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT;
CREATE INDEX tasks_ready ON tasks (priority, created, ord)
    WHERE status = 'pending' AND owner IS NULL AND waiting = 0;
CREATE INDEX tasks_leased ON tasks (expires) WHERE expires IS NOT NULL;
CREATE INDEX tasks_status ON tasks (status, ord);
CREATE INDEX tasks_owner ON tasks (owner, ord) WHERE owner IS NOT NULL;

-- `depends_on` is no foreign key: a dependency may be missing, and then it blocks.
CREATE TABLE dependencies (
    task INTEGER NOT NULL REFERENCES tasks (ord),
    depends_on TEXT NOT NULL,
    PRIMARY KEY (task, depends_on)
) STRICT, WITHOUT ROWID;
CREATE INDEX dependencies_on ON dependencies (depends_on, task);

CREATE TABLE sessions (
    name TEXT PRIMARY KEY,
    -- Newer than the one in `doc` when a heartbeat came since.
    last_seen INTEGER NOT NULL,
    open INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_open ON sessions (name) WHERE open = 1;

CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    inbox TEXT NOT NULL,
    unread INTEGER NOT NULL,
    urgency INTEGER NOT NULL,
    reply_to INTEGER REFERENCES messages (id),
    doc TEXT NOT NULL
) STRICT;
CREATE INDEX messages_unread ON messages (inbox, urgency, id) WHERE unread = 1;
CREATE INDEX messages_inbox ON messages (inbox, urgency, id);
CREATE INDEX messages_replies ON messages (reply_to) WHERE reply_to IS NOT NULL;

CREATE TABLE trees (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    task TEXT REFERENCES tasks (id),
    doc TEXT NOT NULL
) STRICT;
CREATE INDEX trees_name ON trees (name, id);
-- A name belongs to one tree at a time; a removed one gives it back.
CREATE UNIQUE INDEX trees_taken ON trees (name) WHERE status NOT IN ('removed', 'trashed');

CREATE TABLE landings (
    id INTEGER PRIMARY KEY,
    tree TEXT NOT NULL,
    status TEXT NOT NULL,
    doc TEXT NOT NULL
) STRICT;

-- No foreign keys here: the log outlives what it speaks of.
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    task TEXT,
    tree TEXT,
    doc TEXT NOT NULL
) STRICT;
CREATE INDEX events_task ON events (task, seq) WHERE task IS NOT NULL;
CREATE INDEX events_tree ON events (tree, seq) WHERE tree IS NOT NULL;
