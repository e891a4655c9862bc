-- What was found in files, so that the same bytes are opened once. The key is of the bytes, of what the name says they
-- are, and of the version of the code that opened them.
CREATE TABLE prepared_files (
  tenant text NOT NULL REFERENCES businesses,
  sha256 text NOT NULL,
  opened_as text NOT NULL,
  found json NOT NULL,
  -- The blobs that `found` names: while one of them is gone, the row says nothing.
  blobs text[] NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant, sha256, opened_as)
);
CREATE INDEX prepared_files_by_age ON prepared_files (created_at);

GRANT SELECT, INSERT, UPDATE, DELETE ON prepared_files TO mason_worker, mason_api;
ALTER TABLE prepared_files ENABLE ROW LEVEL SECURITY;
ALTER TABLE prepared_files FORCE ROW LEVEL SECURITY;
CREATE POLICY worker ON prepared_files TO mason_worker USING (true) WITH CHECK (true);
CREATE POLICY business ON prepared_files TO mason_api USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
