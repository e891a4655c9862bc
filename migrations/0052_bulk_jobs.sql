-- One action on many runs: a fixed list, which a worker goes through under a lease once it is confirmed. No filter and no content
-- is stored.
CREATE TABLE bulk_jobs (
  tenant text NOT NULL REFERENCES businesses,
  job_id text NOT NULL,
  action text NOT NULL CHECK (action IN ('cancel', 'retry')),
  reason text,
  -- Whose budget the retries spend.
  token_id text,
  status text NOT NULL DEFAULT 'unconfirmed' CHECK (status IN ('unconfirmed', 'queued', 'running', 'completed', 'cancelled')),
  -- When a worker may take it: of one that is taken, the end of its lease.
  due_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  claims int NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  confirmed_at timestamptz,
  ended_at timestamptz,
  PRIMARY KEY (tenant, job_id)
);
CREATE INDEX bulk_jobs_due ON bulk_jobs (due_at) WHERE status IN ('queued', 'running');
CREATE INDEX bulk_jobs_by_age ON bulk_jobs (created_at);

CREATE TABLE bulk_runs (
  tenant text NOT NULL,
  job_id text NOT NULL,
  run_id text NOT NULL,
  position int NOT NULL,
  -- Null: not yet.
  status text CHECK (status IN ('done', 'refused')),
  -- Why it was refused.
  code text,
  PRIMARY KEY (tenant, job_id, run_id),
  FOREIGN KEY (tenant, job_id) REFERENCES bulk_jobs ON DELETE CASCADE
);
CREATE INDEX bulk_runs_left ON bulk_runs (tenant, job_id, position) WHERE status IS NULL;

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['bulk_jobs', 'bulk_runs'] LOOP
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO mason_worker, mason_api, mason_business', name);
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY worker ON %I TO mason_worker USING (true) WITH CHECK (true)', name);
    EXECUTE format('CREATE POLICY business ON %I TO mason_api, mason_business USING (tenant = current_setting(''mason.business'', true))
      WITH CHECK (tenant = current_setting(''mason.business'', true))', name);
  END LOOP;
END $$;
