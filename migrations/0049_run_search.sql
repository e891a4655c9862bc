-- Which models a run has called, as the ledger has them. A table of its own: what an append changes is in no index of runs.
CREATE TABLE run_models (
  tenant text NOT NULL,
  run_id text NOT NULL,
  model text NOT NULL,
  -- That of the run: lists have the latest first.
  created_at timestamptz NOT NULL,
  PRIMARY KEY (tenant, run_id, model),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
);
-- The words of the prompt and the answer of an ended run, each as the first 64 bits of its hash. A row each: row security lets no index
-- of arrays be used.
CREATE TABLE run_words (
  tenant text NOT NULL,
  run_id text NOT NULL,
  word bigint NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (tenant, run_id, word),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
);
-- Ended runs whose words are not read yet.
CREATE TABLE unread_runs (
  tenant text NOT NULL,
  run_id text NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (tenant, run_id),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
);
GRANT SELECT, INSERT, UPDATE, DELETE ON run_models, run_words, unread_runs TO mason_worker, mason_api, mason_business;
GRANT SELECT, INSERT ON run_models TO mason_admin;
CREATE POLICY admin ON run_models TO mason_admin USING (true) WITH CHECK (true);
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['run_models', 'run_words', 'unread_runs'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY worker ON %I TO mason_worker USING (true) WITH CHECK (true)', name);
    EXECUTE format('CREATE POLICY business ON %I TO mason_api, mason_business USING (tenant = current_setting(''mason.business'', true))
      WITH CHECK (tenant = current_setting(''mason.business'', true))', name);
  END LOOP;
END $$;

-- With the entries of the ledger, in one order: two who enter the same wait for each other, never in a circle.
CREATE FUNCTION note_models() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO run_models (tenant, run_id, model, created_at)
  SELECT DISTINCT e.tenant, e.run_id, e.model_name, r.created_at FROM entered e JOIN runs r ON r.tenant = e.tenant AND r.run_id = e.run_id
  WHERE e.run_id IS NOT NULL ORDER BY 1, 2, 3 ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER entries_have_models AFTER INSERT ON usage_ledger REFERENCING NEW TABLE AS entered
  FOR EACH STATEMENT EXECUTE FUNCTION note_models();

-- As in 0049; what ends is to be searched by its words. A fork brings runs that have ended.
CREATE OR REPLACE FUNCTION note_new_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO run_changes (tenant, run_id, session_id, status) SELECT tenant, run_id, session_id, status FROM made;
  INSERT INTO unread_runs (tenant, run_id, created_at) SELECT tenant, run_id, created_at FROM made
  WHERE status IN ('completed', 'failed', 'cancelled') ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION note_changed_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO run_changes (tenant, run_id, session_id, status) VALUES (NEW.tenant, NEW.run_id, NEW.session_id, NEW.status);
  IF NEW.status IN ('completed', 'failed', 'cancelled') THEN
    INSERT INTO unread_runs (tenant, run_id, created_at) VALUES (NEW.tenant, NEW.run_id, NEW.created_at) ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END $$;

-- The runs so far, as the worker, who sees them all.
SET LOCAL ROLE mason_worker;
INSERT INTO run_models (tenant, run_id, model, created_at)
SELECT DISTINCT l.tenant, l.run_id, l.model_name, r.created_at FROM usage_ledger l JOIN runs r ON r.tenant = l.tenant AND r.run_id = l.run_id
WHERE l.run_id IS NOT NULL;
INSERT INTO unread_runs (tenant, run_id, created_at)
SELECT tenant, run_id, created_at FROM runs WHERE status IN ('completed', 'failed', 'cancelled');
RESET ROLE;

CREATE INDEX run_models_by_model ON run_models (tenant, model, created_at, run_id);
CREATE INDEX run_words_by_word ON run_words (tenant, word, created_at, run_id);
CREATE INDEX unread_runs_by_time ON unread_runs (created_at);
