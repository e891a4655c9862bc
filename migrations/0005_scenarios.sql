-- Scenarios: what kinds of request there are, and how the graph works on each. Part of the registry: managed by admins for
-- all businesses, seen by every process within two seconds. NULL tools: all that the request allows.
CREATE TABLE scenarios (
  scenario_id text PRIMARY KEY,
  name text NOT NULL UNIQUE,
  description text NOT NULL DEFAULT '',
  -- By role: what is added to the instructions of its prompts.
  prompts json NOT NULL DEFAULT '{}',
  tools text[],
  output_tool text,
  limits json NOT NULL DEFAULT '{}',
  -- By role: the alias of the model that serves it.
  models json NOT NULL DEFAULT '{}',
  -- Roles that make no model call: rules decide.
  rules text[] NOT NULL DEFAULT '{}',
  status text NOT NULL CHECK (status IN ('active', 'disabled')),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TRIGGER registry_changed AFTER INSERT OR UPDATE OR DELETE ON scenarios
  FOR EACH STATEMENT EXECUTE FUNCTION raise_registry_version();
GRANT SELECT, INSERT, UPDATE, DELETE ON scenarios TO mason_worker;
ALTER TABLE scenarios ENABLE ROW LEVEL SECURITY;
ALTER TABLE scenarios FORCE ROW LEVEL SECURITY;
CREATE POLICY worker ON scenarios TO mason_worker USING (true) WITH CHECK (true);

-- Which session holds which blob: written with the blob, so that what nobody holds any more can be told without reading all
-- actions of a business. `blobs.created_at` is when it was last stored: a blob that is stored again is young again.
CREATE TABLE blob_uses (
  tenant text NOT NULL REFERENCES businesses,
  sha256 text NOT NULL,
  session_id text NOT NULL,
  PRIMARY KEY (tenant, sha256, session_id)
);
CREATE INDEX blob_uses_by_session ON blob_uses (tenant, session_id);
GRANT SELECT, INSERT, UPDATE, DELETE ON blob_uses TO mason_api, mason_worker;
ALTER TABLE blob_uses ENABLE ROW LEVEL SECURITY;
ALTER TABLE blob_uses FORCE ROW LEVEL SECURITY;
CREATE POLICY worker ON blob_uses TO mason_worker USING (true) WITH CHECK (true);
CREATE POLICY business ON blob_uses TO mason_api USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));

-- What is there already holds what its texts name. As the worker: an owner whom no policy lets see the rows would note
-- nothing, and the sweep would then delete what is needed.
SET LOCAL ROLE mason_worker;
INSERT INTO blob_uses (tenant, sha256, session_id)
SELECT DISTINCT a.tenant, found[1], a.session_id
FROM actions a, regexp_matches(a.body::text || ' ' || a.patch::text, '"(?:blob":\s*"|local_path":\s*"blob:)([0-9a-f]{64})"', 'g') AS found
WHERE a.body::text LIKE '%blob%' OR a.patch::text LIKE '%blob%'
ON CONFLICT DO NOTHING;
INSERT INTO blob_uses (tenant, sha256, session_id)
SELECT DISTINCT r.tenant, found[1], r.session_id
FROM runs r JOIN run_requests q USING (tenant, run_id),
  regexp_matches(q.request::text, '"local_path":\s*"blob:([0-9a-f]{64})"', 'g') AS found
ON CONFLICT DO NOTHING;
RESET ROLE;

-- Last: while they are made nothing can be stored.
CREATE INDEX blobs_by_age ON blobs (created_at);
CREATE INDEX rejected_jobs_by_age ON rejected_jobs (received_at);
