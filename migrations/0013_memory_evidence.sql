-- The sentence of the user's own message that asserts a memory; null: not confirmed. Memories written before this column were
-- confirmed by shared words, and processes of an earlier version still write so: neither is believed from here on.
ALTER TABLE memories ADD COLUMN evidence text;
