-- What runs can be found by: an entry for each member of their metadata that is a text, a number, true, false or null.
-- An entry is the first 128 bits of SHA-256 of "<bytes of the key>:<key><value>", as src/engine/runs/metadata-entries.ts makes it.
CREATE TABLE run_metadata (
  tenant text NOT NULL,
  run_id text NOT NULL,
  entry uuid NOT NULL,
  -- That of the run: lists have the latest first.
  created_at timestamptz NOT NULL,
  PRIMARY KEY (tenant, run_id, entry),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
);

GRANT SELECT, INSERT, UPDATE, DELETE ON run_metadata TO mason_worker, mason_api, mason_business;
ALTER TABLE run_metadata ENABLE ROW LEVEL SECURITY;
ALTER TABLE run_metadata FORCE ROW LEVEL SECURITY;
CREATE POLICY worker ON run_metadata TO mason_worker USING (true) WITH CHECK (true);
CREATE POLICY business ON run_metadata TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));

-- The runs so far, as the worker, who sees them all. NUL and half surrogate pairs, which json functions refuse, are replaced.
SET LOCAL ROLE mason_worker;
INSERT INTO run_metadata (tenant, run_id, entry, created_at)
SELECT r.tenant, r.run_id, left(encode(sha256(convert_to(octet_length(m.key) || ':' || m.key || COALESCE(m.value #>> '{}', 'null'), 'UTF8')), 'hex'), 32)::uuid, r.created_at
FROM runs r JOIN run_requests q USING (tenant, run_id),
  json_each(CASE WHEN strpos(q.metadata::text, '\u') = 0 THEN q.metadata
    ELSE regexp_replace(q.metadata::text, '\\u(0000|d[89a-f][0-9a-f]{2})', '\\ufffd', 'gi')::json END) AS m
WHERE q.metadata::text <> '{}' AND json_typeof(m.value) NOT IN ('object', 'array')
ON CONFLICT DO NOTHING;
RESET ROLE;

CREATE INDEX run_metadata_by_entry ON run_metadata (tenant, entry, created_at, run_id);
