-- What only the executor of payments may read: its keys, and the secrets of providers that the API seals to it.

-- Every start compares them with its own.
GRANT SELECT ON migrations TO mason_payments;

-- The executor's key pairs on P-256: what the API seals to (ECDH-ES), and what receipts are signed with (ES256).
CREATE TABLE payment_keys (
  -- The thumbprint of the public key (RFC 7638).
  kid text PRIMARY KEY,
  purpose text NOT NULL CHECK (purpose IN ('sealing', 'signing')),
  x text NOT NULL,
  y text NOT NULL,
  -- The private key as a JWK, sealed under a key of MASON_PAYMENT_KEY; `master_key` names it.
  master_key text NOT NULL,
  wrapped_key bytea NOT NULL,
  sealed_private bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Null: in use. One that has ended still opens what was sealed to it, and verifies what it signed.
  ended_at timestamptz
);
CREATE UNIQUE INDEX payment_keys_in_use ON payment_keys (purpose) WHERE ended_at IS NULL;

GRANT SELECT, INSERT, UPDATE (master_key, wrapped_key, ended_at) ON payment_keys TO mason_payments;
GRANT SELECT (kid, purpose, x, y, created_at, ended_at) ON payment_keys TO mason_admin, mason_worker;
ALTER TABLE payment_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE payment_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY executor ON payment_keys TO mason_payments USING (true) WITH CHECK (true);
CREATE POLICY admin ON payment_keys FOR SELECT TO mason_admin USING (true);
CREATE POLICY worker ON payment_keys FOR SELECT TO mason_worker USING (true);
