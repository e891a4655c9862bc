-- Keys of issuers whose signatures on mandates, carts and receipts are trusted. A row ends and never changes.
CREATE TABLE trusted_keys (
  key_id text PRIMARY KEY,
  -- Null: all businesses trust it.
  tenant text REFERENCES businesses,
  issuer text NOT NULL,
  kid text NOT NULL,
  roles text[] NOT NULL CHECK (cardinality(roles) > 0),
  -- The point on P-256, as in a JWK. Both points of one x have related private keys, so a revocation is about x.
  x text NOT NULL,
  y text NOT NULL,
  valid_from timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Null: until it is ended. Ending a key sets it to the time of the end, once.
  valid_to timestamptz,
  revoked_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX trusted_keys_listed ON trusted_keys (created_at, key_id);
CREATE UNIQUE INDEX trusted_keys_named ON trusted_keys (kid, issuer, COALESCE(tenant, ''));
CREATE INDEX trusted_keys_of_issuer ON trusted_keys (issuer);
CREATE INDEX trusted_keys_of_point ON trusted_keys (x);
ALTER TABLE trusted_keys ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON trusted_keys TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON trusted_keys FOR SELECT TO mason_api, mason_business
  USING (tenant IS NULL OR tenant = current_setting('mason.business', true));
CREATE POLICY executor ON trusted_keys FOR SELECT TO mason_payments USING (true);
-- A worker's login reads and writes nothing. One that is both processes, as with DATABASE_URL alone, has the rights of both.
CREATE POLICY only_the_api ON trusted_keys AS RESTRICTIVE TO mason_worker USING (true)
  WITH CHECK ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')));
CREATE POLICY worker ON trusted_keys TO mason_worker USING (true) WITH CHECK (true);
GRANT
  SELECT,
  INSERT (issuer, key_id, kid, roles, tenant, valid_from, valid_to, x, y),
  UPDATE (revoked_at, valid_to)
  ON trusted_keys TO mason_admin, mason_worker;
GRANT SELECT ON trusted_keys TO mason_api, mason_business, mason_payments;

-- What a call of a run, or an admin, asks the executor for.
-- `present` shows the signed mandates to the credentials provider: no money moves, so it may be repeated.
CREATE TABLE payment_orders (
  order_id text PRIMARY KEY,
  tenant text NOT NULL REFERENCES businesses,
  kind text NOT NULL CHECK (kind IN ('pay', 'present', 'capture', 'void', 'refund', 'settle', 'answer')),
  payment_id text NOT NULL,
  -- Null: an admin's.
  run_id text,
  plan_seq int,
  call_index int,
  request json NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Set by a cancel. It counts until `sent_at` is set: both statements lock the row.
  canceled_at timestamptz,
  sent_at timestamptz,
  taken_at timestamptz,
  takes int NOT NULL DEFAULT 0,
  lease_until timestamptz,
  next_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  done_at timestamptz,
  outcome json,
  -- A credential or the answer of a person, sealed to the executor (compact JWE). It is removed when the order is done.
  sealed text,
  open_mandate_id text
);
CREATE UNIQUE INDEX payment_orders_of_call ON payment_orders (tenant, run_id, plan_seq, call_index, kind) WHERE run_id IS NOT NULL;
CREATE INDEX payment_orders_of_open_mandate ON payment_orders (open_mandate_id) WHERE open_mandate_id IS NOT NULL;
CREATE INDEX payment_orders_of_payment ON payment_orders (payment_id);
CREATE INDEX payment_orders_open ON payment_orders (next_at) WHERE done_at IS NULL;
CREATE UNIQUE INDEX payment_orders_pay ON payment_orders (payment_id) WHERE kind = 'pay';
ALTER TABLE payment_orders ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON payment_orders TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON payment_orders TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY executor ON payment_orders TO mason_payments USING (true) WITH CHECK (true);
-- What a worker asks for is a payment or the answer of a person; the rest is for admins. A login that is both processes may both.
CREATE POLICY only_admins ON payment_orders AS RESTRICTIVE FOR INSERT TO mason_api, mason_business, mason_worker
  WITH CHECK (kind IN ('pay', 'present', 'answer') OR (SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')));
CREATE POLICY worker ON payment_orders TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE ON payment_orders TO mason_payments;
GRANT
  SELECT (call_index, canceled_at, created_at, done_at, kind, open_mandate_id, order_id, outcome, payment_id, plan_seq, run_id, sent_at,
    tenant),
  INSERT (call_index, kind, open_mandate_id, order_id, payment_id, plan_seq, request, run_id, sealed, tenant),
  UPDATE (canceled_at)
  ON payment_orders TO mason_admin, mason_api, mason_business, mason_worker;

-- What was paid under a mandate: of the first open mandate of a chain, or of the closed one where there is none. The key is who
-- signed it and what, never the text of a token, which is not unique (docs/decisions/0078).
CREATE TABLE mandate_spend (
  spend_id text PRIMARY KEY,
  tenant text NOT NULL,
  currency text NOT NULL,
  -- In minor units; null: the mandate has no budget.
  max_minor bigint,
  max_uses int,
  reserved_minor bigint NOT NULL DEFAULT 0 CHECK (reserved_minor >= 0),
  spent_minor bigint NOT NULL DEFAULT 0 CHECK (spent_minor >= 0),
  reserved_uses int NOT NULL DEFAULT 0 CHECK (reserved_uses >= 0),
  spent_uses int NOT NULL DEFAULT 0 CHECK (spent_uses >= 0),
  CONSTRAINT mandate_spend_budget CHECK (reserved_minor + spent_minor <= max_minor),
  CONSTRAINT mandate_spend_uses CHECK (reserved_uses + spent_uses <= max_uses)
) WITH (fillfactor = 70);
ALTER TABLE mandate_spend ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY executor ON mandate_spend TO mason_payments USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE ON mandate_spend TO mason_payments;

CREATE TABLE payments (
  payment_id text PRIMARY KEY,
  tenant text NOT NULL,
  order_id text NOT NULL,
  run_id text,
  plan_seq int,
  call_index int,
  status text NOT NULL CHECK (status IN ('reserved', 'sent', 'succeeded', 'declined', 'unknown', 'released')),
  version text,
  -- The thumbprint of the key that signed the closed mandate, and the hash of what it signed. Null: refused before it was reserved.
  mandate_key text,
  mandate_hash text,
  spend_id text REFERENCES mandate_spend,
  amount_minor bigint CHECK (amount_minor >= 0),
  currency text,
  payee json,
  -- The issuer of the merchant's trusted key, which no token can choose.
  payee_issuer text,
  checkout_id text,
  checkout_hash text,
  provider_id text,
  provider_ref text,
  network_ref text,
  -- An authorization that is not captured yet.
  is_authorized boolean NOT NULL DEFAULT false,
  refunded_minor bigint NOT NULL DEFAULT 0 CHECK (refunded_minor >= 0),
  challenge json,
  outcome json,
  receipt text,
  epoch int NOT NULL DEFAULT 1,
  lease_until timestamptz,
  next_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  tries int NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Null: none was skipped.
  skipped_checks json,
  open_mandate_id text,
  -- A cart of AP2 0.1 has an id of its own beside that of its payment request: under either it is paid once. A checkout of 0.2 has one id, in
  -- both columns. Null: of an earlier version.
  cart_id text,
  CONSTRAINT payments_refunds CHECK (refunded_minor <= amount_minor),
  CONSTRAINT payments_whole CHECK (status IN ('declined', 'released') OR (mandate_key IS NOT NULL AND mandate_hash IS NOT NULL AND spend_id IS NOT NULL AND amount_minor IS NOT NULL AND payee_issuer IS NOT NULL AND checkout_id IS NOT NULL))
) WITH (fillfactor = 50);
CREATE INDEX payments_listed ON payments (tenant, created_at, payment_id);
CREATE INDEX payments_of_open_mandate ON payments (open_mandate_id) WHERE open_mandate_id IS NOT NULL;
CREATE INDEX payments_of_run ON payments (tenant, run_id);
CREATE INDEX payments_of_spend ON payments (spend_id);
-- A closed mandate pays once, in all businesses and forever.
CREATE UNIQUE INDEX payments_once ON payments (mandate_key, mandate_hash);
-- A second closed mandate comes after the first one's receipt.
CREATE UNIQUE INDEX payments_one_closed ON payments (open_mandate_id) WHERE open_mandate_id IS NOT NULL AND status IN ('reserved', 'sent', 'unknown');
-- A checkout is paid once, whichever version of the protocol it is paid in.
CREATE UNIQUE INDEX payments_one_live ON payments (payee_issuer, checkout_id) WHERE status IN ('reserved', 'sent', 'succeeded', 'unknown');
CREATE UNIQUE INDEX payments_one_live_cart ON payments (payee_issuer, cart_id) WHERE cart_id IS NOT NULL AND status IN ('reserved', 'sent', 'succeeded', 'unknown');
CREATE INDEX payments_open ON payments (next_at) WHERE status IN ('reserved', 'sent', 'unknown');
ALTER TABLE payments ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON payments TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON payments TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY executor ON payments TO mason_payments USING (true) WITH CHECK (true);
CREATE POLICY worker ON payments TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT ON payments TO mason_api, mason_business, mason_worker;
GRANT SELECT, INSERT, UPDATE ON payments TO mason_payments;
GRANT
  SELECT (amount_minor, created_at, currency, open_mandate_id, payment_id, provider_id, provider_ref, refunded_minor, status, tenant,
    updated_at)
  ON payments TO mason_admin;

-- Each request to a provider. Its id is the idempotency key.
CREATE TABLE payment_operations (
  operation_id text PRIMARY KEY,
  tenant text NOT NULL,
  payment_id text NOT NULL REFERENCES payments,
  order_id text NOT NULL UNIQUE,
  kind text NOT NULL CHECK (kind IN ('authorize', 'capture', 'void', 'refund', 'answer')),
  amount_minor bigint NOT NULL,
  currency text NOT NULL,
  -- The bytes that are sent; null when the operation is over, because a credential may be in them.
  request bytea,
  request_hash text NOT NULL,
  status text NOT NULL DEFAULT 'intent' CHECK (status IN ('intent', 'sent', 'done', 'unknown')),
  sends int NOT NULL DEFAULT 0,
  first_sent_at timestamptz,
  answer json,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Whether an authorization takes the money at once.
  capture boolean NOT NULL DEFAULT true
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX payment_operations_authorize ON payment_operations (payment_id) WHERE kind = 'authorize';
CREATE INDEX payment_operations_of_payment ON payment_operations (payment_id);
ALTER TABLE payment_operations ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON payment_operations FOR SELECT TO mason_api USING (tenant = current_setting('mason.business', true));
CREATE POLICY executor ON payment_operations TO mason_payments USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE ON payment_operations TO mason_payments;
GRANT
  SELECT (amount_minor, answer, created_at, currency, first_sent_at, kind, operation_id, payment_id, sends, status, tenant)
  ON payment_operations TO mason_api;

-- The tokens that were verified, as they were received.
CREATE TABLE mandates (
  payment_id text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('payment', 'cart', 'checkout')),
  tenant text NOT NULL,
  raw text NOT NULL,
  issuer_key text NOT NULL,
  signing_hash text NOT NULL,
  verified_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (payment_id, kind)
);
ALTER TABLE mandates ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON mandates FOR SELECT TO mason_api USING (tenant = current_setting('mason.business', true));
CREATE POLICY executor ON mandates TO mason_payments USING (true) WITH CHECK (true);
GRANT SELECT ON mandates TO mason_api;
GRANT SELECT, INSERT, UPDATE ON mandates TO mason_payments;

-- What happened to a payment, each check with its key. Never changed.
CREATE TABLE payment_events (
  event_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant text NOT NULL,
  payment_id text NOT NULL,
  kind text NOT NULL,
  detail json NOT NULL DEFAULT '{}',
  at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX payment_events_of_payment ON payment_events (payment_id, event_id);
ALTER TABLE payment_events ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON payment_events FOR SELECT TO mason_api USING (tenant = current_setting('mason.business', true));
CREATE POLICY executor ON payment_events TO mason_payments USING (true) WITH CHECK (true);
GRANT SELECT ON payment_events TO mason_api;
GRANT SELECT, INSERT ON payment_events TO mason_payments;

-- What Mason gave out as a verifier: each is good for one payment.
CREATE TABLE payment_nonces (
  nonce text PRIMARY KEY,
  tenant text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz NOT NULL,
  used_at timestamptz,
  payment_id text
);
ALTER TABLE payment_nonces ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON payment_nonces TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY executor ON payment_nonces TO mason_payments USING (true) WITH CHECK (true);
CREATE POLICY worker ON payment_nonces TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE ON payment_nonces TO mason_payments;
GRANT INSERT (expires_at, nonce, tenant) ON payment_nonces TO mason_api, mason_business, mason_worker;

-- Webhooks of providers as they came. The executor verifies them and sets the id of the event, which counts once.
CREATE TABLE payment_inbox (
  message_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  provider_id text NOT NULL,
  headers json NOT NULL,
  body bytea NOT NULL,
  received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  next_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  tries int NOT NULL DEFAULT 0,
  event_id text,
  done_at timestamptz,
  result text
);
CREATE UNIQUE INDEX payment_inbox_once ON payment_inbox (provider_id, event_id);
CREATE INDEX payment_inbox_open ON payment_inbox (next_at) WHERE done_at IS NULL;
ALTER TABLE payment_inbox ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY executor ON payment_inbox TO mason_payments USING (true) WITH CHECK (true);
CREATE POLICY webhooks ON payment_inbox FOR INSERT TO mason_admin, mason_worker WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE ON payment_inbox TO mason_payments;
GRANT INSERT (body, headers, provider_id) ON payment_inbox TO mason_admin, mason_worker;

-- The executor's key pairs on P-256: what the API seals to (ECDH-ES), and what receipts are signed with (ES256).
-- With this key the executor closes open mandates.
CREATE TABLE payment_keys (
  -- The thumbprint of the public key (RFC 7638).
  kid text PRIMARY KEY,
  purpose text NOT NULL CHECK (purpose IN ('sealing', 'signing', 'agent')),
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
ALTER TABLE payment_keys ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON payment_keys FOR SELECT TO mason_admin USING (true);
CREATE POLICY business ON payment_keys FOR SELECT TO mason_api, mason_business USING (true);
CREATE POLICY executor ON payment_keys TO mason_payments USING (true) WITH CHECK (true);
CREATE POLICY worker ON payment_keys FOR SELECT TO mason_worker USING (true);
GRANT SELECT, INSERT, UPDATE (ended_at, master_key, wrapped_key) ON payment_keys TO mason_payments;
GRANT SELECT (created_at, ended_at, kid, purpose, x, y) ON payment_keys TO mason_admin, mason_api, mason_business, mason_worker;

-- Payment providers, as admins enter them. The API encrypts their secrets to the executor's public key and cannot read them again.
-- Payments over A2A: the agent of the merchant takes the payment, so a provider of this kind has no address and no secret.
CREATE TABLE payment_providers (
  provider_id text PRIMARY KEY,
  name text NOT NULL UNIQUE,
  kind text NOT NULL CHECK (kind IN ('card', 'agent')),
  base_url text,
  allow_private boolean NOT NULL,
  -- Which businesses pay by it; null: all.
  tenants text[] CHECK (cardinality(tenants) > 0),
  -- No money moves.
  is_test boolean NOT NULL,
  window_ms int NOT NULL CHECK (window_ms > 0),
  timeout_ms int NOT NULL CHECK (timeout_ms > 0),
  -- JWEs, and the last four characters of what they hold.
  sealed_api_key text,
  api_key_end text,
  sealed_webhook_secret text,
  webhook_secret_end text,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Set once. It takes no new payments then; those that it has go on.
  ended_at timestamptz,
  -- The demo profile: a test provider whose businesses may pay what the samples of AP2 0.1 send, with placeholders for signatures.
  is_demo boolean NOT NULL DEFAULT false,
  CONSTRAINT payment_providers_check CHECK (is_test OR (NOT is_demo)),
  CONSTRAINT payment_providers_parts_check CHECK (CASE kind
    WHEN 'card' THEN (num_nulls(base_url, sealed_api_key, api_key_end, sealed_webhook_secret, webhook_secret_end) = 0)
    ELSE (num_nonnulls(base_url, sealed_api_key, api_key_end, sealed_webhook_secret, webhook_secret_end) = 0)
END)
);
CREATE INDEX payment_providers_listed ON payment_providers (created_at, provider_id);
ALTER TABLE payment_providers ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON payment_providers TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY executor ON payment_providers FOR SELECT TO mason_payments USING (true);
-- The function is the owner's, who is a member of mason_worker.
CREATE POLICY only_the_api ON payment_providers AS RESTRICTIVE TO mason_worker
  USING ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')
    OR current_user = (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'mason.payment_providers'::regclass)))
  WITH CHECK ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')));
CREATE POLICY worker ON payment_providers TO mason_worker USING (true) WITH CHECK (true);
GRANT
  SELECT (allow_private, api_key_end, base_url, created_at, ended_at, is_demo, is_test, kind, name, provider_id, tenants, timeout_ms,
    updated_at, webhook_secret_end, window_ms),
  INSERT,
  UPDATE (allow_private, api_key_end, base_url, ended_at, name, sealed_api_key, sealed_webhook_secret, tenants, timeout_ms, updated_at,
    webhook_secret_end, window_ms)
  ON payment_providers TO mason_admin, mason_worker;
GRANT SELECT ON payment_providers TO mason_payments;

-- Passkeys of users, with which they sign payments, and the one-time links to pages of Mason. Only the API writes them: a worker
-- that was taken over must not enrol a passkey of its own.
CREATE TABLE passkeys (
  -- The credential's id, base64url. No two users have one.
  credential_id text PRIMARY KEY,
  tenant text NOT NULL REFERENCES businesses,
  user_id text NOT NULL,
  -- COSE (RFC 9052).
  public_key bytea NOT NULL,
  -- The authenticator's; 0 forever where it has none.
  counter bigint NOT NULL,
  transports json NOT NULL DEFAULT '[]',
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  last_used_at timestamptz
);
CREATE INDEX passkeys_of_user ON passkeys (tenant, user_id);
ALTER TABLE passkeys ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON passkeys TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY executor ON passkeys TO mason_payments USING (true) WITH CHECK (true);
CREATE POLICY only_the_api ON passkeys AS RESTRICTIVE TO mason_worker USING ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')))
  WITH CHECK ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')));
CREATE POLICY worker ON passkeys TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, DELETE ON passkeys TO mason_admin, mason_worker;
GRANT SELECT, UPDATE (counter, last_used_at) ON passkeys TO mason_payments;

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
  CONSTRAINT consent_links_check CHECK ((purpose = 'consent') = (ref_id IS NOT NULL))
);
CREATE INDEX consent_links_ended ON consent_links (expires_at);
CREATE INDEX consent_links_of_user ON consent_links (tenant, user_id);
ALTER TABLE consent_links ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON consent_links TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY only_the_api ON consent_links AS RESTRICTIVE TO mason_worker USING ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')))
  WITH CHECK ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')));
CREATE POLICY worker ON consent_links TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE (used_at), DELETE ON consent_links TO mason_admin, mason_worker;

-- What a person is asked to sign. The API stores what came back; the executor of payments verifies it, and alone decides.
CREATE TABLE consents (
  consent_id text PRIMARY KEY,
  tenant text NOT NULL REFERENCES businesses,
  user_id text NOT NULL,
  -- No foreign key: deleting a run neither frees nor repeats what was signed for it.
  run_id text,
  -- Of the payment that the signature will be for.
  payment_id text NOT NULL UNIQUE,
  -- The bytes to sign, JSON: the page shows them, and their hash is the challenge.
  content text NOT NULL,
  nonce text NOT NULL UNIQUE,
  status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'signed', 'refused', 'expired', 'verified', 'failed')),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz NOT NULL,
  -- What the person's browser sent, as it came.
  answer json,
  answered_at timestamptz,
  -- Null until the executor has decided.
  decided_at timestamptz,
  outcome json,
  -- The mandates that the executor signed.
  issued json,
  -- When a consent is decided: later again where its decision threw, so that it does not hold up the others.
  next_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- How often the decision of a consent has thrown: the last time, it fails.
  tries int NOT NULL DEFAULT 0
);
CREATE INDEX consents_of_user ON consents (tenant, user_id, created_at);
CREATE UNIQUE INDEX consents_one_open ON consents (tenant, run_id) WHERE status = 'open';
CREATE INDEX consents_undecided ON consents (next_at) WHERE decided_at IS NULL;
ALTER TABLE consents ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON consents TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON consents TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY executor ON consents TO mason_payments USING (true) WITH CHECK (true);
-- Workers ask; what came back is written by the API.
CREATE POLICY only_the_api ON consents AS RESTRICTIVE FOR UPDATE TO mason_worker USING ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')));
CREATE POLICY worker ON consents TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, UPDATE (answer, decided_at, issued, next_at, outcome, status, tries) ON consents TO mason_payments;
GRANT
  SELECT (answered_at, consent_id, content, created_at, decided_at, expires_at, issued, nonce, outcome, payment_id, run_id, status, tenant,
    user_id),
  INSERT (consent_id, content, expires_at, nonce, payment_id, run_id, tenant, user_id),
  UPDATE (answer, answered_at, status)
  ON consents TO mason_admin, mason_worker;
GRANT
  SELECT (answered_at, consent_id, content, created_at, decided_at, expires_at, issued, nonce, outcome, payment_id, run_id, status, tenant,
    user_id),
  INSERT (consent_id, content, expires_at, nonce, payment_id, run_id, tenant, user_id)
  ON consents TO mason_api, mason_business;

-- What a user has signed for the time when they are not present: an open checkout and an open payment mandate of AP2 0.2, which name
-- the agent's key. The executor of payments alone has that key, and alone writes what was signed.
CREATE TABLE open_mandates (
  mandate_id text PRIMARY KEY,
  tenant text NOT NULL REFERENCES businesses,
  user_id text NOT NULL,
  -- The run that asked for it. No foreign key: deleting a run takes nothing back.
  run_id text NOT NULL,
  provider_id text NOT NULL,
  -- What is charged, encrypted to the executor (compact JWE). It is removed with a revocation.
  sealed text,
  status text NOT NULL DEFAULT 'proposed' CHECK (status IN ('proposed', 'active', 'refused', 'expired', 'failed')),
  -- The mandates as they were signed.
  checkout text,
  payment text,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  decided_at timestamptz,
  expires_at timestamptz NOT NULL,
  revoked_at timestamptz,
  -- The question whose answer is `sealed`, as it is encrypted for.
  question text,
  CONSTRAINT open_mandates_check CHECK ((status = 'active') = (checkout IS NOT NULL AND payment IS NOT NULL))
);
CREATE INDEX open_mandates_of_user ON open_mandates (tenant, user_id, created_at, mandate_id);
ALTER TABLE open_mandates ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON open_mandates TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON open_mandates TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY executor ON open_mandates TO mason_payments USING (true) WITH CHECK (true);
CREATE POLICY only_the_api_delete ON open_mandates AS RESTRICTIVE FOR DELETE TO mason_worker
  USING ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')));
CREATE POLICY only_the_api_update ON open_mandates AS RESTRICTIVE FOR UPDATE TO mason_worker
  USING ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')));
CREATE POLICY worker ON open_mandates TO mason_worker USING (true) WITH CHECK (true);
GRANT
  SELECT (created_at, decided_at, expires_at, mandate_id, provider_id, revoked_at, run_id, status, tenant, user_id),
  INSERT (expires_at, mandate_id, provider_id, question, run_id, sealed, tenant, user_id),
  UPDATE (revoked_at),
  DELETE
  ON open_mandates TO mason_admin, mason_worker;
GRANT SELECT, UPDATE (checkout, decided_at, payment, sealed, status) ON open_mandates TO mason_payments;
GRANT
  SELECT (created_at, decided_at, expires_at, mandate_id, provider_id, revoked_at, run_id, status, tenant, user_id),
  INSERT (expires_at, mandate_id, provider_id, question, run_id, sealed, tenant, user_id)
  ON open_mandates TO mason_api, mason_business;

-- Binds every role, the owner's too. The times of an end are the database's own, whatever the statement says.
CREATE FUNCTION end_trusted_key() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  ended trusted_keys := OLD;
BEGIN
  IF NEW.valid_to IS DISTINCT FROM OLD.valid_to AND (OLD.valid_to IS NULL OR OLD.valid_to > clock_timestamp()) THEN
    ended.valid_to := clock_timestamp();
    NEW.valid_to := ended.valid_to;
  END IF;
  IF OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL THEN
    ended.revoked_at := clock_timestamp();
    NEW.revoked_at := ended.revoked_at;
  END IF;
  IF NEW IS DISTINCT FROM ended THEN
    RAISE EXCEPTION 'rows of trusted_keys end once and never change otherwise' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;

-- The payments of a run that is canceled: what is not sent never will be, and the ids of those that go on are returned.
CREATE OR REPLACE FUNCTION release_payments(p_tenant text, p_run_id text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  UPDATE mason.payment_orders SET canceled_at = clock_timestamp()
  WHERE tenant = p_tenant AND run_id = p_run_id AND kind = 'pay' AND sent_at IS NULL AND canceled_at IS NULL;
  RETURN QUERY SELECT p.payment_id FROM mason.payments p
  WHERE p.tenant = p_tenant AND p.run_id = p_run_id AND p.status IN ('sent', 'unknown') ORDER BY p.plan_seq, p.call_index;
END $$;

-- Never where a provider is active that moves money.
CREATE FUNCTION accepts_placeholders(p_tenant text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = mason, pg_temp AS $$
  SELECT COALESCE(bool_or(is_demo AND (tenants IS NULL OR p_tenant = ANY (tenants))) AND bool_and(is_test), false)
  FROM payment_providers WHERE ended_at IS NULL
$$;
REVOKE EXECUTE ON FUNCTION accepts_placeholders FROM PUBLIC;
GRANT EXECUTE ON FUNCTION accepts_placeholders TO mason_admin, mason_api, mason_business, mason_payments, mason_worker;

-- A mandate that is revoked or deleted pays nothing more: what was not sent is canceled with it. `revoked_at` never goes back.
CREATE FUNCTION end_open_mandate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE mason.payment_orders SET canceled_at = clock_timestamp()
  WHERE open_mandate_id = OLD.mandate_id AND kind = 'pay' AND sent_at IS NULL AND canceled_at IS NULL;
  IF TG_OP = 'DELETE' THEN
    RETURN OLD;
  END IF;
  NEW.revoked_at := COALESCE(OLD.revoked_at, NEW.revoked_at);
  NEW.sealed := NULL;
  RETURN NEW;
END $$;

-- By which providers a business can pay: ids and names alone, for workers, which see no row of the table.
CREATE FUNCTION list_payment_providers(p_tenant text) RETURNS TABLE(provider_id text, name text, kind text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = mason, pg_temp AS $$
  SELECT p.provider_id, p.name, p.kind FROM payment_providers p
  WHERE p.ended_at IS NULL AND (p.tenants IS NULL OR p_tenant = ANY (p.tenants)) ORDER BY p.name LIMIT 20
$$;
REVOKE EXECUTE ON FUNCTION list_payment_providers FROM PUBLIC;
GRANT EXECUTE ON FUNCTION list_payment_providers TO mason_admin, mason_worker;

CREATE TRIGGER trusted_keys_end BEFORE UPDATE ON trusted_keys FOR EACH ROW EXECUTE FUNCTION end_trusted_key();
CREATE TRIGGER trusted_keys_stay BEFORE DELETE OR TRUNCATE ON trusted_keys FOR EACH STATEMENT EXECUTE FUNCTION refuse_update();
CREATE TRIGGER payment_events_never_change BEFORE DELETE OR UPDATE OR TRUNCATE ON payment_events FOR EACH STATEMENT EXECUTE FUNCTION refuse_update();
CREATE TRIGGER ends BEFORE DELETE OR UPDATE OF revoked_at ON open_mandates FOR EACH ROW EXECUTE FUNCTION end_open_mandate();

CREATE FUNCTION queue_consent_webhook() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM add_webhook_delivery(NEW.tenant, NEW.run_id, 'run.consent_required', NEW.payment_id);
  RETURN NULL;
END $$;
-- Only beside the feature of webhooks.
DO $$ BEGIN
  IF to_regproc('mason.add_webhook_delivery') IS NOT NULL THEN
    CREATE TRIGGER webhook_of_consent AFTER INSERT ON consents FOR EACH ROW WHEN (NEW.run_id IS NOT NULL)
      EXECUTE FUNCTION queue_consent_webhook();
  END IF;
END $$;
