-- Each visit of a node or tool has an id before it calls a model: its action and the entries of the ledger name it. All of
-- these are null in rows of earlier versions, and where no worker has appended the action.
ALTER TABLE actions ADD COLUMN visit_id text, ADD COLUMN ms int, ADD COLUMN worker text;
ALTER TABLE usage_ledger ADD COLUMN visit_id text;

-- A business sees by which vendor it was served, by its name.
GRANT SELECT (vendor_id, name) ON vendors TO mason_api, mason_business;
CREATE POLICY names ON vendors FOR SELECT TO mason_api, mason_business USING (true);

-- As in 0023, with the visit of an entry.
CREATE OR REPLACE FUNCTION settle_usage(settled json) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  entered_count int;
BEGIN
  PERFORM FROM vendor_keys k
  WHERE k.key_id IN (SELECT e->>'key_id' FROM json_array_elements(settled) e) ORDER BY k.key_id FOR NO KEY UPDATE;
  WITH given AS MATERIALIZED (
    SELECT g.*, who.* FROM json_to_recordset(settled) AS g (request_id text, key_id text, entry json, status text, error_code text,
      prompt_tokens bigint, completion_tokens bigint, total_tokens bigint, cached_tokens bigint, reasoning_tokens bigint,
      estimated boolean, cost_micro bigint, ms int),
    json_to_record(g.entry) AS who (tenant text, user_id text, run_id text, role text, vendor_id text, endpoint_id text, model_id text,
      model_name text, upstream_name text, currency text, token_id text, tool text, visit_id text)
    -- in one order everywhere: two who enter the same requests wait for each other, never in a circle
    ORDER BY g.request_id
  ), entered AS (
    INSERT INTO usage_ledger (request_id, tenant, user_id, run_id, role, vendor_id, key_id, endpoint_id, model_id, model_name,
      upstream_name, status, error_code, prompt_tokens, completion_tokens, total_tokens, cached_tokens, reasoning_tokens, estimated,
      cost_micro, currency, ms, token_id, tool, visit_id)
    SELECT request_id, tenant, user_id, run_id, role, vendor_id, key_id, endpoint_id, model_id, model_name,
      upstream_name, status, error_code, prompt_tokens, completion_tokens, total_tokens, cached_tokens, reasoning_tokens, estimated,
      cost_micro, currency, ms,
      COALESCE(token_id, (SELECT q.token_id FROM run_requests q WHERE q.tenant = given.tenant AND q.run_id = given.run_id)), tool, visit_id
    FROM given WHERE status IS NOT NULL
    ON CONFLICT (request_id) DO NOTHING
    RETURNING request_id, key_id, at, total_tokens, cost_micro
  ), freed AS (
    DELETE FROM usage_reservations r USING given WHERE r.request_id = given.request_id
    RETURNING r.request_id, r.key_id, r.reserved_at, r.tokens, r.cost_micro
  ), moved AS (
    SELECT coalesce(f.key_id, e.key_id) AS key_id, coalesce(f.reserved_at, e.at) AS at,
      (e.request_id IS NOT NULL)::int - (f.request_id IS NOT NULL)::int AS requests,
      coalesce(e.total_tokens, 0) - coalesce(f.tokens, 0) AS tokens,
      coalesce(e.cost_micro, 0) - coalesce(f.cost_micro, 0) AS cost_micro
    FROM entered e FULL JOIN freed f ON f.request_id = e.request_id
  ), spent AS (
    INSERT INTO key_spending AS s (key_id, span, begins_at, requests, tokens, cost_micro)
    SELECT k.key_id, span, date_trunc(span, m.at, 'UTC'), sum(m.requests), sum(m.tokens), sum(m.cost_micro)
    FROM moved m JOIN vendor_keys k ON k.key_id = m.key_id, unnest(ARRAY['second', 'day', 'month']) span
    -- seconds that have passed out of every minute no longer count, and may be gone
    WHERE span <> 'second' OR m.at > clock_timestamp() - interval '65 seconds'
    GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (key_id, span, begins_at) DO UPDATE SET requests = s.requests + excluded.requests,
      tokens = s.tokens + excluded.tokens, cost_micro = s.cost_micro + excluded.cost_micro
  )
  SELECT count(*) INTO entered_count FROM entered;
  RETURN entered_count;
END $$;
