-- Admin tokens of people: what they change is in the log of changes under their name.
CREATE TABLE operators (
  operator_id text PRIMARY KEY,
  token_hash text NOT NULL UNIQUE,
  name text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  revoked_at timestamptz
);
CREATE INDEX operators_listed ON operators (created_at, operator_id) WHERE revoked_at IS NULL;

-- What admins changed, written in the transaction of the change. Rows never change.
CREATE TABLE audit_log (
  audit_id text PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Null: the admin token of the settings, or auth is off.
  token_id text,
  token_label text NOT NULL,
  address text NOT NULL,
  request_id text NOT NULL,
  operation text NOT NULL,
  -- The path of the request.
  resource text NOT NULL,
  -- Of what was changed or made.
  resource_id text,
  business_id text,
  -- The names of the fields of the request, never their values.
  fields text[] NOT NULL
);
CREATE INDEX audit_log_by_time ON audit_log (at, audit_id);
CREATE INDEX audit_log_by_resource ON audit_log (resource_id, at, audit_id);
CREATE INDEX audit_log_by_token ON audit_log (token_id, at, audit_id);
CREATE TRIGGER audit_never_changes BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION refuse_update();

GRANT SELECT, INSERT, UPDATE (name, revoked_at) ON operators TO mason_admin, mason_worker;
GRANT SELECT, INSERT ON audit_log TO mason_admin, mason_worker;
-- A change on behalf of a business writes its row too, and sees none.
GRANT INSERT ON audit_log TO mason_api;
CREATE POLICY only_inserts ON audit_log FOR INSERT TO mason_api WITH CHECK (true);
DO $$
DECLARE
  name text;
  of_admin text := '(SELECT pg_has_role(session_user, ''mason_admin'', ''MEMBER''))';
BEGIN
  FOREACH name IN ARRAY ARRAY['operators', 'audit_log'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY worker ON %I TO mason_worker USING (true) WITH CHECK (true)', name);
    EXECUTE format('CREATE POLICY admin ON %I TO mason_admin USING (true) WITH CHECK (true)', name);
    -- A worker's login sees neither. One that is both processes, as with DATABASE_URL alone, has the rights of both.
    EXECUTE format('CREATE POLICY only_the_api ON %I AS RESTRICTIVE TO mason_worker USING (%s) WITH CHECK (%s)', name, of_admin, of_admin);
  END LOOP;
END $$;
