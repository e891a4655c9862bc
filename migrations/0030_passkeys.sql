-- Passkeys of users, with which they sign payments, and the one-time links to pages of Mason. Only the API writes them: a worker
-- that was taken over must not enrol a passkey of its own.
CREATE TABLE passkeys (
  -- The credential's id, base64url. No two users have one.
  credential_id text PRIMARY KEY,
  tenant text NOT NULL REFERENCES businesses,
  user_id text NOT NULL,
  -- COSE (RFC 9052).
  public_key bytea NOT NULL,
  -- The authenticator's; 0 for ever where it has none.
  counter bigint NOT NULL,
  transports json NOT NULL DEFAULT '[]',
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  last_used_at timestamptz
);
CREATE INDEX passkeys_of_user ON passkeys (tenant, user_id);

CREATE TABLE consent_links (
  -- SHA-256 of the link, hexadecimal: the link itself is stored nowhere.
  link_hash text PRIMARY KEY,
  tenant text NOT NULL REFERENCES businesses,
  user_id text NOT NULL,
  purpose text NOT NULL CHECK (purpose IN ('enrol', 'consent')),
  -- The consent; null: enrolment.
  ref_id text,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz NOT NULL,
  used_at timestamptz,
  CHECK ((purpose = 'consent') = (ref_id IS NOT NULL))
);
CREATE INDEX consent_links_of_user ON consent_links (tenant, user_id);
CREATE INDEX consent_links_ended ON consent_links (expires_at);

DO $$
DECLARE
  name text;
  of_api text := $p$(SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER'))$p$;
BEGIN
  FOREACH name IN ARRAY ARRAY['passkeys', 'consent_links'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY worker ON %I TO mason_worker USING (true) WITH CHECK (true)', name);
    EXECUTE format('CREATE POLICY admin ON %I TO mason_admin USING (true) WITH CHECK (true)', name);
    -- a login that is both processes, as with DATABASE_URL alone, has the rights of both
    EXECUTE format('CREATE POLICY only_the_api ON %I AS RESTRICTIVE TO mason_worker USING (%s) WITH CHECK (%s)', name, of_api, of_api);
  END LOOP;
END $$;
GRANT SELECT, INSERT, DELETE ON passkeys, consent_links TO mason_admin, mason_worker;
GRANT UPDATE (used_at) ON consent_links TO mason_admin, mason_worker;

-- The executor verifies what they sign.
GRANT SELECT, UPDATE (counter, last_used_at) ON passkeys TO mason_payments;
CREATE POLICY executor ON passkeys TO mason_payments USING (true) WITH CHECK (true);
