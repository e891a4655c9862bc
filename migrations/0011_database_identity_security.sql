ALTER TABLE database_identity ENABLE ROW LEVEL SECURITY;
ALTER TABLE database_identity FORCE ROW LEVEL SECURITY;
CREATE POLICY worker ON database_identity TO mason_worker USING (true) WITH CHECK (true);
