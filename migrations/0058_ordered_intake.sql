-- Jobs of the public queue are admitted by one leader a database, in the order in which Redis took them.
CREATE TABLE intake_lease (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  owner text NOT NULL DEFAULT '',
  -- The fencing token: every leader raises it, every admission from the queue names it and locks the row.
  epoch bigint NOT NULL DEFAULT 0,
  lease_until timestamptz NOT NULL DEFAULT '-infinity',
  -- Never written. Who may update a column may lock the row.
  lockable boolean
) WITH (fillfactor = 50);
INSERT INTO intake_lease DEFAULT VALUES;

-- Jobs that must wait (429, budget), and those of their sessions that came later, in the order of `seq`.
CREATE TABLE held_jobs (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant text NOT NULL REFERENCES businesses,
  session_id text NOT NULL,
  job_id text NOT NULL,
  data json NOT NULL,
  data_hash text NOT NULL,
  -- Why it waits.
  faults json NOT NULL,
  -- How often it was tried since it last only had to wait.
  attempts int NOT NULL DEFAULT 0,
  -- When it is tried next; of one with an outcome, when its job is released next. Null: after the one before it in its session.
  look_at timestamptz,
  -- What its job ends with. Null: it still waits.
  outcome json,
  held_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX held_jobs_by_content ON held_jobs (job_id, data_hash);
CREATE INDEX held_jobs_by_session ON held_jobs (tenant, session_id, seq) WHERE outcome IS NULL;
CREATE INDEX held_jobs_due ON held_jobs (tenant, look_at) WHERE outcome IS NULL AND look_at IS NOT NULL;
CREATE INDEX held_jobs_expired ON held_jobs (expires_at) WHERE outcome IS NULL;
CREATE INDEX held_jobs_settled ON held_jobs (look_at) WHERE outcome IS NOT NULL;

-- Jobs that a leader had taken when it was lost. Counted before they are read again, so that a deadly job ends.
CREATE TABLE recovered_jobs (
  job_id text PRIMARY KEY,
  attempts int NOT NULL DEFAULT 1,
  counted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

GRANT SELECT, INSERT, UPDATE, DELETE ON intake_lease, held_jobs, recovered_jobs TO mason_worker;
GRANT SELECT ON held_jobs, intake_lease TO mason_api, mason_business;
-- What waits for a session ends when that is deleted.
GRANT UPDATE (outcome, data, look_at) ON held_jobs TO mason_api, mason_business;
GRANT UPDATE (lockable) ON intake_lease TO mason_api, mason_business;
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['intake_lease', 'held_jobs', 'recovered_jobs'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY worker ON %I TO mason_worker USING (true) WITH CHECK (true)', name);
  END LOOP;
END $$;
CREATE POLICY business ON held_jobs TO mason_api, mason_business USING (tenant = current_setting('mason.business', true));
CREATE POLICY fence ON intake_lease TO mason_api, mason_business USING (true) WITH CHECK (true);
