-- The demo profile: a test provider whose businesses may pay what the samples of AP2 0.1 send, with placeholders for signatures.
ALTER TABLE payment_providers ADD COLUMN is_demo boolean NOT NULL DEFAULT false CHECK (is_test OR NOT is_demo);
GRANT SELECT (is_demo) ON payment_providers TO mason_admin, mason_worker;

-- Never where a provider is active that moves money.
CREATE FUNCTION accepts_placeholders(p_tenant text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = mason, pg_temp AS $$
  SELECT COALESCE(bool_or(is_demo AND (tenants IS NULL OR p_tenant = ANY (tenants))) AND bool_and(is_test), false)
  FROM payment_providers WHERE ended_at IS NULL
$$;
REVOKE ALL ON FUNCTION accepts_placeholders FROM PUBLIC;
GRANT EXECUTE ON FUNCTION accepts_placeholders TO mason_worker, mason_api, mason_business, mason_payments;

-- Null: none was skipped.
ALTER TABLE payments ADD COLUMN skipped_checks json;
