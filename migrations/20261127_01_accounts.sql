-- Roles that cannot bypass row-level security. An API process: mason_api for one business, mason_admin across all. A worker: mason_business
-- for one, mason_worker across all. The executor of payments: mason_payments, which is granted to the login of MASON_PAYMENT_DATABASE_URL
-- alone, by `mason migrate`; not to the user of this migration, whose login may be that of workers too.
-- Roles belong to the whole server, so another database may have made them just now.
DO $$
DECLARE
  wanted text;
  -- since PostgreSQL 16 who makes a role is its member, but may not act as it
  needed text := CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END;
BEGIN
  FOREACH wanted IN ARRAY ARRAY['mason_api', 'mason_worker', 'mason_admin', 'mason_business', 'mason_payments'] LOOP
    BEGIN
      IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
        EXECUTE format('CREATE ROLE %I NOLOGIN NOBYPASSRLS', wanted);
      END IF;
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
    END;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = wanted AND (rolsuper OR rolbypassrls)) THEN
      RAISE EXCEPTION 'role % can bypass row-level security', wanted USING HINT = format('ALTER ROLE %I NOSUPERUSER NOBYPASSRLS', wanted);
    END IF;
    IF wanted <> 'mason_payments' AND NOT pg_has_role(current_user, wanted, needed) THEN
      EXECUTE format('GRANT %I TO %I', wanted, current_user);
    END IF;
  END LOOP;
END $$;
GRANT USAGE ON SCHEMA mason TO mason_api, mason_worker, mason_admin, mason_business, mason_payments;
-- Every start compares them with its own.
GRANT SELECT ON migrations TO mason_worker, mason_admin, mason_payments;

CREATE TABLE businesses (
  tenant text PRIMARY KEY,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Runs at work at once; null: no limit.
  max_concurrency int CHECK (max_concurrency > 0),
  -- Runs waiting; more are refused with 429.
  max_queued int NOT NULL DEFAULT 10000 CHECK (max_queued > 0),
  -- How long a run may wait to be started.
  queue_ttl interval NOT NULL DEFAULT interval '24 hours',
  -- For round-robin between businesses; `claims` makes two claims at one moment see each other.
  last_claimed_at timestamptz,
  claims bigint NOT NULL DEFAULT 0,
  -- Whether anything is learned from the runs of a business.
  learning boolean NOT NULL DEFAULT true,
  -- Quotas; null: the default of the settings. `max_concurrency` is the fourth.
  quota_storage_bytes bigint CHECK (quota_storage_bytes > 0),
  quota_queued_runs int CHECK (quota_queued_runs > 0),
  quota_requests_per_minute int CHECK (quota_requests_per_minute > 0),
  -- Hosts that the runs of a business may call with http_request, and the secrets that only requests to them carry.
  http_hosts json NOT NULL DEFAULT '[]',
  -- Beside `learning`: a business that learns may leave it out.
  recall boolean NOT NULL DEFAULT true,
  -- Turns of earlier versions, and of the time when recall was off, are read session by session, after this one. Null: all are read.
  turns_read_to text,
  -- What was read of them in this hour.
  turns_read_tokens bigint NOT NULL DEFAULT 0,
  turns_read_hour timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);
ALTER TABLE businesses ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON businesses TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON businesses TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON businesses TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE ON businesses TO mason_admin;
GRANT SELECT ON businesses TO mason_api, mason_business;
GRANT SELECT, INSERT, UPDATE, DELETE ON businesses TO mason_worker;

CREATE TABLE tokens (
  tenant text NOT NULL REFERENCES businesses,
  token_id text NOT NULL,
  token_hash text NOT NULL UNIQUE,
  label text NOT NULL,
  roles text[] NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  revoked_at timestamptz,
  PRIMARY KEY (tenant, token_id)
);
-- Sessions name their token alone.
CREATE INDEX tokens_by_id ON tokens (token_id);
ALTER TABLE tokens ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON tokens TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON tokens TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
-- A worker's login sees no tokens. One that is both processes, as with DATABASE_URL alone, does as before.
CREATE POLICY only_the_api ON tokens AS RESTRICTIVE TO mason_worker USING ((SELECT pg_has_role(session_user, 'mason_api', 'MEMBER')))
  WITH CHECK ((SELECT pg_has_role(session_user, 'mason_api', 'MEMBER')));
CREATE POLICY worker ON tokens TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE ON tokens TO mason_admin;
GRANT SELECT ON tokens TO mason_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON tokens TO mason_worker;

CREATE TABLE users (
  tenant text NOT NULL REFERENCES businesses,
  user_id text NOT NULL,
  profile json NOT NULL DEFAULT '{}',
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Fields of the profile that were learned: {field: {value, run_id, session_id, at}}. One whose value is another by now is the admin's.
  learned json NOT NULL DEFAULT '{}',
  PRIMARY KEY (tenant, user_id)
);
ALTER TABLE users ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON users TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON users TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON users TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON users TO mason_admin, mason_api, mason_business, mason_worker;

-- One row, made by the first process that needs it: databases made from one template get different ids, a backup keeps its own.
CREATE TABLE database_identity (
  only_row boolean DEFAULT true CHECK (only_row) PRIMARY KEY,
  id text NOT NULL
);
ALTER TABLE database_identity ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON database_identity TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON database_identity TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE ON database_identity TO mason_admin, mason_worker;

-- Requests of a business in its latest minute, of all processes.
CREATE TABLE request_counts (
  tenant text PRIMARY KEY REFERENCES businesses,
  minute timestamptz NOT NULL,
  requests bigint NOT NULL
) WITH (fillfactor = 50);
ALTER TABLE request_counts ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON request_counts TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON request_counts TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON request_counts TO mason_api, mason_business, mason_worker;

-- All secrets of one business: a JSON object of names and values, sealed as the secrets of vendors are.
CREATE TABLE business_secrets (
  tenant text PRIMARY KEY REFERENCES businesses,
  names text[] NOT NULL,
  master_key text NOT NULL,
  wrapped_key bytea NOT NULL,
  sealed_secrets bytea NOT NULL
);
ALTER TABLE business_secrets ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON business_secrets TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON business_secrets FOR SELECT TO mason_api, mason_business USING (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON business_secrets TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON business_secrets TO mason_admin, mason_worker;
GRANT SELECT ON business_secrets TO mason_api, mason_business;

-- Admin tokens of people: what they change is in the log of changes under their name.
CREATE TABLE operators (
  operator_id text PRIMARY KEY,
  token_hash text NOT NULL UNIQUE,
  name text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  revoked_at timestamptz
);
CREATE INDEX operators_listed ON operators (created_at, operator_id) WHERE revoked_at IS NULL;
ALTER TABLE operators ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON operators TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY only_the_api ON operators AS RESTRICTIVE TO mason_worker USING ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')))
  WITH CHECK ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')));
CREATE POLICY worker ON operators TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE (name, revoked_at) ON operators TO mason_admin, mason_worker;

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
CREATE INDEX audit_log_by_resource ON audit_log (resource_id, at, audit_id);
CREATE INDEX audit_log_by_time ON audit_log (at, audit_id);
CREATE INDEX audit_log_by_token ON audit_log (token_id, at, audit_id);
ALTER TABLE audit_log ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON audit_log TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY only_inserts ON audit_log FOR INSERT TO mason_api WITH CHECK (true);
CREATE POLICY only_the_api ON audit_log AS RESTRICTIVE TO mason_worker USING ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')))
  WITH CHECK ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')));
CREATE POLICY worker ON audit_log TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT ON audit_log TO mason_admin, mason_worker;
GRANT INSERT ON audit_log TO mason_api;

-- Who is signed in to the console. A session names its token and never what the token may do: that is read at each request.
CREATE TABLE console_sessions (
  -- SHA-256 of the cookie or code, hexadecimal: neither is stored.
  secret_hash text PRIMARY KEY,
  -- A code of `mason console` is exchanged for a session once.
  kind text NOT NULL CHECK (kind IN ('session', 'code')),
  -- Null: the admin token of the settings.
  token_id text,
  -- Of the admin token: SHA-256 of the cookie or code and that token, so that the session ends when another one is set.
  admin_proof text,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz NOT NULL,
  CONSTRAINT console_sessions_check CHECK ((token_id IS NULL) = (admin_proof IS NOT NULL))
);
CREATE INDEX console_sessions_ended ON console_sessions (expires_at);
ALTER TABLE console_sessions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON console_sessions TO mason_admin USING (true) WITH CHECK (true);
-- A worker's login sees none. One that is both processes, as with DATABASE_URL alone, has the rights of both.
CREATE POLICY only_the_api ON console_sessions AS RESTRICTIVE TO mason_worker USING ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')))
  WITH CHECK ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')));
CREATE POLICY worker ON console_sessions TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, DELETE ON console_sessions TO mason_admin, mason_worker;

CREATE FUNCTION refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of % never change', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;

CREATE TRIGGER audit_never_changes BEFORE DELETE OR UPDATE OR TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION refuse_update();
