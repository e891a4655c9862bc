-- A run that ends releases the payments that are not sent; those that are go on.
CREATE OR REPLACE FUNCTION release_ongoing_work(p_tenant text, p_run_id text) RETURNS TABLE(kind text, id text)
LANGUAGE sql AS $$ SELECT 'payments', p.id FROM mason.release_payments(p_tenant, p_run_id) AS p(id) $$;
