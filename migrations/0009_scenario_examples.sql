-- Requests that a scenario fits: what rules and the embedding model choose it by. With a constant default no row is rewritten.
ALTER TABLE scenarios ADD COLUMN examples text[] NOT NULL DEFAULT '{}';
