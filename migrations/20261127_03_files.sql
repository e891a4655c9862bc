-- Uploaded files and results over 32 KB, by content.
CREATE TABLE blobs (
  tenant text NOT NULL REFERENCES businesses,
  sha256 text NOT NULL,
  bytes bytea,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- A blob has its own bytes, or those of a file: the first of its business that was received with them.
  file_id text,
  size bigint,
  PRIMARY KEY (tenant, sha256),
  CONSTRAINT blobs_have_bytes CHECK (((bytes IS NULL) = (file_id IS NOT NULL)) AND ((file_id IS NULL) = (size IS NULL)))
);
CREATE INDEX blobs_by_age ON blobs (created_at);
ALTER TABLE blobs ALTER COLUMN bytes SET STORAGE EXTERNAL;
ALTER TABLE blobs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON blobs TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON blobs TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON blobs TO mason_api, mason_business, mason_worker;

-- Which session holds which blob: written with the blob, so that what no session holds any more is found without reading all
-- actions of a business. `blobs.created_at` is when it was last stored: a blob that is stored again is young again.
CREATE TABLE blob_uses (
  tenant text NOT NULL REFERENCES businesses,
  sha256 text NOT NULL,
  session_id text NOT NULL,
  PRIMARY KEY (tenant, sha256, session_id)
);
CREATE INDEX blob_uses_by_session ON blob_uses (tenant, session_id);
ALTER TABLE blob_uses ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON blob_uses TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON blob_uses TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON blob_uses TO mason_api, mason_business, mason_worker;

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
ALTER TABLE prepared_files ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON prepared_files TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON prepared_files TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON prepared_files TO mason_api, mason_business, mason_worker;

-- Files that products send before the run that names them, in parts of 1 MiB: all but the last are full.
CREATE TABLE files (
  tenant text NOT NULL REFERENCES businesses,
  file_id text NOT NULL,
  name text NOT NULL,
  type text NOT NULL,
  -- The bytes it will have; null: the one request that sends it says so by ending.
  length bigint,
  received bigint NOT NULL DEFAULT 0,
  -- As its sender says; compared when all bytes are there.
  expected_sha256 text,
  -- Null: not complete. Afterwards its bytes are those of this blob.
  sha256 text,
  -- Whether a run has named it since it was last received.
  named boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  touched_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant, file_id)
);
CREATE INDEX files_by_content ON files (tenant, sha256) WHERE sha256 IS NOT NULL;
CREATE INDEX files_unused ON files (touched_at) WHERE NOT named;
ALTER TABLE files ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON files TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON files TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON files TO mason_api, mason_business, mason_worker;

CREATE TABLE file_parts (
  tenant text NOT NULL REFERENCES businesses,
  file_id text NOT NULL,
  part int NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (tenant, file_id, part)
);
ALTER TABLE file_parts ALTER COLUMN bytes SET STORAGE EXTERNAL;
ALTER TABLE file_parts ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON file_parts TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON file_parts TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON file_parts TO mason_api, mason_business, mason_worker;

-- Parts go with what has them: an incomplete file, or a blob. So no deletion needs to think of them.
CREATE FUNCTION delete_file_parts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM file_parts WHERE tenant = OLD.tenant AND file_id = OLD.file_id;
  RETURN NULL;
END $$;

CREATE TRIGGER blobs_delete_parts AFTER DELETE ON blobs FOR EACH ROW WHEN (OLD.file_id IS NOT NULL) EXECUTE FUNCTION delete_file_parts();
CREATE TRIGGER files_delete_parts AFTER DELETE ON files FOR EACH ROW WHEN (OLD.sha256 IS NULL) EXECUTE FUNCTION delete_file_parts();
