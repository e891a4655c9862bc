-- By which providers a business can pay: ids and names alone, for workers, which see no row of the table.
CREATE FUNCTION list_payment_providers(p_tenant text) RETURNS TABLE (provider_id text, name text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = mason, pg_temp AS $$
  SELECT p.provider_id, p.name FROM payment_providers p
  WHERE p.ended_at IS NULL AND (p.tenants IS NULL OR p_tenant = ANY (p.tenants)) ORDER BY p.name LIMIT 20
$$;
REVOKE ALL ON FUNCTION list_payment_providers FROM PUBLIC;
GRANT EXECUTE ON FUNCTION list_payment_providers TO mason_worker;
-- The function is the owner's, who is a member of mason_worker.
ALTER POLICY only_the_api ON payment_providers
  USING ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')
    OR current_user = (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'mason.payment_providers'::regclass)));
