-- Agents of others that the runs of a business may call (A2A). The card is as it was when an admin added or changed the row.
CREATE TABLE remote_agents (
  agent_id text PRIMARY KEY,
  tenant text NOT NULL REFERENCES businesses,
  name text NOT NULL,
  card_url text NOT NULL,
  roles json NOT NULL,
  headers json NOT NULL,
  allow_private boolean NOT NULL,
  card json NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (tenant, name)
);
GRANT SELECT, INSERT, UPDATE, DELETE ON remote_agents TO mason_admin, mason_worker;
GRANT SELECT ON remote_agents TO mason_api, mason_business;
ALTER TABLE remote_agents ENABLE ROW LEVEL SECURITY;
ALTER TABLE remote_agents FORCE ROW LEVEL SECURITY;
CREATE POLICY worker ON remote_agents TO mason_worker USING (true) WITH CHECK (true);
CREATE POLICY admin ON remote_agents TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON remote_agents TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
-- Workers read them. A login that is both processes, as with DATABASE_URL alone, has the rights of both.
DO $$ DECLARE command text; BEGIN
  FOREACH command IN ARRAY ARRAY['INSERT', 'UPDATE', 'DELETE'] LOOP
    EXECUTE format('CREATE POLICY only_the_api_%s ON remote_agents AS RESTRICTIVE FOR %s TO mason_worker %s ((SELECT pg_has_role(session_user, ''mason_admin'', ''MEMBER'')))',
      lower(command), command, CASE command WHEN 'INSERT' THEN 'WITH CHECK' ELSE 'USING' END);
  END LOOP;
END $$;
