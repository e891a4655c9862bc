-- PostgreSQL plans a function in SQL anew at each call, which is each end of a run; one in plpgsql once a connection.
CREATE OR REPLACE FUNCTION add_agent_pushes(p_tenant text, p_run_id text, p_type text, p_request_id text, p_push_id text) RETURNS void
LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO webhook_deliveries (tenant, type, run_id, request_id, push_id, url, host)
  SELECT p.tenant, p_type, p.run_id, p_request_id, p.push_id, p.url, substring(p.url FROM '^[^/?#]+//[^/?#]+')
  FROM agent_pushes p WHERE p.tenant = p_tenant AND p.run_id = p_run_id AND (p_push_id IS NULL OR p.push_id = p_push_id)
    AND NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.push_id = p.push_id AND d.type = p_type AND d.request_id IS NOT DISTINCT FROM p_request_id);
END $$;
