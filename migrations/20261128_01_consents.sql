-- What users were asked to consent to for a run: the feature that asks them replaces it.
CREATE FUNCTION list_run_consents(p_tenant text, p_run_id text) RETURNS TABLE(payment_id text, status text, expires_at timestamptz)
LANGUAGE sql STABLE AS 'SELECT NULL::text, NULL::text, NULL::timestamptz LIMIT 0';
REVOKE EXECUTE ON FUNCTION list_run_consents FROM PUBLIC;
GRANT EXECUTE ON FUNCTION list_run_consents TO mason_admin, mason_api, mason_business, mason_worker;
