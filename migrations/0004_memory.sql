-- Memory: what is remembered of a user, where it came from, how it is found; and what ended runs still have to teach.
-- On a server only a superuser may add the extension; where it stands already nothing is done.
CREATE EXTENSION IF NOT EXISTS vector;

-- Narrow: of who has many, a search reads every row. `signature` is the signs of the vector, a bit each: the nearest by
-- those are compared exactly.
CREATE TABLE memories (
  tenant text NOT NULL REFERENCES businesses,
  user_id text NOT NULL,
  memory_id text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('preference', 'fact', 'knowledge', 'episode')),
  content text NOT NULL,
  -- What it speaks of (`name`, `home` …) where that is known: a newer one of the same subject takes its place.
  subject text,
  -- Where the words came from, and whether they may be believed.
  origin text NOT NULL CHECK (origin IN ('user', 'profile', 'memory', 'file', 'tool', 'web', 'agent')),
  trusted boolean NOT NULL,
  session_id text,
  run_id text,
  source_action_ids int[] NOT NULL DEFAULT '{}',
  -- Words as we cut them, Chinese in pairs.
  words tsvector NOT NULL,
  -- Which model's vectors it is in; empty: it has none yet.
  space text NOT NULL DEFAULT '',
  signature bit varying,
  -- Fades from its last use on; see src/state/memory/rank.ts.
  strength real NOT NULL DEFAULT 0.5 CHECK (strength BETWEEN 0 AND 1),
  uses int NOT NULL DEFAULT 0,
  last_used_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  superseded_by text,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant, memory_id)
) WITH (fillfactor = 80);
CREATE INDEX memories_searched ON memories (tenant, user_id, space) WHERE superseded_by IS NULL;
CREATE INDEX memories_listed ON memories (tenant, user_id, created_at, memory_id);
CREATE INDEX memories_by_space ON memories (space, tenant) WHERE superseded_by IS NULL;

-- Halves of floats, inline: 3072 numbers fit into a page, and none is fetched from elsewhere.
CREATE TABLE memory_vectors (
  tenant text NOT NULL,
  user_id text NOT NULL,
  memory_id text NOT NULL,
  space text NOT NULL,
  embedding halfvec NOT NULL,
  PRIMARY KEY (tenant, memory_id),
  FOREIGN KEY (tenant, memory_id) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX memory_vectors_searched ON memory_vectors (tenant, user_id, space);
ALTER TABLE memory_vectors ALTER COLUMN embedding SET STORAGE PLAIN;

-- Every run that taught it: with its last source a memory is forgotten.
CREATE TABLE memory_sources (
  tenant text NOT NULL,
  user_id text NOT NULL,
  memory_id text NOT NULL,
  session_id text NOT NULL,
  run_id text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant, memory_id, run_id),
  FOREIGN KEY (tenant, memory_id) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX memory_sources_by_session ON memory_sources (tenant, session_id);

-- How many numbers the vectors of a model have; written with the first of them.
CREATE TABLE memory_spaces (
  space text PRIMARY KEY,
  dimensions int NOT NULL CHECK (dimensions > 0),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Completed runs that nobody has learned from yet. A row is taken by a lease, every taking is counted, and it goes in the
-- transaction that writes what was learned.
CREATE TABLE distillations (
  tenant text NOT NULL,
  run_id text NOT NULL,
  due_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  tries int NOT NULL DEFAULT 0,
  -- Given up: kept for a week to be looked at.
  failed_at timestamptz,
  error text,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant, run_id),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
) WITH (fillfactor = 50);
CREATE INDEX distillations_due ON distillations (due_at) WHERE failed_at IS NULL;

-- In the transaction that ends the run. No append sets the status, so none of them comes by here.
CREATE FUNCTION queue_distillation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO distillations (tenant, run_id) VALUES (NEW.tenant, NEW.run_id) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER run_completed AFTER UPDATE OF status ON runs FOR EACH ROW
  WHEN (NEW.status = 'completed' AND OLD.status = 'running') EXECUTE FUNCTION queue_distillation();

-- What was said so far, and up to which turn.
ALTER TABLE sessions ADD COLUMN summary text NOT NULL DEFAULT '', ADD COLUMN summary_turn int NOT NULL DEFAULT 0;
-- Fields of the profile that were learned: {field: {value, run_id, session_id, at}}. One whose value is another by now is the admin's.
ALTER TABLE users ADD COLUMN learned json NOT NULL DEFAULT '{}';

GRANT SELECT, INSERT, UPDATE, DELETE ON memories, memory_vectors, memory_sources, distillations TO mason_api;
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['memories', 'memory_vectors', 'memory_sources', 'memory_spaces', 'distillations'] LOOP
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO mason_worker', name);
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY worker ON %I TO mason_worker USING (true) WITH CHECK (true)', name);
  END LOOP;
  EXECUTE 'CREATE POLICY business ON distillations TO mason_api USING (tenant = current_setting(''mason.business'', true))
    WITH CHECK (tenant = current_setting(''mason.business'', true))';
  -- A user's memories are his alone: without `mason.user` nothing is seen, `*` (no id is that) stands for all users of the
  -- business, for what is done with a memory or a session by its id.
  FOREACH name IN ARRAY ARRAY['memories', 'memory_vectors', 'memory_sources'] LOOP
    EXECUTE format('CREATE POLICY business ON %I TO mason_api
      USING (tenant = (SELECT current_setting(''mason.business'', true))
        AND ((SELECT current_setting(''mason.user'', true)) = ''*'' OR user_id = (SELECT current_setting(''mason.user'', true))))
      WITH CHECK (tenant = (SELECT current_setting(''mason.business'', true))
        AND ((SELECT current_setting(''mason.user'', true)) = ''*'' OR user_id = (SELECT current_setting(''mason.user'', true))))', name);
  END LOOP;
END $$;
