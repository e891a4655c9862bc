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
  CHECK ((status = 'active') = (checkout IS NOT NULL AND payment IS NOT NULL))
);
CREATE INDEX open_mandates_of_user ON open_mandates (tenant, user_id, created_at, mandate_id);

ALTER TABLE payment_orders ADD COLUMN open_mandate_id text;
CREATE INDEX payment_orders_of_open_mandate ON payment_orders (open_mandate_id) WHERE open_mandate_id IS NOT NULL;
GRANT INSERT (open_mandate_id), SELECT (open_mandate_id) ON payment_orders TO mason_worker, mason_api, mason_business, mason_admin;
ALTER TABLE payments ADD COLUMN open_mandate_id text;
GRANT SELECT (open_mandate_id) ON payments TO mason_admin;
CREATE INDEX payments_of_open_mandate ON payments (open_mandate_id) WHERE open_mandate_id IS NOT NULL;
-- A second closed mandate comes after the first one's receipt.
CREATE UNIQUE INDEX payments_one_closed ON payments (open_mandate_id)
  WHERE open_mandate_id IS NOT NULL AND status IN ('reserved', 'sent', 'unknown');

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
CREATE TRIGGER ends BEFORE DELETE OR UPDATE OF revoked_at ON open_mandates FOR EACH ROW EXECUTE FUNCTION end_open_mandate();

ALTER TABLE open_mandates ENABLE ROW LEVEL SECURITY;
ALTER TABLE open_mandates FORCE ROW LEVEL SECURITY;
CREATE POLICY worker ON open_mandates TO mason_worker USING (true) WITH CHECK (true);
CREATE POLICY admin ON open_mandates TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY executor ON open_mandates TO mason_payments USING (true) WITH CHECK (true);
CREATE POLICY business ON open_mandates TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
-- Workers propose; the API revokes and deletes. A login that is both processes, as with DATABASE_URL alone, has the rights of both.
DO $$ DECLARE command text; BEGIN
  FOREACH command IN ARRAY ARRAY['UPDATE', 'DELETE'] LOOP
    EXECUTE format('CREATE POLICY only_the_api_%s ON open_mandates AS RESTRICTIVE FOR %s TO mason_worker USING ((SELECT pg_has_role(session_user, ''mason_admin'', ''MEMBER'')))',
      lower(command), command);
  END LOOP;
END $$;
GRANT SELECT (mandate_id, tenant, user_id, run_id, provider_id, status, created_at, decided_at, expires_at, revoked_at),
  INSERT (mandate_id, tenant, user_id, run_id, provider_id, sealed, expires_at)
  ON open_mandates TO mason_worker, mason_business, mason_api, mason_admin;
GRANT UPDATE (revoked_at), DELETE ON open_mandates TO mason_admin, mason_worker;
GRANT SELECT, UPDATE (status, checkout, payment, decided_at, sealed) ON open_mandates TO mason_payments;

-- With this key the executor closes open mandates.
ALTER TABLE payment_keys DROP CONSTRAINT payment_keys_purpose_check;
ALTER TABLE payment_keys ADD CONSTRAINT payment_keys_purpose_check CHECK (purpose IN ('sealing', 'signing', 'agent'));
