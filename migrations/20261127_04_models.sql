CREATE TABLE vendors (
  vendor_id text PRIMARY KEY,
  name text NOT NULL UNIQUE,
  homepage text,
  status text NOT NULL CHECK (status IN ('active', 'disabled')),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
ALTER TABLE vendors ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON vendors TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY names ON vendors FOR SELECT TO mason_api, mason_business USING (true);
CREATE POLICY worker ON vendors TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON vendors TO mason_admin, mason_worker;
GRANT SELECT (name, vendor_id) ON vendors TO mason_api, mason_business;

-- The secret is sealed: AES-256-GCM under a data key of the row, which the master key of this name wraps.
-- Both are bound to the row by associated data, so that a row copied over another cannot be opened.
CREATE TABLE vendor_keys (
  key_id text PRIMARY KEY,
  vendor_id text NOT NULL REFERENCES vendors,
  label text NOT NULL,
  master_key text NOT NULL,
  wrapped_key bytea NOT NULL,
  sealed_secret bytea NOT NULL,
  last_four text NOT NULL,
  limits json NOT NULL DEFAULT '{}',
  status text NOT NULL CHECK (status IN ('active', 'disabled')),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (vendor_id, label)
);
ALTER TABLE vendor_keys ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON vendor_keys TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON vendor_keys TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON vendor_keys TO mason_admin, mason_worker;

CREATE TABLE endpoints (
  endpoint_id text PRIMARY KEY,
  vendor_id text NOT NULL REFERENCES vendors,
  name text NOT NULL,
  base_url text NOT NULL,
  protocol text NOT NULL CHECK (protocol IN ('openai', 'http')),
  categories text[] NOT NULL DEFAULT '{}',
  -- May hold secrets of their own: sealed as those of keys are.
  master_key text,
  wrapped_key bytea,
  sealed_headers bytea,
  timeouts json NOT NULL DEFAULT '{}',
  allow_private boolean NOT NULL DEFAULT false,
  status text NOT NULL CHECK (status IN ('active', 'disabled')),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (vendor_id, name)
);
ALTER TABLE endpoints ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON endpoints TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON endpoints TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON endpoints TO mason_admin, mason_worker;

CREATE TABLE categories (
  category_id text PRIMARY KEY,
  name text NOT NULL UNIQUE,
  description text NOT NULL DEFAULT '',
  built_in boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
ALTER TABLE categories ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON categories TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON categories TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON categories TO mason_admin, mason_worker;

-- `definition` is {request, paths, stream, poll, schema}. Built-in ones are refreshed at start.
CREATE TABLE response_formats (
  format_id text PRIMARY KEY,
  name text NOT NULL UNIQUE,
  category text NOT NULL REFERENCES categories(name),
  definition json NOT NULL,
  built_in boolean NOT NULL DEFAULT false,
  status text NOT NULL CHECK (status IN ('active', 'inactive')),
  faults json NOT NULL DEFAULT '[]',
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
ALTER TABLE response_formats ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON response_formats TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON response_formats TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON response_formats TO mason_admin, mason_worker;

CREATE TABLE models (
  model_id text PRIMARY KEY,
  vendor_id text NOT NULL REFERENCES vendors,
  endpoint_id text NOT NULL REFERENCES endpoints,
  name text NOT NULL UNIQUE,
  upstream_name text NOT NULL,
  version text,
  category text NOT NULL REFERENCES categories(name),
  dialect text NOT NULL CHECK (dialect IN ('tools', 'xml')),
  context_window int,
  max_output int,
  -- {input, output, cached_input, currency} for a million tokens
  prices json,
  response_format_id text REFERENCES response_formats,
  capabilities text[] NOT NULL DEFAULT '{}',
  status text NOT NULL CHECK (status IN ('active', 'disabled')),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Whether the vendor refuses the field `stop`: the requests to this model go without it, and its replies are cut as they are read.
  refuses_stop boolean NOT NULL DEFAULT false,
  -- How the model goes on with a reply that was cut at its output limit: asked to in words, after the reply as a prefill, or with a flag on it.
  continuation text NOT NULL DEFAULT 'none' CHECK (continuation IN ('none', 'prefill', 'flag'))
);
ALTER TABLE models ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON models TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON models TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON models TO mason_admin, mason_worker;

CREATE TABLE routes (
  route_id text PRIMARY KEY,
  role text UNIQUE,
  category text UNIQUE REFERENCES categories(name),
  -- [{model, weight}] in order, by alias
  models json NOT NULL,
  strategy text NOT NULL CHECK (strategy IN ('priority', 'weighted', 'least-busy', 'cheapest')),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT routes_check CHECK ((role IS NULL) <> (category IS NULL))
);
ALTER TABLE routes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON routes TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON routes TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON routes TO mason_admin, mason_worker;

-- A key without grants is in the shared pool.
CREATE TABLE grants (
  grant_id text PRIMARY KEY,
  key_id text NOT NULL REFERENCES vendor_keys,
  business_id text REFERENCES businesses,
  user_id text,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT grants_check CHECK (business_id IS NOT NULL OR user_id IS NOT NULL)
);
CREATE INDEX grants_by_key ON grants (key_id);
ALTER TABLE grants ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON grants TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON grants TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON grants TO mason_admin, mason_worker;

-- What all processes know of keys and endpoints that failed; no row: healthy.
-- Models on endpoints and keys with models have a health of their own; what one business met alone closes nothing for others.
CREATE TABLE model_health (
  subject text NOT NULL CHECK (subject IN ('endpoint', 'model', 'key', 'key_model')),
  subject_id text NOT NULL,
  state text NOT NULL CHECK (state IN ('healthy', 'cooling', 'probing', 'disabled')),
  failures int NOT NULL DEFAULT 0,
  since timestamptz NOT NULL DEFAULT clock_timestamp(),
  until timestamptz,
  last_error json,
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- the latest failures: whose, and with which model; a row of an earlier version is for all
  seen json NOT NULL DEFAULT '[]',
  for_all boolean NOT NULL DEFAULT true,
  PRIMARY KEY (subject, subject_id)
) WITH (fillfactor = 50);
ALTER TABLE model_health ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON model_health TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON model_health TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON model_health TO mason_admin, mason_worker;

-- One row; raised by every change of what stands above, so that a look at one number tells whether anything is new.
CREATE TABLE registry_version (
  version bigint NOT NULL,
  single boolean DEFAULT true CHECK (single) PRIMARY KEY
) WITH (fillfactor = 50);
ALTER TABLE registry_version ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON registry_version TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON registry_version TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON registry_version TO mason_admin, mason_worker;
INSERT INTO registry_version (version) VALUES (1);

-- Provider requests under way: written before the request, taken away when it is settled. One that outlives its
-- `expires_at` belonged to a process that died; it is settled as `lost`, at what was reserved.
CREATE TABLE usage_reservations (
  request_id text PRIMARY KEY,
  entry json NOT NULL,
  tokens bigint NOT NULL,
  cost_micro bigint NOT NULL,
  key_id text,
  reserved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX usage_reservations_by_expiry ON usage_reservations (expires_at);
ALTER TABLE usage_reservations ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON usage_reservations TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON usage_reservations TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON usage_reservations TO mason_admin, mason_worker;

-- What has been spent of a key's limits: `second` rows hold one second each and live for two minutes.
CREATE TABLE key_spending (
  key_id text NOT NULL REFERENCES vendor_keys ON DELETE CASCADE,
  span text NOT NULL CHECK (span IN ('second', 'day', 'month')),
  begins_at timestamptz NOT NULL,
  requests bigint NOT NULL DEFAULT 0,
  tokens bigint NOT NULL DEFAULT 0,
  cost_micro bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (key_id, span, begins_at)
) WITH (fillfactor = 50);
ALTER TABLE key_spending ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON key_spending TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON key_spending TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON key_spending TO mason_admin, mason_worker;

-- The ledger: one row a provider request, aborted and failed ones too. Append-only. No foreign keys: it outlives what it
-- names. Money in millionths of the currency.
CREATE TABLE usage_ledger (
  usage_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  request_id text NOT NULL UNIQUE,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  tenant text NOT NULL,
  user_id text,
  run_id text,
  role text NOT NULL,
  vendor_id text NOT NULL,
  key_id text,
  endpoint_id text NOT NULL,
  model_id text NOT NULL,
  model_name text NOT NULL,
  -- What the vendor calls it, for comparing with its bill.
  upstream_name text NOT NULL,
  status text NOT NULL CHECK (status IN ('succeeded', 'failed', 'aborted', 'lost')),
  error_code text,
  prompt_tokens bigint NOT NULL,
  completion_tokens bigint NOT NULL,
  total_tokens bigint NOT NULL,
  cached_tokens bigint NOT NULL DEFAULT 0,
  reasoning_tokens bigint NOT NULL DEFAULT 0,
  -- Counted by us where the vendor said nothing.
  estimated boolean NOT NULL DEFAULT false,
  cost_micro bigint NOT NULL,
  -- XXX: the model had no prices.
  currency text NOT NULL,
  ms int NOT NULL,
  token_id text,
  tool text,
  visit_id text
);
CREATE INDEX usage_ledger_by_run ON usage_ledger (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX usage_ledger_by_time ON usage_ledger (at);
ALTER TABLE usage_ledger ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON usage_ledger TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON usage_ledger TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON usage_ledger TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT ON usage_ledger TO mason_admin, mason_worker;
GRANT SELECT ON usage_ledger TO mason_api, mason_business;

-- Answers that a format could not read, redacted, for the admin; the last hundred of a model are kept.
CREATE TABLE unread_answers (
  answer_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  model_id text NOT NULL,
  format_id text,
  place text NOT NULL,
  raw text NOT NULL
);
CREATE INDEX unread_answers_by_model ON unread_answers (model_id, answer_id);
ALTER TABLE unread_answers ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON unread_answers TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON unread_answers TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON unread_answers TO mason_admin, mason_worker;

-- Scenarios: what kinds of request there are, and how the graph works on each. Part of the registry: managed by admins for
-- all businesses, seen by every process within two seconds. NULL tools: all that the request allows.
CREATE TABLE scenarios (
  scenario_id text PRIMARY KEY,
  name text NOT NULL UNIQUE,
  description text NOT NULL DEFAULT '',
  -- By role: what is added to the instructions of its prompts.
  prompts json NOT NULL DEFAULT '{}',
  tools text[],
  output_tool text,
  limits json NOT NULL DEFAULT '{}',
  -- By role: the alias of the model that serves it.
  models json NOT NULL DEFAULT '{}',
  -- Roles that make no model call: rules decide.
  rules text[] NOT NULL DEFAULT '{}',
  status text NOT NULL CHECK (status IN ('active', 'disabled')),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Requests that a scenario fits: what rules and the embedding model choose it by.
  examples text[] NOT NULL DEFAULT '{}'
);
ALTER TABLE scenarios ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON scenarios TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON scenarios TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON scenarios TO mason_admin, mason_worker;

-- Budgets limit what a business, a user or a token spends in a day and a month of UTC, and how often it starts something.
CREATE TABLE budgets (
  budget_id text PRIMARY KEY,
  tenant text NOT NULL REFERENCES businesses,
  user_id text,
  token_id text,
  -- Whose spending it limits.
  subject text NOT NULL GENERATED ALWAYS AS (COALESCE('user:' || user_id, 'token:' || token_id, 'business')) STORED,
  currency text NOT NULL,
  -- In millionths; null: no limit.
  daily_cost bigint,
  monthly_cost bigint,
  requests_per_minute int,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (tenant, subject, currency),
  CONSTRAINT budgets_check CHECK (token_id IS NULL OR user_id IS NULL)
);
ALTER TABLE budgets ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON budgets TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON budgets TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON budgets TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON budgets TO mason_admin, mason_worker;
GRANT SELECT ON budgets TO mason_api, mason_business;

-- Runs and calls under a budget in its latest minute, of all processes.
CREATE TABLE budget_requests (
  budget_id text PRIMARY KEY REFERENCES budgets ON DELETE CASCADE,
  tenant text NOT NULL,
  minute timestamptz NOT NULL,
  requests bigint NOT NULL
) WITH (fillfactor = 50);
ALTER TABLE budget_requests ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON budget_requests TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON budget_requests TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON budget_requests TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON budget_requests TO mason_admin, mason_worker;
GRANT SELECT, INSERT, UPDATE ON budget_requests TO mason_api, mason_business;

-- What the ledger has for a business, for each of its users and for each of its tokens, by day.
CREATE TABLE spending (
  tenant text NOT NULL,
  subject text NOT NULL,
  currency text NOT NULL,
  day date NOT NULL,
  cost_micro bigint NOT NULL,
  PRIMARY KEY (tenant, subject, currency, day)
) WITH (fillfactor = 50);
ALTER TABLE spending ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON spending TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON spending TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON spending TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON spending TO mason_admin, mason_worker;
GRANT SELECT ON spending TO mason_api, mason_business;

CREATE FUNCTION raise_registry_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE registry_version SET version = version + 1;
  RETURN NULL;
END $$;

-- Reserves room under the limits of keys, and gives the requests that were refused, by which limit and for how long. All
-- who change what a key has spent hold its row, keys in order of id, so no two see the same room. Any true minute lies
-- within 61 seconds of the clock. `forced`: the request is on its way already, so it counts and is never refused.
CREATE FUNCTION reserve_usage(wanted json) RETURNS TABLE(id text, refused_by text, retry_after_ms bigint)
LANGUAGE plpgsql AS $$
DECLARE
  held record;
  spent record;
  ask record;
  moment timestamptz;
  since timestamptz;
  until timestamptz;
  granted bigint;
  granted_tokens bigint;
  granted_cost bigint;
BEGIN
  FOR held IN
    SELECT k.key_id, (k.limits->>'rpm')::bigint AS rpm, (k.limits->>'tpm')::bigint AS tpm,
      (k.limits->>'daily_tokens')::bigint AS daily_tokens, round((k.limits->>'monthly_cost')::numeric * 1000000) AS monthly_cost
    FROM vendor_keys k
    WHERE k.key_id IN (SELECT e->>'key_id' FROM json_array_elements(wanted) e) ORDER BY k.key_id FOR NO KEY UPDATE
  LOOP
    moment := clock_timestamp();
    since := date_trunc('second', moment) - interval '60 seconds';
    SELECT coalesce(sum(s.requests) FILTER (WHERE s.span = 'second'), 0) AS requests,
      coalesce(sum(s.tokens) FILTER (WHERE s.span = 'second'), 0) AS tokens,
      coalesce(sum(s.tokens) FILTER (WHERE s.span = 'day'), 0) AS daily_tokens,
      coalesce(sum(s.cost_micro) FILTER (WHERE s.span = 'month'), 0) AS monthly_cost
    INTO spent FROM key_spending s
    WHERE s.key_id = held.key_id AND ((s.span = 'second' AND s.begins_at >= since)
      OR (s.span = 'day' AND s.begins_at = date_trunc('day', moment, 'UTC'))
      OR (s.span = 'month' AND s.begins_at = date_trunc('month', moment, 'UTC')));
    granted := 0;
    granted_tokens := 0;
    granted_cost := 0;
    FOR ask IN
      SELECT w.* FROM json_to_recordset(wanted) AS w (request_id text, key_id text, entry json, tokens bigint, cost_micro bigint,
        expires_in_ms bigint, forced boolean)
      WHERE w.key_id = held.key_id AND NOT EXISTS (SELECT FROM usage_ledger l WHERE l.request_id = w.request_id)
        AND NOT EXISTS (SELECT FROM usage_reservations r WHERE r.request_id = w.request_id)
    LOOP
      id := ask.request_id;
      refused_by := CASE
        WHEN ask.forced THEN NULL
        WHEN spent.monthly_cost + granted_cost + ask.cost_micro > held.monthly_cost THEN 'monthly_cost'
        WHEN spent.daily_tokens + granted_tokens + ask.tokens > held.daily_tokens THEN 'daily_tokens'
        WHEN spent.tokens + granted_tokens + ask.tokens > held.tpm THEN 'tpm'
        WHEN spent.requests + granted + 1 > held.rpm THEN 'rpm'
      END;
      IF refused_by IS NULL THEN
        INSERT INTO usage_reservations (request_id, entry, tokens, cost_micro, key_id, reserved_at, expires_at)
        VALUES (ask.request_id, ask.entry, ask.tokens, ask.cost_micro, held.key_id, moment, moment + ask.expires_in_ms * interval '1 ms')
        ON CONFLICT (request_id) DO NOTHING;
        IF FOUND THEN
          granted := granted + 1;
          granted_tokens := granted_tokens + ask.tokens;
          granted_cost := granted_cost + ask.cost_micro;
        END IF;
        CONTINUE;
      END IF;
      -- the end of the day or month, or when enough seconds have passed out of the minute
      until := CASE refused_by
        WHEN 'monthly_cost' THEN date_trunc('month', moment, 'UTC') AT TIME ZONE 'UTC' + interval '1 month'
        WHEN 'daily_tokens' THEN date_trunc('day', moment, 'UTC') AT TIME ZONE 'UTC' + interval '1 day'
        ELSE coalesce((
          SELECT min(b.begins_at) FROM (
            SELECT s.begins_at, sum(s.requests) OVER w AS requests, sum(s.tokens) OVER w AS tokens FROM key_spending s
            WHERE s.key_id = held.key_id AND s.span = 'second' AND s.begins_at >= since WINDOW w AS (ORDER BY s.begins_at)
          ) b WHERE CASE refused_by
            WHEN 'rpm' THEN b.requests >= spent.requests + granted + 1 - held.rpm
            ELSE b.tokens >= spent.tokens + granted_tokens + ask.tokens - held.tpm END
        ), date_trunc('second', moment)) AT TIME ZONE 'UTC' + interval '61 seconds'
      END AT TIME ZONE 'UTC';
      retry_after_ms := greatest(1, ceil(extract(epoch FROM until - moment) * 1000));
      RETURN NEXT;
    END LOOP;
    IF granted > 0 THEN
      INSERT INTO key_spending AS s (key_id, span, begins_at, requests, tokens, cost_micro)
      SELECT held.key_id, span, date_trunc(span, moment, 'UTC'), granted, granted_tokens, granted_cost
      FROM unnest(ARRAY['second', 'day', 'month']) span
      ON CONFLICT (key_id, span, begins_at) DO UPDATE SET requests = s.requests + excluded.requests,
        tokens = s.tokens + excluded.tokens, cost_micro = s.cost_micro + excluded.cost_micro;
    END IF;
  END LOOP;
  -- those without a key, or whose key was deleted just now
  INSERT INTO usage_reservations (request_id, entry, tokens, cost_micro, key_id, expires_at)
  SELECT w.request_id, w.entry, w.tokens, w.cost_micro, w.key_id, clock_timestamp() + w.expires_in_ms * interval '1 ms'
  FROM json_to_recordset(wanted) AS w (request_id text, key_id text, entry json, tokens bigint, cost_micro bigint, expires_in_ms bigint)
  WHERE NOT EXISTS (SELECT FROM vendor_keys k WHERE k.key_id = w.key_id)
    AND NOT EXISTS (SELECT FROM usage_ledger l WHERE l.request_id = w.request_id)
  ORDER BY w.request_id
  ON CONFLICT (request_id) DO NOTHING;
END $$;

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

CREATE FUNCTION settle_usage(settled json) RETURNS integer LANGUAGE plpgsql AS $$
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

-- With the entries of the ledger, in one order: two who enter the same wait for each other, never in a circle.
CREATE FUNCTION note_models() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO run_models (tenant, run_id, model, created_at)
  SELECT DISTINCT e.tenant, e.run_id, e.model_name, r.created_at FROM entered e JOIN runs r ON r.tenant = e.tenant AND r.run_id = e.run_id
  WHERE e.run_id IS NOT NULL ORDER BY 1, 2, 3 ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;

CREATE TRIGGER entries_are_spent AFTER INSERT ON usage_ledger REFERENCING NEW TABLE AS entered FOR EACH STATEMENT EXECUTE FUNCTION add_spending();
CREATE TRIGGER entries_have_models AFTER INSERT ON usage_ledger REFERENCING NEW TABLE AS entered FOR EACH STATEMENT EXECUTE FUNCTION note_models();
CREATE TRIGGER ledger_never_changes BEFORE DELETE OR UPDATE ON usage_ledger FOR EACH STATEMENT EXECUTE FUNCTION refuse_update();
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['vendors', 'vendor_keys', 'endpoints', 'categories', 'response_formats', 'models', 'routes', 'grants', 'scenarios'] LOOP
    EXECUTE format('CREATE TRIGGER registry_changed AFTER INSERT OR UPDATE OR DELETE ON %I
      FOR EACH STATEMENT EXECUTE FUNCTION raise_registry_version()', name);
  END LOOP;
END $$;
