-- What users were asked to consent to for a run. Plain, so that Postgres plans it as a part of the statement that calls it.
CREATE OR REPLACE FUNCTION list_run_consents(p_tenant text, p_run_id text) RETURNS TABLE(payment_id text, status text, expires_at timestamptz)
LANGUAGE sql STABLE AS $$
  SELECT c.payment_id, c.status, c.expires_at FROM mason.consents c WHERE c.tenant = p_tenant AND c.run_id = p_run_id
$$;
