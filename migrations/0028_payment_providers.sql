-- Payment providers, as admins enter them. The API encrypts their secrets to the executor's public key and cannot read them again.
CREATE TABLE payment_providers (
  provider_id text PRIMARY KEY,
  name text NOT NULL UNIQUE,
  kind text NOT NULL CHECK (kind = 'card'),
  base_url text NOT NULL,
  allow_private boolean NOT NULL,
  -- Which businesses pay by it; null: all.
  tenants text[] CHECK (cardinality(tenants) > 0),
  -- No money moves.
  is_test boolean NOT NULL,
  window_ms int NOT NULL CHECK (window_ms > 0),
  timeout_ms int NOT NULL CHECK (timeout_ms > 0),
  -- JWEs, and the last four characters of what they hold.
  sealed_api_key text NOT NULL,
  api_key_end text NOT NULL,
  sealed_webhook_secret text NOT NULL,
  webhook_secret_end text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Set once. It takes no new payments then; those that it has go on.
  ended_at timestamptz
);
CREATE INDEX payment_providers_listed ON payment_providers (created_at, provider_id);

GRANT SELECT ON payment_providers TO mason_payments;
GRANT INSERT, SELECT (provider_id, name, kind, base_url, allow_private, tenants, is_test, window_ms, timeout_ms, api_key_end,
    webhook_secret_end, created_at, updated_at, ended_at),
  UPDATE (name, base_url, allow_private, tenants, window_ms, timeout_ms, sealed_api_key, api_key_end, sealed_webhook_secret,
    webhook_secret_end, updated_at, ended_at)
  ON payment_providers TO mason_admin, mason_worker;
ALTER TABLE payment_providers ENABLE ROW LEVEL SECURITY;
ALTER TABLE payment_providers FORCE ROW LEVEL SECURITY;
CREATE POLICY executor ON payment_providers FOR SELECT TO mason_payments USING (true);
CREATE POLICY admin ON payment_providers TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON payment_providers TO mason_worker USING (true) WITH CHECK (true);
-- A worker's login sees no row and writes none. One that is both processes, as with DATABASE_URL alone, has the rights of both.
CREATE POLICY only_the_api ON payment_providers AS RESTRICTIVE TO mason_worker
  USING ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER'))) WITH CHECK ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')));
