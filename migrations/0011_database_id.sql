-- One row, made by the first process that needs it: databases made from one template get different ids, a backup keeps its own.
CREATE TABLE database_identity (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  id text NOT NULL
);
GRANT SELECT, INSERT, UPDATE ON database_identity TO mason_worker;
ALTER TABLE database_identity ENABLE ROW LEVEL SECURITY;
ALTER TABLE database_identity FORCE ROW LEVEL SECURITY;
CREATE POLICY worker ON database_identity TO mason_worker USING (true) WITH CHECK (true);
