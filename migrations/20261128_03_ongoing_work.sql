-- What a run lets go of as it ends, and what of it goes on, by its kind: the feature that starts such work replaces it.
CREATE FUNCTION release_ongoing_work(p_tenant text, p_run_id text) RETURNS TABLE(kind text, id text)
LANGUAGE sql AS 'SELECT NULL::text, NULL::text LIMIT 0';
REVOKE EXECUTE ON FUNCTION release_ongoing_work FROM PUBLIC;
GRANT EXECUTE ON FUNCTION release_ongoing_work TO mason_api, mason_business, mason_worker;
