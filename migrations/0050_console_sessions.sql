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
  CHECK ((token_id IS NULL) = (admin_proof IS NOT NULL))
);
CREATE INDEX console_sessions_ended ON console_sessions (expires_at);
-- Sessions name their token alone.
CREATE INDEX tokens_by_id ON tokens (token_id);

GRANT SELECT, INSERT, DELETE ON console_sessions TO mason_admin, mason_worker;
ALTER TABLE console_sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE console_sessions FORCE ROW LEVEL SECURITY;
CREATE POLICY worker ON console_sessions TO mason_worker USING (true) WITH CHECK (true);
CREATE POLICY admin ON console_sessions TO mason_admin USING (true) WITH CHECK (true);
-- A worker's login sees none. One that is both processes, as with DATABASE_URL alone, has the rights of both.
CREATE POLICY only_the_api ON console_sessions AS RESTRICTIVE TO mason_worker
  USING ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER'))) WITH CHECK ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')));
