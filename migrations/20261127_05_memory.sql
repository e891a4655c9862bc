-- On a server only a superuser may add the extension; where it stands already nothing is done.
CREATE EXTENSION IF NOT EXISTS vector;

CREATE SEQUENCE memory_numbers;
GRANT USAGE ON SEQUENCE memory_numbers TO mason_api, mason_business, mason_worker;

CREATE SEQUENCE turn_numbers;
GRANT USAGE ON SEQUENCE turn_numbers TO mason_api, mason_business, mason_worker;

-- Narrow: of who has many, a search reads every row. `signature` is the signs of the vector, a bit each: the nearest by
-- those are compared exactly.
-- Rows of a page that was not vacuumed since it was written to are looked at all the same, so that is done early.
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
  -- The sentence of the user's own message that asserts a memory; null: not confirmed, so not believed.
  evidence text,
  -- Null in rows of earlier versions until a memory worker has read their words: backwards, with numbers below zero.
  number bigint DEFAULT nextval('memory_numbers'),
  PRIMARY KEY (tenant, memory_id),
  CONSTRAINT memories_number UNIQUE (number)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_insert_scale_factor=0.05);
CREATE INDEX memories_by_space ON memories (space, tenant) WHERE superseded_by IS NULL;
CREATE INDEX memories_listed ON memories (tenant, user_id, created_at, memory_id);
-- The pass by signs reads this index and no row: a user's entries lie side by side, and are a quarter of the rows.
CREATE INDEX memories_near ON memories (tenant, user_id, space) INCLUDE (memory_id, signature) WHERE superseded_by IS NULL;
CREATE INDEX memories_searched ON memories (tenant, user_id, space) WHERE superseded_by IS NULL;
CREATE INDEX memories_unread ON memories (tenant, user_id, created_at) WHERE number IS NULL AND superseded_by IS NULL;
ALTER TABLE memories ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON memories TO mason_api, mason_business
  USING (tenant = (SELECT current_setting('mason.business', true)) AND ((SELECT current_setting('mason.user', true)) = '*' OR user_id = (SELECT current_setting('mason.user', true))))
  WITH CHECK (tenant = (SELECT current_setting('mason.business', true)) AND ((SELECT current_setting('mason.user', true)) = '*' OR user_id = (SELECT current_setting('mason.user', true))));
CREATE POLICY worker ON memories TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON memories TO mason_api, mason_business, mason_worker;

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
ALTER TABLE memory_vectors ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON memory_vectors TO mason_api, mason_business
  USING (tenant = (SELECT current_setting('mason.business', true)) AND ((SELECT current_setting('mason.user', true)) = '*' OR user_id = (SELECT current_setting('mason.user', true))))
  WITH CHECK (tenant = (SELECT current_setting('mason.business', true)) AND ((SELECT current_setting('mason.user', true)) = '*' OR user_id = (SELECT current_setting('mason.user', true))));
CREATE POLICY worker ON memory_vectors TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON memory_vectors TO mason_api, mason_business, mason_worker;

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
ALTER TABLE memory_sources ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON memory_sources TO mason_api, mason_business
  USING (tenant = (SELECT current_setting('mason.business', true)) AND ((SELECT current_setting('mason.user', true)) = '*' OR user_id = (SELECT current_setting('mason.user', true))))
  WITH CHECK (tenant = (SELECT current_setting('mason.business', true)) AND ((SELECT current_setting('mason.user', true)) = '*' OR user_id = (SELECT current_setting('mason.user', true))));
CREATE POLICY worker ON memory_sources TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON memory_sources TO mason_api, mason_business, mason_worker;

-- How many numbers the vectors of a model have; written with the first of them.
CREATE TABLE memory_spaces (
  space text PRIMARY KEY,
  dimensions int NOT NULL CHECK (dimensions > 0),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- The similarity of texts of a space that have nothing to do with each other.
  pair_mean real,
  pair_deviation real,
  pairs int NOT NULL DEFAULT 0
);
ALTER TABLE memory_spaces ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON memory_spaces TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY reader ON memory_spaces FOR SELECT TO mason_api, mason_business USING (true);
CREATE POLICY worker ON memory_spaces TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE ON memory_spaces TO mason_admin;
GRANT SELECT ON memory_spaces TO mason_api, mason_business;
GRANT SELECT, INSERT, UPDATE, DELETE ON memory_spaces TO mason_worker;

-- Completed runs that were not learned from yet. A row is taken by a lease, every taking is counted, and it goes in the
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
ALTER TABLE distillations ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON distillations TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON distillations TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON distillations TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT (created_at, failed_at, run_id, tenant), UPDATE (failed_at), DELETE ON distillations TO mason_admin;
GRANT SELECT, INSERT, UPDATE, DELETE ON distillations TO mason_api, mason_business, mason_worker;

CREATE TABLE memory_words (
  tenant text NOT NULL,
  user_id text NOT NULL,
  word bigint NOT NULL,
  number bigint NOT NULL REFERENCES memories(number) ON DELETE CASCADE,
  PRIMARY KEY (tenant, user_id, word, number)
) WITH (autovacuum_vacuum_insert_scale_factor=0.05);
CREATE INDEX memory_words_of ON memory_words (number);
ALTER TABLE memory_words ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON memory_words TO mason_api, mason_business
  USING (tenant = (SELECT current_setting('mason.business', true)) AND ((SELECT current_setting('mason.user', true)) = '*' OR user_id = (SELECT current_setting('mason.user', true))))
  WITH CHECK (tenant = (SELECT current_setting('mason.business', true)) AND ((SELECT current_setting('mason.user', true)) = '*' OR user_id = (SELECT current_setting('mason.user', true))));
CREATE POLICY worker ON memory_words TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON memory_words TO mason_api, mason_business, mason_worker;

CREATE TABLE turns (
  tenant text NOT NULL,
  session_id text NOT NULL,
  turn int NOT NULL,
  -- The last turn in the row.
  last_turn int NOT NULL,
  user_id text NOT NULL,
  number bigint NOT NULL DEFAULT nextval('turn_numbers') UNIQUE,
  content text NOT NULL,
  words tsvector NOT NULL,
  -- Which model's vector it has; empty: none yet.
  space text NOT NULL DEFAULT '',
  signature bit varying,
  said_at timestamptz NOT NULL,
  PRIMARY KEY (tenant, session_id, turn),
  FOREIGN KEY (tenant, session_id) REFERENCES sessions ON DELETE CASCADE
);
CREATE INDEX turns_by_space ON turns (space, tenant);
CREATE INDEX turns_near ON turns (tenant, user_id, space) INCLUDE (number, signature, session_id, said_at);
CREATE INDEX turns_said ON turns (tenant, user_id, said_at);
ALTER TABLE turns ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON turns TO mason_admin USING (true);
CREATE POLICY business ON turns TO mason_api, mason_business
  USING (tenant = (SELECT current_setting('mason.business', true)) AND ((SELECT current_setting('mason.user', true)) = '*' OR user_id = (SELECT current_setting('mason.user', true))))
  WITH CHECK (tenant = (SELECT current_setting('mason.business', true)) AND ((SELECT current_setting('mason.user', true)) = '*' OR user_id = (SELECT current_setting('mason.user', true))));
CREATE POLICY worker ON turns TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT (space, tenant), DELETE ON turns TO mason_admin;
GRANT SELECT, INSERT, UPDATE, DELETE ON turns TO mason_api, mason_business, mason_worker;

CREATE TABLE turn_vectors (
  tenant text NOT NULL,
  user_id text NOT NULL,
  number bigint PRIMARY KEY REFERENCES turns(number) ON DELETE CASCADE,
  session_id text NOT NULL,
  said_at timestamptz NOT NULL,
  space text NOT NULL,
  embedding halfvec NOT NULL
);
CREATE INDEX turn_vectors_searched ON turn_vectors (tenant, user_id, space);
ALTER TABLE turn_vectors ALTER COLUMN embedding SET STORAGE PLAIN;
ALTER TABLE turn_vectors ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON turn_vectors TO mason_api, mason_business
  USING (tenant = (SELECT current_setting('mason.business', true)) AND ((SELECT current_setting('mason.user', true)) = '*' OR user_id = (SELECT current_setting('mason.user', true))))
  WITH CHECK (tenant = (SELECT current_setting('mason.business', true)) AND ((SELECT current_setting('mason.user', true)) = '*' OR user_id = (SELECT current_setting('mason.user', true))));
CREATE POLICY worker ON turn_vectors TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON turn_vectors TO mason_api, mason_business, mason_worker;

CREATE TABLE turn_words (
  tenant text NOT NULL,
  user_id text NOT NULL,
  word bigint NOT NULL,
  number bigint NOT NULL REFERENCES turns(number) ON DELETE CASCADE,
  PRIMARY KEY (tenant, user_id, word, number)
);
CREATE INDEX turn_words_of ON turn_words (number);
ALTER TABLE turn_words ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON turn_words TO mason_api, mason_business
  USING (tenant = (SELECT current_setting('mason.business', true)) AND ((SELECT current_setting('mason.user', true)) = '*' OR user_id = (SELECT current_setting('mason.user', true))))
  WITH CHECK (tenant = (SELECT current_setting('mason.business', true)) AND ((SELECT current_setting('mason.user', true)) = '*' OR user_id = (SELECT current_setting('mason.user', true))));
CREATE POLICY worker ON turn_words TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON turn_words TO mason_api, mason_business, mason_worker;

-- What a user said before this is not read into `turns` later: something of it was forgotten.
CREATE TABLE turn_cutoffs (
  tenant text NOT NULL REFERENCES businesses ON DELETE CASCADE,
  user_id text NOT NULL,
  said_before timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant, user_id)
);
ALTER TABLE turn_cutoffs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON turn_cutoffs TO mason_api, mason_business
  USING (tenant = (SELECT current_setting('mason.business', true)) AND ((SELECT current_setting('mason.user', true)) = '*' OR user_id = (SELECT current_setting('mason.user', true))))
  WITH CHECK (tenant = (SELECT current_setting('mason.business', true)) AND ((SELECT current_setting('mason.user', true)) = '*' OR user_id = (SELECT current_setting('mason.user', true))));
CREATE POLICY worker ON turn_cutoffs TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON turn_cutoffs TO mason_api, mason_business, mason_worker;

-- Decided here, so that processes of an earlier version leave it alone too while a new one is rolled out.
CREATE FUNCTION queue_distillation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO distillations (tenant, run_id)
  SELECT NEW.tenant, NEW.run_id FROM businesses WHERE tenant = NEW.tenant AND learning ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;

-- In the transaction of the memory, also of workers of an earlier version. One that is superseded is not searched.
CREATE FUNCTION read_memory_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN DELETE FROM memory_words WHERE number = OLD.number; END IF;
  IF NEW.superseded_by IS NULL AND NEW.number IS NOT NULL THEN
    INSERT INTO memory_words (tenant, user_id, word, number)
    SELECT DISTINCT NEW.tenant, NEW.user_id, hashtextextended(word, 0), NEW.number FROM unnest(tsvector_to_array(NEW.words)) AS word;
  END IF;
  RETURN NULL;
END $$;

CREATE FUNCTION read_turn_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN DELETE FROM turn_words WHERE number = OLD.number; END IF;
  INSERT INTO turn_words (tenant, user_id, word, number)
  SELECT DISTINCT NEW.tenant, NEW.user_id, hashtextextended(word, 0), NEW.number FROM unnest(tsvector_to_array(NEW.words)) AS word;
  RETURN NULL;
END $$;

CREATE TRIGGER run_completed AFTER UPDATE OF status ON runs FOR EACH ROW
  WHEN ((NEW.status = 'completed') AND (OLD.status = 'running'))
  EXECUTE FUNCTION queue_distillation();
CREATE TRIGGER memory_is_read AFTER INSERT OR UPDATE OF superseded_by, number, words ON memories FOR EACH ROW EXECUTE FUNCTION read_memory_words();
CREATE TRIGGER turn_is_read AFTER INSERT OR UPDATE OF words ON turns FOR EACH ROW EXECUTE FUNCTION read_turn_words();
