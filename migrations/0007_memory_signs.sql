-- The pass by signs reads this index and no row: a user's entries lie side by side, and are a quarter of his rows. Built in
-- about 7 s for a million memories; meanwhile they are read, and whoever writes one waits.
CREATE INDEX memories_near ON memories (tenant, user_id, space) INCLUDE (memory_id, signature) WHERE superseded_by IS NULL;

-- Rows of a page that was not vacuumed since it was written to are looked at all the same, so that is done early.
ALTER TABLE memories SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05);
