-- Step 1: messages in lanes, sessions, events, blobs, locks.

-- A lane is a linear run of messages. It branches off its parent lane; its first message has the depth `start`.
CREATE TABLE lanes (
    lane INTEGER PRIMARY KEY,
    parent INTEGER,
    start INTEGER NOT NULL
) STRICT;
CREATE INDEX lanes_by_parent ON lanes (parent, start);

CREATE TABLE nodes (
    number INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    lane INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    role TEXT NOT NULL,
    at INTEGER NOT NULL,
    json TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX nodes_by_id ON nodes (id);
CREATE UNIQUE INDEX nodes_by_place ON nodes (lane, depth);

-- `tip` is the number of the newest message; `lane` is that message's lane, to find the sessions of a lane.
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    source TEXT NOT NULL,
    format TEXT NOT NULL,
    model TEXT,
    title TEXT,
    goal TEXT,
    parent TEXT,
    relation TEXT,
    root TEXT NOT NULL,
    tip INTEGER,
    lane INTEGER,
    n_messages INTEGER NOT NULL,
    n_events INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    ended_at INTEGER,
    end_reason TEXT
) STRICT;
CREATE UNIQUE INDEX sessions_by_title ON sessions (title) WHERE title IS NOT NULL;
CREATE INDEX sessions_by_time ON sessions (updated_at, id);
CREATE INDEX sessions_by_lane ON sessions (lane);
CREATE INDEX sessions_by_root ON sessions (root);
CREATE INDEX sessions_by_parent ON sessions (parent) WHERE parent IS NOT NULL;

CREATE TABLE events (
    number INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    tip INTEGER,
    kind TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_by_session ON events (session, seq);

CREATE TABLE blobs (
    id BLOB PRIMARY KEY,
    bytes BLOB NOT NULL
) STRICT;

CREATE TABLE locks (
    session TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Named integers. `numbered`: the highest message number ever used, recorded when messages are deleted.
CREATE TABLE marks (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
