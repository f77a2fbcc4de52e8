-- Landings are looked up while they are open, and by their tree; the queue has one lease. `unsettled` is one that landed,
-- and whose process did not come to what follows from it.
CREATE INDEX landings_open ON landings (id) WHERE status IN ('queued', 'testing', 'moving', 'unsettled');
CREATE INDEX landings_tree ON landings (tree, id);

CREATE TABLE queue (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    doc TEXT NOT NULL
) STRICT;
