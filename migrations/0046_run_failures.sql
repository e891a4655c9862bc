-- Where failed runs failed, so that lists find them by it. A table of their own: what an append changes is in no index of runs.
CREATE TABLE run_failures (
  tenant text NOT NULL,
  run_id text NOT NULL,
  error text NOT NULL,
  -- Null: no node did.
  node text,
  -- That of the run: lists have the latest first.
  created_at timestamptz NOT NULL,
  PRIMARY KEY (tenant, run_id),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
);
GRANT SELECT, INSERT, UPDATE, DELETE ON run_failures TO mason_worker, mason_api, mason_business;
ALTER TABLE run_failures ENABLE ROW LEVEL SECURITY;
ALTER TABLE run_failures FORCE ROW LEVEL SECURITY;
CREATE POLICY worker ON run_failures TO mason_worker USING (true) WITH CHECK (true);
CREATE POLICY business ON run_failures TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));

-- The runs so far, as the worker, who sees them all. NUL and half surrogate pairs, which json functions refuse, are replaced.
SET LOCAL ROLE mason_worker;
INSERT INTO run_failures (tenant, run_id, error, node, created_at)
SELECT r.tenant, r.run_id, o.error->>'code', o.error->>'node', r.created_at
FROM runs r JOIN run_results s USING (tenant, run_id), json_to_record(CASE WHEN strpos(s.result::text, '\u') = 0 THEN s.result
  ELSE regexp_replace(s.result::text, '\\u(0000|d[89a-f][0-9a-f]{2})', '\\ufffd', 'gi')::json END) AS o(error json)
WHERE r.status = 'failed' AND o.error->>'code' IS NOT NULL ON CONFLICT DO NOTHING;
RESET ROLE;

CREATE INDEX run_failures_by_error ON run_failures (tenant, error, created_at, run_id);
CREATE INDEX run_failures_by_node ON run_failures (tenant, node, created_at, run_id);
