-- Payments over A2A: the agent of the merchant takes the payment, so a provider of this kind has no address and no secret.
ALTER TABLE payment_providers DROP CONSTRAINT payment_providers_kind_check,
  ALTER COLUMN base_url DROP NOT NULL,
  ALTER COLUMN sealed_api_key DROP NOT NULL,
  ALTER COLUMN api_key_end DROP NOT NULL,
  ALTER COLUMN sealed_webhook_secret DROP NOT NULL,
  ALTER COLUMN webhook_secret_end DROP NOT NULL,
  ADD CONSTRAINT payment_providers_kind_check CHECK (kind IN ('card', 'agent')),
  ADD CONSTRAINT payment_providers_parts_check CHECK (CASE kind
    WHEN 'card' THEN num_nulls(base_url, sealed_api_key, api_key_end, sealed_webhook_secret, webhook_secret_end) = 0
    ELSE num_nonnulls(base_url, sealed_api_key, api_key_end, sealed_webhook_secret, webhook_secret_end) = 0 END);

DROP FUNCTION list_payment_providers;
CREATE FUNCTION list_payment_providers(p_tenant text) RETURNS TABLE (provider_id text, name text, kind text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = mason, pg_temp AS $$
  SELECT p.provider_id, p.name, p.kind FROM payment_providers p
  WHERE p.ended_at IS NULL AND (p.tenants IS NULL OR p_tenant = ANY (p.tenants)) ORDER BY p.name LIMIT 20
$$;
REVOKE ALL ON FUNCTION list_payment_providers FROM PUBLIC;
GRANT EXECUTE ON FUNCTION list_payment_providers TO mason_worker;

-- `issuer`: whose trusted key signs the carts of the agent; null: the origin of its card. `sealed_headers`: its headers with their
-- secrets, as a JWE that only the executor can open.
ALTER TABLE remote_agents ADD COLUMN issuer text, ADD COLUMN sealed_headers text;
GRANT SELECT ON remote_agents TO mason_payments;
CREATE POLICY executor ON remote_agents FOR SELECT TO mason_payments USING (true);

-- `present` shows the signed mandates to the credentials provider: no money moves, so it may be repeated.
ALTER TABLE payment_orders DROP CONSTRAINT payment_orders_kind_check,
  ADD CONSTRAINT payment_orders_kind_check CHECK (kind IN ('pay', 'present', 'capture', 'void', 'refund', 'settle', 'answer'));
ALTER POLICY only_admins ON payment_orders
  WITH CHECK (kind IN ('pay', 'present', 'answer') OR (SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')));

-- When a consent is decided: later again where its decision threw, so that it does not hold up the others.
ALTER TABLE consents ADD COLUMN next_at timestamptz NOT NULL DEFAULT clock_timestamp();
GRANT UPDATE (next_at) ON consents TO mason_payments;
DROP INDEX consents_undecided;
CREATE INDEX consents_undecided ON consents (next_at) WHERE decided_at IS NULL;
