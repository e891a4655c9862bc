-- Budgets limit what a business, a user or a token spends in a day and a month of UTC, and how often it starts something.
CREATE TABLE budgets (
  budget_id text PRIMARY KEY,
  tenant text NOT NULL REFERENCES businesses,
  user_id text,
  token_id text CHECK (token_id IS NULL OR user_id IS NULL),
  -- Whose spending it limits.
  subject text NOT NULL GENERATED ALWAYS AS (COALESCE('user:' || user_id, 'token:' || token_id, 'business')) STORED,
  currency text NOT NULL,
  -- In millionths; null: no limit.
  daily_cost bigint,
  monthly_cost bigint,
  requests_per_minute int,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (tenant, subject, currency)
);

-- Runs and calls under a budget in its latest minute, of all processes.
CREATE TABLE budget_requests (
  budget_id text PRIMARY KEY REFERENCES budgets ON DELETE CASCADE,
  tenant text NOT NULL,
  minute timestamptz NOT NULL,
  requests bigint NOT NULL
) WITH (fillfactor = 50);

-- What the ledger has for a business, for each of its users and for each of its tokens, by day.
CREATE TABLE spending (
  tenant text NOT NULL,
  subject text NOT NULL,
  currency text NOT NULL,
  day date NOT NULL,
  cost_micro bigint NOT NULL,
  PRIMARY KEY (tenant, subject, currency, day)
) WITH (fillfactor = 50);

-- The token that submitted a run, and that a call is charged to. The tool that made a call.
ALTER TABLE run_requests ADD COLUMN token_id text;
ALTER TABLE usage_ledger ADD COLUMN token_id text, ADD COLUMN tool text;
-- Why it was rejected may pass: the job is admitted when it comes again.
ALTER TABLE rejected_jobs ADD COLUMN may_pass boolean NOT NULL DEFAULT false;

DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['budgets', 'budget_requests', 'spending'] LOOP
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO mason_worker, mason_admin', name);
    EXECUTE format('GRANT SELECT ON %I TO mason_api, mason_business', name);
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY worker ON %I TO mason_worker USING (true) WITH CHECK (true)', name);
    EXECUTE format('CREATE POLICY admin ON %I TO mason_admin USING (true) WITH CHECK (true)', name);
    EXECUTE format($p$CREATE POLICY business ON %I TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
      WITH CHECK (tenant = current_setting('mason.business', true))$p$, name);
  END LOOP;
END $$;
GRANT INSERT, UPDATE ON budget_requests TO mason_api, mason_business;
-- The ledger is written across businesses, also by API processes; of a request they see which token sent it, never its content.
GRANT SELECT (tenant, run_id, token_id) ON run_requests TO mason_admin;
CREATE POLICY admin ON run_requests FOR SELECT TO mason_admin USING (true);

-- Entries without a cost count nothing. Rows are locked in one order.
CREATE FUNCTION add_spending() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO spending AS s (tenant, subject, currency, day, cost_micro)
  SELECT e.tenant, who, e.currency, (e.at AT TIME ZONE 'UTC')::date, sum(e.cost_micro)
  FROM entered e, unnest(ARRAY['business', 'user:' || e.user_id, 'token:' || e.token_id]) AS who
  WHERE who IS NOT NULL AND e.cost_micro <> 0 GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
  ON CONFLICT (tenant, subject, currency, day) DO UPDATE SET cost_micro = s.cost_micro + excluded.cost_micro;
  RETURN NULL;
END $$;
CREATE TRIGGER entries_are_spent AFTER INSERT ON usage_ledger REFERENCING NEW TABLE AS entered
  FOR EACH STATEMENT EXECUTE FUNCTION add_spending();

-- This month so far, as the worker, who sees every entry.
SET LOCAL ROLE mason_worker;
INSERT INTO spending (tenant, subject, currency, day, cost_micro)
SELECT tenant, who, currency, (at AT TIME ZONE 'UTC')::date, sum(cost_micro)
FROM usage_ledger, unnest(ARRAY['business', 'user:' || user_id]) AS who
WHERE who IS NOT NULL AND cost_micro <> 0 AND at >= date_trunc('month', now(), 'UTC') GROUP BY 1, 2, 3, 4;
RESET ROLE;

-- As in 0003, with the token and the tool of an entry.
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
      model_name text, upstream_name text, currency text, token_id text, tool text)
    -- in one order everywhere: two who enter the same requests wait for each other, never in a circle
    ORDER BY g.request_id
  ), entered AS (
    INSERT INTO usage_ledger (request_id, tenant, user_id, run_id, role, vendor_id, key_id, endpoint_id, model_id, model_name,
      upstream_name, status, error_code, prompt_tokens, completion_tokens, total_tokens, cached_tokens, reasoning_tokens, estimated,
      cost_micro, currency, ms, token_id, tool)
    SELECT request_id, tenant, user_id, run_id, role, vendor_id, key_id, endpoint_id, model_id, model_name,
      upstream_name, status, error_code, prompt_tokens, completion_tokens, total_tokens, cached_tokens, reasoning_tokens, estimated,
      cost_micro, currency, ms,
      COALESCE(token_id, (SELECT q.token_id FROM run_requests q WHERE q.tenant = given.tenant AND q.run_id = given.run_id)), tool
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
