-- Schedules: requests that are submitted at planned times.
CREATE TABLE schedules (
  tenant text NOT NULL REFERENCES businesses,
  schedule_id text NOT NULL,
  name text NOT NULL,
  -- Exactly one of both.
  cron text,
  at timestamptz,
  time_zone text NOT NULL,
  catch_up text NOT NULL CHECK (catch_up IN ('none', 'last', 'all')),
  status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'paused', 'ended')),
  request json NOT NULL,
  -- The planned time that is fired next; null while it is not active.
  next_at timestamptz,
  -- When a worker looks at it: at next_at, or later while one fires it or after a refusal that may pass.
  try_at timestamptz,
  -- The fencing token: every claim and every change raises it.
  claims int NOT NULL DEFAULT 0,
  last_planned_at timestamptz,
  last_run_id text,
  -- {code, message, planned_at, at}: why the latest planned time has no run.
  last_error json,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant, schedule_id),
  CONSTRAINT schedules_check CHECK ((cron IS NULL) <> (at IS NULL)),
  CONSTRAINT schedules_check1 CHECK ((status = 'active') = (next_at IS NOT NULL AND try_at IS NOT NULL))
);
CREATE INDEX schedules_due ON schedules (tenant, try_at) WHERE status = 'active';
CREATE INDEX schedules_listed ON schedules (tenant, created_at, schedule_id);
ALTER TABLE schedules ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON schedules TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON schedules TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON schedules TO mason_api, mason_business, mason_worker;

