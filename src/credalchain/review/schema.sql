CREATE TABLE models (
    id INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    file TEXT NOT NULL,
    first_used TEXT NOT NULL
);
CREATE TABLE rows (
    hash TEXT NOT NULL,
    occurrence INTEGER NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (hash, occurrence)
);
CREATE TABLE events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    request TEXT NOT NULL UNIQUE,
    at TEXT NOT NULL,
    who TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('answer', 'skip', 'undo')),
    row_hash TEXT NOT NULL,
    occurrence INTEGER NOT NULL,
    row_number INTEGER NOT NULL,
    label TEXT NOT NULL,
    value INTEGER CHECK (value IN (0, 1)),
    suggested INTEGER CHECK (suggested IN (0, 1)),
    lower REAL,
    upper REAL,
    blind INTEGER NOT NULL DEFAULT 0,
    undoes INTEGER UNIQUE REFERENCES events (id),
    model INTEGER NOT NULL REFERENCES models (id),
    FOREIGN KEY (row_hash, occurrence) REFERENCES rows (hash, occurrence)
);
