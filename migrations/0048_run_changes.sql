-- Which runs have a new status, for streams that follow a business. The id of the transaction is the position of a stream: all that
-- are below the oldest one still open have ended, so nothing is written there any more. Rows are kept for a day.
CREATE TABLE run_changes (
  tenant text NOT NULL,
  run_id text NOT NULL,
  session_id text NOT NULL,
  status text NOT NULL,
  xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
);
CREATE INDEX run_changes_by_transaction ON run_changes (tenant, xid);
CREATE INDEX run_changes_of_run ON run_changes (tenant, run_id);
CREATE INDEX run_changes_by_age ON run_changes (at);

GRANT SELECT, INSERT, UPDATE, DELETE ON run_changes TO mason_worker, mason_api, mason_business;
ALTER TABLE run_changes ENABLE ROW LEVEL SECURITY;
ALTER TABLE run_changes FORCE ROW LEVEL SECURITY;
CREATE POLICY worker ON run_changes TO mason_worker USING (true) WITH CHECK (true);
CREATE POLICY business ON run_changes TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));

-- Triggers, so that every way in which a run changes is seen, also that of a process of an earlier version.
CREATE FUNCTION note_new_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO run_changes (tenant, run_id, session_id, status) SELECT tenant, run_id, session_id, status FROM made;
  RETURN NULL;
END $$;
CREATE TRIGGER runs_are_new AFTER INSERT ON runs REFERENCING NEW TABLE AS made FOR EACH STATEMENT EXECUTE FUNCTION note_new_runs();
CREATE FUNCTION note_changed_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO run_changes (tenant, run_id, session_id, status) VALUES (NEW.tenant, NEW.run_id, NEW.session_id, NEW.status);
  RETURN NULL;
END $$;
CREATE TRIGGER run_has_changed AFTER UPDATE OF status ON runs FOR EACH ROW WHEN (NEW.status IS DISTINCT FROM OLD.status)
  EXECUTE FUNCTION note_changed_run();
