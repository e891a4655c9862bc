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

CREATE TABLE file_parts (
  tenant text NOT NULL REFERENCES businesses,
  file_id text NOT NULL,
  part int NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (tenant, file_id, part)
);
ALTER TABLE file_parts ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- A blob has its own bytes, or those of a file: the first of its business that was received with them.
ALTER TABLE blobs ALTER COLUMN bytes DROP NOT NULL, ADD COLUMN file_id text, ADD COLUMN size bigint,
  ADD CONSTRAINT blobs_have_bytes CHECK ((bytes IS NULL) = (file_id IS NOT NULL) AND (file_id IS NULL) = (size IS NULL)) NOT VALID;

-- Parts go with what has them: an incomplete file, or a blob. So no deletion needs to think of them.
CREATE FUNCTION delete_file_parts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM file_parts WHERE tenant = OLD.tenant AND file_id = OLD.file_id;
  RETURN NULL;
END $$;
CREATE TRIGGER files_delete_parts AFTER DELETE ON files FOR EACH ROW WHEN (OLD.sha256 IS NULL) EXECUTE FUNCTION delete_file_parts();
CREATE TRIGGER blobs_delete_parts AFTER DELETE ON blobs FOR EACH ROW WHEN (OLD.file_id IS NOT NULL) EXECUTE FUNCTION delete_file_parts();

GRANT SELECT, INSERT, UPDATE, DELETE ON files, file_parts TO mason_worker, mason_api;
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['files', 'file_parts'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY worker ON %I TO mason_worker USING (true) WITH CHECK (true)', name);
    EXECUTE format(
      'CREATE POLICY business ON %I TO mason_api USING (tenant = current_setting(''mason.business'', true))
       WITH CHECK (tenant = current_setting(''mason.business'', true))', name);
  END LOOP;
END $$;
