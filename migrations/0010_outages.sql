-- Runs that wait for a model. A row says something of its run while no action came since: `seq` is the run's next_seq then.
CREATE TABLE run_outages (
  tenant text NOT NULL,
  run_id text NOT NULL,
  seq int NOT NULL,
  -- Tries since the last action of the run.
  tries int NOT NULL,
  -- {code, message} of the last try.
  reason json NOT NULL,
  -- {first, omitted, last}: the tries of the run with their times, errors and waits.
  record json NOT NULL,
  PRIMARY KEY (tenant, run_id),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
);

GRANT SELECT, INSERT, UPDATE, DELETE ON run_outages TO mason_worker, mason_api;
ALTER TABLE run_outages ENABLE ROW LEVEL SECURITY;
ALTER TABLE run_outages FORCE ROW LEVEL SECURITY;
CREATE POLICY worker ON run_outages TO mason_worker USING (true) WITH CHECK (true);
CREATE POLICY business ON run_outages TO mason_api USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
