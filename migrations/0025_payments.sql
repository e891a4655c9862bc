-- The ledger of payments. Workers ask for payments by orders, the executor alone moves money and writes what became of it.
-- No foreign key to runs: deleting, forking or retrying a run neither frees nor repeats a payment.

-- The executor's role. It is granted to the login of MASON_PAYMENT_DATABASE_URL alone, by `mason migrate`; not to the user of this
-- migration, whose login may be that of workers too.
DO $$
BEGIN
  BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'mason_payments') THEN
      CREATE ROLE mason_payments NOLOGIN NOBYPASSRLS;
    END IF;
  EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
  END;
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'mason_payments' AND (rolsuper OR rolbypassrls)) THEN
    RAISE EXCEPTION 'role mason_payments can bypass row-level security' USING HINT = 'ALTER ROLE mason_payments NOSUPERUSER NOBYPASSRLS';
  END IF;
END $$;
GRANT USAGE ON SCHEMA mason TO mason_payments;

-- What a call of a run, or an admin, asks the executor for.
CREATE TABLE payment_orders (
  order_id text PRIMARY KEY,
  tenant text NOT NULL REFERENCES businesses,
  kind text NOT NULL CHECK (kind IN ('pay', 'capture', 'void', 'refund', 'settle', 'answer')),
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
  outcome json
);
CREATE UNIQUE INDEX payment_orders_of_call ON payment_orders (tenant, run_id, plan_seq, call_index, kind) WHERE run_id IS NOT NULL;
CREATE UNIQUE INDEX payment_orders_pay ON payment_orders (payment_id) WHERE kind = 'pay';
CREATE INDEX payment_orders_open ON payment_orders (next_at) WHERE done_at IS NULL;
CREATE INDEX payment_orders_of_payment ON payment_orders (payment_id);

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
  CONSTRAINT payments_whole CHECK (status IN ('declined', 'released') OR (mandate_key IS NOT NULL AND mandate_hash IS NOT NULL
    AND spend_id IS NOT NULL AND amount_minor IS NOT NULL AND payee_issuer IS NOT NULL AND checkout_id IS NOT NULL)),
  CONSTRAINT payments_refunds CHECK (refunded_minor <= amount_minor)
) WITH (fillfactor = 50);
-- A closed mandate pays once, in all businesses and for ever.
CREATE UNIQUE INDEX payments_once ON payments (mandate_key, mandate_hash);
-- A checkout is paid once, whichever version of the protocol it is paid in.
CREATE UNIQUE INDEX payments_one_live ON payments (payee_issuer, checkout_id) WHERE status IN ('reserved', 'sent', 'succeeded', 'unknown');
CREATE INDEX payments_open ON payments (next_at) WHERE status IN ('reserved', 'sent', 'unknown');
CREATE INDEX payments_of_run ON payments (tenant, run_id);
CREATE INDEX payments_listed ON payments (tenant, created_at, payment_id);
CREATE INDEX payments_of_spend ON payments (spend_id);

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
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 70);
CREATE INDEX payment_operations_of_payment ON payment_operations (payment_id);
CREATE UNIQUE INDEX payment_operations_authorize ON payment_operations (payment_id) WHERE kind = 'authorize';

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
CREATE TRIGGER payment_events_never_change BEFORE UPDATE OR DELETE OR TRUNCATE ON payment_events
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_update();

-- What Mason gave out as a verifier: each is good for one payment.
CREATE TABLE payment_nonces (
  nonce text PRIMARY KEY,
  tenant text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz NOT NULL,
  used_at timestamptz,
  payment_id text
);

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

DO $$
DECLARE
  name text;
  of_business text := $p$tenant = current_setting('mason.business', true)$p$;
BEGIN
  FOREACH name IN ARRAY ARRAY['payment_orders', 'mandate_spend', 'payments', 'payment_operations', 'mandates', 'payment_events',
    'payment_nonces', 'payment_inbox'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY executor ON %I TO mason_payments USING (true) WITH CHECK (true)', name);
    EXECUTE format('GRANT SELECT, INSERT ON %I TO mason_payments', name);
    IF name <> 'payment_events' THEN
      EXECUTE format('GRANT UPDATE ON %I TO mason_payments', name);
    END IF;
  END LOOP;
  FOREACH name IN ARRAY ARRAY['payment_orders', 'payments', 'payment_nonces'] LOOP
    EXECUTE format('CREATE POLICY worker ON %I TO mason_worker USING (true) WITH CHECK (true)', name);
    EXECUTE format('CREATE POLICY business ON %I TO mason_api, mason_business USING (%s) WITH CHECK (%s)', name, of_business, of_business);
  END LOOP;
  -- the trail, which is a business's own
  FOREACH name IN ARRAY ARRAY['mandates', 'payment_events', 'payment_operations'] LOOP
    EXECUTE format('CREATE POLICY business ON %I FOR SELECT TO mason_api USING (%s)', name, of_business);
  END LOOP;
  FOREACH name IN ARRAY ARRAY['payment_orders', 'payments'] LOOP
    EXECUTE format('CREATE POLICY admin ON %I TO mason_admin USING (true) WITH CHECK (true)', name);
  END LOOP;
END $$;

-- What a worker asks for is a payment or the answer of a person; the rest is for admins. A login that is both processes may both.
CREATE POLICY only_admins ON payment_orders AS RESTRICTIVE FOR INSERT TO mason_worker, mason_api, mason_business
  WITH CHECK (kind IN ('pay', 'answer') OR (SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')));
CREATE POLICY webhooks ON payment_inbox FOR INSERT TO mason_admin, mason_worker WITH CHECK (true);

GRANT INSERT (order_id, tenant, kind, payment_id, run_id, plan_seq, call_index, request), UPDATE (canceled_at),
  SELECT (order_id, tenant, kind, payment_id, run_id, plan_seq, call_index, created_at, canceled_at, sent_at, done_at, outcome)
  ON payment_orders TO mason_worker, mason_api, mason_business, mason_admin;
GRANT SELECT ON payments TO mason_worker, mason_api, mason_business;
GRANT SELECT (payment_id, tenant, status, amount_minor, currency, provider_id, provider_ref, refunded_minor, created_at, updated_at)
  ON payments TO mason_admin;
GRANT SELECT ON mandates, payment_events TO mason_api;
GRANT SELECT (operation_id, tenant, payment_id, kind, amount_minor, currency, status, sends, first_sent_at, answer, created_at)
  ON payment_operations TO mason_api;
GRANT INSERT (nonce, tenant, expires_at) ON payment_nonces TO mason_worker, mason_api, mason_business;
GRANT INSERT (provider_id, headers, body) ON payment_inbox TO mason_admin, mason_worker;

-- The executor verifies by the trusted keys.
GRANT SELECT ON trusted_keys TO mason_payments;
CREATE POLICY executor ON trusted_keys FOR SELECT TO mason_payments USING (true);

-- The payments of a run that is canceled: what is not sent never will be, and the ids of those that go on are returned.
CREATE OR REPLACE FUNCTION release_payments(p_tenant text, p_run_id text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  UPDATE mason.payment_orders SET canceled_at = clock_timestamp()
  WHERE tenant = p_tenant AND run_id = p_run_id AND kind = 'pay' AND sent_at IS NULL AND canceled_at IS NULL;
  RETURN QUERY SELECT p.payment_id FROM mason.payments p
  WHERE p.tenant = p_tenant AND p.run_id = p_run_id AND p.status IN ('sent', 'unknown') ORDER BY p.plan_seq, p.call_index;
END $$;
REVOKE ALL ON FUNCTION release_payments FROM PUBLIC;
GRANT EXECUTE ON FUNCTION release_payments TO mason_api, mason_worker, mason_business;

DO $$
BEGIN
  IF to_regprocedure('mason.end_wait(text, text, text, json)') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION end_wait(text, text, text, json) TO mason_payments;
  END IF;
END $$;
