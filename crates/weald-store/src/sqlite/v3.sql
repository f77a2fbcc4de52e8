-- Agents: looked up while they are open, and by their task.
CREATE TABLE agents (
    id INTEGER PRIMARY KEY,
    task TEXT NOT NULL,
    open INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT;
CREATE INDEX agents_open ON agents (id) WHERE open = 1;
CREATE INDEX agents_task ON agents (task, id);

-- Questions that nobody answered are looked for whenever somebody looks at agents.
CREATE INDEX messages_pending ON messages (id) WHERE doc ->> '$.state' = 'pending';
