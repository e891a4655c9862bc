-- The database after all migrations: npm run schema

CREATE OR REPLACE FUNCTION mason.accepts_placeholders(p_tenant text)
 RETURNS boolean
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'mason', 'pg_temp'
AS $function$
  SELECT COALESCE(bool_or(is_demo AND (tenants IS NULL OR p_tenant = ANY (tenants))) AND bool_and(is_test), false)
  FROM payment_providers WHERE ended_at IS NULL
$function$;
REVOKE EXECUTE ON FUNCTION accepts_placeholders(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION accepts_placeholders(text) TO mason_admin;
GRANT EXECUTE ON FUNCTION accepts_placeholders(text) TO mason_api;
GRANT EXECUTE ON FUNCTION accepts_placeholders(text) TO mason_business;
GRANT EXECUTE ON FUNCTION accepts_placeholders(text) TO mason_payments;
GRANT EXECUTE ON FUNCTION accepts_placeholders(text) TO mason_worker;

CREATE OR REPLACE FUNCTION mason.add_agent_pushes(p_tenant text, p_run_id text, p_type text, p_request_id text, p_push_id text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$ BEGIN
  INSERT INTO webhook_deliveries (tenant, type, run_id, request_id, push_id, url, host)
  SELECT p.tenant, p_type, p.run_id, p_request_id, p.push_id, p.url, substring(p.url FROM '^[^/?#]+//[^/?#]+')
  FROM agent_pushes p WHERE p.tenant = p_tenant AND p.run_id = p_run_id AND (p_push_id IS NULL OR p.push_id = p_push_id)
    AND NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.push_id = p.push_id AND d.type = p_type AND d.request_id IS NOT DISTINCT FROM p_request_id);
END $function$;

CREATE OR REPLACE FUNCTION mason.add_spending()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO spending AS s (tenant, subject, currency, day, cost_micro)
  SELECT e.tenant, who, e.currency, (e.at AT TIME ZONE 'UTC')::date, sum(e.cost_micro)
  FROM entered e, unnest(ARRAY['business', 'user:' || e.user_id, 'token:' || e.token_id]) AS who
  WHERE who IS NOT NULL AND e.cost_micro <> 0 GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
  ON CONFLICT (tenant, subject, currency, day) DO UPDATE SET cost_micro = s.cost_micro + excluded.cost_micro;
  RETURN NULL;
END $function$;

CREATE OR REPLACE FUNCTION mason.add_webhook_delivery(p_tenant text, p_run_id text, p_type text, p_request_id text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
DECLARE
  address text;
  gone boolean;
BEGIN
  IF p_type <> 'run.operator_required' THEN
    PERFORM add_agent_pushes(p_tenant, p_run_id, p_type, p_request_id, NULL);
  END IF;
  SELECT COALESCE(q.webhook_url, s.url) INTO address
  FROM run_requests q LEFT JOIN webhook_settings s ON s.tenant = q.tenant WHERE q.tenant = p_tenant AND q.run_id = p_run_id;
  IF address IS NULL OR p_type <> 'run.operator_required' AND EXISTS (SELECT FROM webhook_deliveries d
    WHERE d.tenant = p_tenant AND d.run_id = p_run_id AND d.request_id = p_request_id AND d.push_id IS NULL) THEN
    RETURN;
  END IF;
  gone := EXISTS (SELECT FROM webhook_deliveries d
    WHERE d.tenant = p_tenant AND md5(d.url) = md5(address) AND d.url = address AND d.is_gone);
  INSERT INTO webhook_deliveries (tenant, type, run_id, request_id, url, host, status, last_error, ended_at)
  VALUES (p_tenant, p_type, p_run_id, p_request_id, address, substring(address FROM '^[^/?#]+//[^/?#]+'),
    CASE WHEN gone THEN 'dead' ELSE 'pending' END,
    CASE WHEN gone THEN 'not sent: the address has answered 410 Gone' END, CASE WHEN gone THEN clock_timestamp() END);
END $function$;

CREATE OR REPLACE FUNCTION mason.delete_file_parts()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  DELETE FROM file_parts WHERE tenant = OLD.tenant AND file_id = OLD.file_id;
  RETURN NULL;
END $function$;

CREATE OR REPLACE FUNCTION mason.end_held_jobs()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  UPDATE held_jobs SET data = 'null', look_at = clock_timestamp(),
    outcome = '{"errors":[{"pointer":"","detail":"its session was deleted while it waited"}]}'
  WHERE tenant = OLD.tenant AND session_id = OLD.session_id AND outcome IS NULL;
  RETURN NULL;
END $function$;

CREATE OR REPLACE FUNCTION mason.end_open_mandate()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  UPDATE mason.payment_orders SET canceled_at = clock_timestamp()
  WHERE open_mandate_id = OLD.mandate_id AND kind = 'pay' AND sent_at IS NULL AND canceled_at IS NULL;
  IF TG_OP = 'DELETE' THEN
    RETURN OLD;
  END IF;
  NEW.revoked_at := COALESCE(OLD.revoked_at, NEW.revoked_at);
  NEW.sealed := NULL;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION mason.end_trusted_key()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE
  ended trusted_keys := OLD;
BEGIN
  IF NEW.valid_to IS DISTINCT FROM OLD.valid_to AND (OLD.valid_to IS NULL OR OLD.valid_to > clock_timestamp()) THEN
    ended.valid_to := clock_timestamp();
    NEW.valid_to := ended.valid_to;
  END IF;
  IF OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL THEN
    ended.revoked_at := clock_timestamp();
    NEW.revoked_at := ended.revoked_at;
  END IF;
  IF NEW IS DISTINCT FROM ended THEN
    RAISE EXCEPTION 'rows of trusted_keys end once and never change otherwise' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION mason.end_wait(p_tenant text, p_kind text, p_ref_id text, p_outcome json)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'mason', 'pg_temp'
AS $function$
DECLARE
  waiting text;
  was text;
  ended int;
  total int := 0;
BEGIN
  IF p_kind = 'payment' AND NOT pg_has_role(session_user, 'mason_payments', 'MEMBER') THEN
    RAISE EXCEPTION 'only the payment executor ends the wait for a payment' USING ERRCODE = 'insufficient_privilege';
  END IF;
  FOR waiting IN SELECT DISTINCT w.run_id FROM waits w
    WHERE w.tenant = p_tenant AND w.kind = p_kind AND w.ref_id = p_ref_id AND w.done_at IS NULL ORDER BY w.run_id
  LOOP
    SELECT r.status INTO was FROM runs r WHERE r.tenant = p_tenant AND r.run_id = waiting FOR NO KEY UPDATE;
    UPDATE waits w SET done_at = clock_timestamp(), outcome = p_outcome,
      seen_at = CASE WHEN was IN ('input_required', 'waiting') THEN clock_timestamp() END
    WHERE w.tenant = p_tenant AND w.run_id = waiting AND w.kind = p_kind AND w.ref_id = p_ref_id AND w.done_at IS NULL;
    GET DIAGNOSTICS ended = ROW_COUNT;
    total := total + ended;
    IF ended > 0 AND was IN ('input_required', 'waiting') THEN
      UPDATE runs r SET status = 'queued' WHERE r.tenant = p_tenant AND r.run_id = waiting;
      INSERT INTO outbox (tenant, run_id) VALUES (p_tenant, waiting);
    END IF;
  END LOOP;
  RETURN total;
END $function$;
REVOKE EXECUTE ON FUNCTION end_wait(text,text,text,json) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION end_wait(text,text,text,json) TO mason_payments;
GRANT EXECUTE ON FUNCTION end_wait(text,text,text,json) TO mason_worker;

CREATE OR REPLACE FUNCTION mason.list_payment_providers(p_tenant text)
 RETURNS TABLE(provider_id text, name text, kind text)
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'mason', 'pg_temp'
AS $function$
  SELECT p.provider_id, p.name, p.kind FROM payment_providers p
  WHERE p.ended_at IS NULL AND (p.tenants IS NULL OR p_tenant = ANY (p.tenants)) ORDER BY p.name LIMIT 20
$function$;
REVOKE EXECUTE ON FUNCTION list_payment_providers(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION list_payment_providers(text) TO mason_admin;
GRANT EXECUTE ON FUNCTION list_payment_providers(text) TO mason_worker;

CREATE OR REPLACE FUNCTION mason.list_run_consents(p_tenant text, p_run_id text)
 RETURNS TABLE(payment_id text, status text, expires_at timestamp with time zone)
 LANGUAGE sql
 STABLE
AS $function$
  SELECT c.payment_id, c.status, c.expires_at FROM mason.consents c WHERE c.tenant = p_tenant AND c.run_id = p_run_id
$function$;
REVOKE EXECUTE ON FUNCTION list_run_consents(text,text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION list_run_consents(text,text) TO mason_admin;
GRANT EXECUTE ON FUNCTION list_run_consents(text,text) TO mason_api;
GRANT EXECUTE ON FUNCTION list_run_consents(text,text) TO mason_business;
GRANT EXECUTE ON FUNCTION list_run_consents(text,text) TO mason_worker;

CREATE OR REPLACE FUNCTION mason.note_changed_run()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO run_changes (tenant, run_id, session_id, status) VALUES (NEW.tenant, NEW.run_id, NEW.session_id, NEW.status);
  IF NEW.status IN ('completed', 'failed', 'cancelled') THEN
    INSERT INTO unread_runs (tenant, run_id, created_at) VALUES (NEW.tenant, NEW.run_id, NEW.created_at) ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END $function$;

CREATE OR REPLACE FUNCTION mason.note_models()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO run_models (tenant, run_id, model, created_at)
  SELECT DISTINCT e.tenant, e.run_id, e.model_name, r.created_at FROM entered e JOIN runs r ON r.tenant = e.tenant AND r.run_id = e.run_id
  WHERE e.run_id IS NOT NULL ORDER BY 1, 2, 3 ON CONFLICT DO NOTHING;
  RETURN NULL;
END $function$;

CREATE OR REPLACE FUNCTION mason.note_new_runs()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO run_changes (tenant, run_id, session_id, status) SELECT tenant, run_id, session_id, status FROM made;
  INSERT INTO unread_runs (tenant, run_id, created_at) SELECT tenant, run_id, created_at FROM made
  WHERE status IN ('completed', 'failed', 'cancelled') ON CONFLICT DO NOTHING;
  RETURN NULL;
END $function$;

CREATE OR REPLACE FUNCTION mason.poll_job_now(p_ref_id text)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'mason', 'pg_temp'
AS $function$
BEGIN
  UPDATE waits SET poll_at = clock_timestamp()
  WHERE ref_id = p_ref_id AND kind = 'job' AND done_at IS NULL AND poll_at > clock_timestamp();
  RETURN FOUND;
END $function$;
REVOKE EXECUTE ON FUNCTION poll_job_now(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION poll_job_now(text) TO mason_admin;
GRANT EXECUTE ON FUNCTION poll_job_now(text) TO mason_worker;

CREATE OR REPLACE FUNCTION mason.queue_consent_webhook()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  PERFORM add_webhook_delivery(NEW.tenant, NEW.run_id, 'run.consent_required', NEW.payment_id);
  RETURN NULL;
END $function$;

CREATE OR REPLACE FUNCTION mason.queue_distillation()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO distillations (tenant, run_id)
  SELECT NEW.tenant, NEW.run_id FROM businesses WHERE tenant = NEW.tenant AND learning ON CONFLICT DO NOTHING;
  RETURN NULL;
END $function$;

CREATE OR REPLACE FUNCTION mason.queue_operator_webhook()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  PERFORM add_webhook_delivery(NEW.tenant, NEW.run_id, 'run.operator_required', NEW.ref_id);
  RETURN NULL;
END $function$;

CREATE OR REPLACE FUNCTION mason.queue_webhook()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  PERFORM add_webhook_delivery(NEW.tenant, NEW.run_id, 'run.' || NEW.status,
    CASE WHEN NEW.status = 'input_required' THEN (SELECT i.request_id FROM input_requests i
      WHERE i.tenant = NEW.tenant AND i.run_id = NEW.run_id AND i.answered_at IS NULL ORDER BY i.created_at DESC LIMIT 1) END);
  RETURN NULL;
END $function$;

CREATE OR REPLACE FUNCTION mason.raise_registry_version()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  UPDATE registry_version SET version = version + 1;
  RETURN NULL;
END $function$;

CREATE OR REPLACE FUNCTION mason.read_memory_words()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF TG_OP = 'UPDATE' THEN DELETE FROM memory_words WHERE number = OLD.number; END IF;
  IF NEW.superseded_by IS NULL AND NEW.number IS NOT NULL THEN
    INSERT INTO memory_words (tenant, user_id, word, number)
    SELECT DISTINCT NEW.tenant, NEW.user_id, hashtextextended(word, 0), NEW.number FROM unnest(tsvector_to_array(NEW.words)) AS word;
  END IF;
  RETURN NULL;
END $function$;

CREATE OR REPLACE FUNCTION mason.read_turn_words()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF TG_OP = 'UPDATE' THEN DELETE FROM turn_words WHERE number = OLD.number; END IF;
  INSERT INTO turn_words (tenant, user_id, word, number)
  SELECT DISTINCT NEW.tenant, NEW.user_id, hashtextextended(word, 0), NEW.number FROM unnest(tsvector_to_array(NEW.words)) AS word;
  RETURN NULL;
END $function$;

CREATE OR REPLACE FUNCTION mason.refuse_update()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  RAISE EXCEPTION 'rows of % never change', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $function$;

CREATE OR REPLACE FUNCTION mason.release_ongoing_work(p_tenant text, p_run_id text)
 RETURNS TABLE(kind text, id text)
 LANGUAGE sql
AS $function$ SELECT 'payments', p.id FROM mason.release_payments(p_tenant, p_run_id) AS p(id) $function$;
REVOKE EXECUTE ON FUNCTION release_ongoing_work(text,text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION release_ongoing_work(text,text) TO mason_api;
GRANT EXECUTE ON FUNCTION release_ongoing_work(text,text) TO mason_business;
GRANT EXECUTE ON FUNCTION release_ongoing_work(text,text) TO mason_worker;

CREATE OR REPLACE FUNCTION mason.release_payments(p_tenant text, p_run_id text)
 RETURNS SETOF text
 LANGUAGE plpgsql
AS $function$
BEGIN
  UPDATE mason.payment_orders SET canceled_at = clock_timestamp()
  WHERE tenant = p_tenant AND run_id = p_run_id AND kind = 'pay' AND sent_at IS NULL AND canceled_at IS NULL;
  RETURN QUERY SELECT p.payment_id FROM mason.payments p
  WHERE p.tenant = p_tenant AND p.run_id = p_run_id AND p.status IN ('sent', 'unknown') ORDER BY p.plan_seq, p.call_index;
END $function$;
REVOKE EXECUTE ON FUNCTION release_payments(text,text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION release_payments(text,text) TO mason_api;
GRANT EXECUTE ON FUNCTION release_payments(text,text) TO mason_business;
GRANT EXECUTE ON FUNCTION release_payments(text,text) TO mason_worker;

CREATE OR REPLACE FUNCTION mason.reserve_usage(wanted json)
 RETURNS TABLE(id text, refused_by text, retry_after_ms bigint)
 LANGUAGE plpgsql
AS $function$
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
END $function$;

CREATE OR REPLACE FUNCTION mason.settle_usage(settled json)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
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
END $function$;

CREATE ROLE mason_admin;

CREATE ROLE mason_api;

CREATE ROLE mason_business;

CREATE ROLE mason_payments;

CREATE ROLE mason_worker;

CREATE SCHEMA mason;
GRANT USAGE ON SCHEMA mason TO mason_admin;
GRANT USAGE ON SCHEMA mason TO mason_api;
GRANT USAGE ON SCHEMA mason TO mason_business;
GRANT USAGE ON SCHEMA mason TO mason_payments;
GRANT USAGE ON SCHEMA mason TO mason_worker;

CREATE SEQUENCE memory_numbers;
GRANT USAGE ON SEQUENCE memory_numbers TO mason_api;
GRANT USAGE ON SEQUENCE memory_numbers TO mason_business;
GRANT USAGE ON SEQUENCE memory_numbers TO mason_worker;

CREATE SEQUENCE turn_numbers;
GRANT USAGE ON SEQUENCE turn_numbers TO mason_api;
GRANT USAGE ON SEQUENCE turn_numbers TO mason_business;
GRANT USAGE ON SEQUENCE turn_numbers TO mason_worker;

CREATE TABLE actions (
  attempt_id text NOT NULL,
  body json NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  epoch integer NOT NULL,
  ms integer,
  patch json NOT NULL,
  prompt_sha256 bytea,
  run_id text NOT NULL,
  seq integer NOT NULL,
  session_id text NOT NULL,
  tenant text NOT NULL,
  turn integer NOT NULL,
  visit_id text,
  worker text,
  CONSTRAINT actions_attempt_id_key UNIQUE (attempt_id),
  CONSTRAINT actions_pkey PRIMARY KEY (tenant, session_id, seq)
);
ALTER TABLE actions ENABLE ROW LEVEL SECURITY;
ALTER TABLE actions FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON actions FOR SELECT TO mason_admin USING (true);
CREATE POLICY business ON actions TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON actions TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT ON TABLE actions TO mason_api;
GRANT DELETE, INSERT, SELECT ON TABLE actions TO mason_business;
GRANT DELETE, INSERT, SELECT ON TABLE actions TO mason_worker;
GRANT SELECT (seq, session_id, tenant) ON TABLE actions TO mason_admin;
CREATE TRIGGER actions_never_change BEFORE UPDATE ON mason.actions FOR EACH STATEMENT EXECUTE FUNCTION refuse_update();

CREATE TABLE agent_cards (
  card json NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  payload json,
  signatures json,
  tenant text NOT NULL,
  updated_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT agent_cards_pkey PRIMARY KEY (tenant),
  CONSTRAINT agent_cards_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
);
CREATE INDEX agent_cards_unsigned ON mason.agent_cards USING btree (tenant) WHERE ((payload IS NOT NULL) AND (signatures IS NULL));
ALTER TABLE agent_cards ENABLE ROW LEVEL SECURITY;
ALTER TABLE agent_cards FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON agent_cards TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON agent_cards TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY executor ON agent_cards TO mason_payments USING (true) WITH CHECK (true);
CREATE POLICY worker ON agent_cards TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE agent_cards TO mason_admin;
GRANT SELECT ON TABLE agent_cards TO mason_api;
GRANT SELECT ON TABLE agent_cards TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE agent_cards TO mason_worker;
GRANT SELECT (payload, signatures, tenant) ON TABLE agent_cards TO mason_payments;
GRANT UPDATE (signatures) ON TABLE agent_cards TO mason_payments;

CREATE TABLE agent_pushes (
  config_id text NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  master_key text NOT NULL,
  protocol text NOT NULL CHECK ((protocol = ANY (ARRAY['1.0'::text, '0.3'::text]))),
  push_id text NOT NULL,
  run_id text NOT NULL,
  sealed_secrets bytea NOT NULL,
  tenant text NOT NULL,
  url text NOT NULL,
  wrapped_key bytea NOT NULL,
  CONSTRAINT agent_pushes_pkey PRIMARY KEY (push_id),
  CONSTRAINT agent_pushes_tenant_run_id_config_id_key UNIQUE (tenant, run_id, config_id),
  CONSTRAINT agent_pushes_tenant_run_id_fkey FOREIGN KEY (tenant, run_id) REFERENCES runs(tenant, run_id) ON DELETE CASCADE
);
ALTER TABLE agent_pushes ENABLE ROW LEVEL SECURITY;
ALTER TABLE agent_pushes FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON agent_pushes TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON agent_pushes TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON agent_pushes TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE agent_pushes TO mason_admin;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE agent_pushes TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE agent_pushes TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE agent_pushes TO mason_worker;

CREATE TABLE audit_log (
  address text NOT NULL,
  at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  audit_id text NOT NULL,
  business_id text,
  fields text[] NOT NULL,
  operation text NOT NULL,
  request_id text NOT NULL,
  resource text NOT NULL,
  resource_id text,
  token_id text,
  token_label text NOT NULL,
  CONSTRAINT audit_log_pkey PRIMARY KEY (audit_id)
);
CREATE INDEX audit_log_by_resource ON mason.audit_log USING btree (resource_id, at, audit_id);
CREATE INDEX audit_log_by_time ON mason.audit_log USING btree (at, audit_id);
CREATE INDEX audit_log_by_token ON mason.audit_log USING btree (token_id, at, audit_id);
ALTER TABLE audit_log ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_log FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON audit_log TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY only_inserts ON audit_log FOR INSERT TO mason_api WITH CHECK (true);
CREATE POLICY only_the_api ON audit_log AS RESTRICTIVE TO mason_worker USING (( SELECT pg_has_role(SESSION_USER, 'mason_admin'::name, 'MEMBER'::text) AS pg_has_role)) WITH CHECK (( SELECT pg_has_role(SESSION_USER, 'mason_admin'::name, 'MEMBER'::text) AS pg_has_role));
CREATE POLICY worker ON audit_log TO mason_worker USING (true) WITH CHECK (true);
GRANT INSERT, SELECT ON TABLE audit_log TO mason_admin;
GRANT INSERT ON TABLE audit_log TO mason_api;
GRANT INSERT, SELECT ON TABLE audit_log TO mason_worker;
CREATE TRIGGER audit_never_changes BEFORE DELETE OR UPDATE OR TRUNCATE ON mason.audit_log FOR EACH STATEMENT EXECUTE FUNCTION refuse_update();

CREATE TABLE blob_uses (
  session_id text NOT NULL,
  sha256 text NOT NULL,
  tenant text NOT NULL,
  CONSTRAINT blob_uses_pkey PRIMARY KEY (tenant, sha256, session_id),
  CONSTRAINT blob_uses_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
);
CREATE INDEX blob_uses_by_session ON mason.blob_uses USING btree (tenant, session_id);
ALTER TABLE blob_uses ENABLE ROW LEVEL SECURITY;
ALTER TABLE blob_uses FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON blob_uses TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON blob_uses TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE blob_uses TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE blob_uses TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE blob_uses TO mason_worker;

CREATE TABLE blobs (
  bytes bytea STORAGE e,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  file_id text,
  sha256 text NOT NULL,
  size bigint,
  tenant text NOT NULL,
  CONSTRAINT blobs_have_bytes CHECK ((((bytes IS NULL) = (file_id IS NOT NULL)) AND ((file_id IS NULL) = (size IS NULL)))),
  CONSTRAINT blobs_pkey PRIMARY KEY (tenant, sha256),
  CONSTRAINT blobs_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
);
CREATE INDEX blobs_by_age ON mason.blobs USING btree (created_at);
ALTER TABLE blobs ENABLE ROW LEVEL SECURITY;
ALTER TABLE blobs FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON blobs TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON blobs TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE blobs TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE blobs TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE blobs TO mason_worker;
CREATE TRIGGER blobs_delete_parts AFTER DELETE ON mason.blobs FOR EACH ROW WHEN ((old.file_id IS NOT NULL)) EXECUTE FUNCTION delete_file_parts();

CREATE TABLE budget_requests (
  budget_id text NOT NULL,
  minute timestamp with time zone NOT NULL,
  requests bigint NOT NULL,
  tenant text NOT NULL,
  CONSTRAINT budget_requests_budget_id_fkey FOREIGN KEY (budget_id) REFERENCES budgets(budget_id) ON DELETE CASCADE,
  CONSTRAINT budget_requests_pkey PRIMARY KEY (budget_id)
) WITH (fillfactor=50);
ALTER TABLE budget_requests ENABLE ROW LEVEL SECURITY;
ALTER TABLE budget_requests FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON budget_requests TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON budget_requests TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON budget_requests TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE budget_requests TO mason_admin;
GRANT INSERT, SELECT, UPDATE ON TABLE budget_requests TO mason_api;
GRANT INSERT, SELECT, UPDATE ON TABLE budget_requests TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE budget_requests TO mason_worker;

CREATE TABLE budgets (
  budget_id text NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  currency text NOT NULL,
  daily_cost bigint,
  monthly_cost bigint,
  requests_per_minute integer,
  subject text NOT NULL GENERATED ALWAYS AS (COALESCE(('user:'::text || user_id), ('token:'::text || token_id), 'business'::text)) STORED,
  tenant text NOT NULL,
  token_id text,
  updated_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  user_id text,
  CONSTRAINT budgets_check CHECK (((token_id IS NULL) OR (user_id IS NULL))),
  CONSTRAINT budgets_pkey PRIMARY KEY (budget_id),
  CONSTRAINT budgets_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant),
  CONSTRAINT budgets_tenant_subject_currency_key UNIQUE (tenant, subject, currency)
);
ALTER TABLE budgets ENABLE ROW LEVEL SECURITY;
ALTER TABLE budgets FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON budgets TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON budgets TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON budgets TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE budgets TO mason_admin;
GRANT SELECT ON TABLE budgets TO mason_api;
GRANT SELECT ON TABLE budgets TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE budgets TO mason_worker;

CREATE TABLE bulk_jobs (
  action text NOT NULL CHECK ((action = ANY (ARRAY['cancel'::text, 'retry'::text]))),
  claims integer NOT NULL DEFAULT 0,
  confirmed_at timestamp with time zone,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  due_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  ended_at timestamp with time zone,
  job_id text NOT NULL,
  reason text,
  status text NOT NULL DEFAULT 'unconfirmed'::text CHECK ((status = ANY (ARRAY['unconfirmed'::text, 'queued'::text, 'running'::text, 'completed'::text, 'cancelled'::text]))),
  tenant text NOT NULL,
  token_id text,
  CONSTRAINT bulk_jobs_pkey PRIMARY KEY (tenant, job_id),
  CONSTRAINT bulk_jobs_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
);
CREATE INDEX bulk_jobs_by_age ON mason.bulk_jobs USING btree (created_at);
CREATE INDEX bulk_jobs_due ON mason.bulk_jobs USING btree (due_at) WHERE (status = ANY (ARRAY['queued'::text, 'running'::text]));
ALTER TABLE bulk_jobs ENABLE ROW LEVEL SECURITY;
ALTER TABLE bulk_jobs FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON bulk_jobs TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON bulk_jobs TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE bulk_jobs TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE bulk_jobs TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE bulk_jobs TO mason_worker;

CREATE TABLE bulk_runs (
  code text,
  job_id text NOT NULL,
  position integer NOT NULL,
  run_id text NOT NULL,
  status text CHECK ((status = ANY (ARRAY['done'::text, 'refused'::text]))),
  tenant text NOT NULL,
  CONSTRAINT bulk_runs_pkey PRIMARY KEY (tenant, job_id, run_id),
  CONSTRAINT bulk_runs_tenant_job_id_fkey FOREIGN KEY (tenant, job_id) REFERENCES bulk_jobs(tenant, job_id) ON DELETE CASCADE
);
CREATE INDEX bulk_runs_left ON mason.bulk_runs USING btree (tenant, job_id, "position") WHERE (status IS NULL);
ALTER TABLE bulk_runs ENABLE ROW LEVEL SECURITY;
ALTER TABLE bulk_runs FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON bulk_runs TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON bulk_runs TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE bulk_runs TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE bulk_runs TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE bulk_runs TO mason_worker;

CREATE TABLE business_secrets (
  master_key text NOT NULL,
  names text[] NOT NULL,
  sealed_secrets bytea NOT NULL,
  tenant text NOT NULL,
  wrapped_key bytea NOT NULL,
  CONSTRAINT business_secrets_pkey PRIMARY KEY (tenant),
  CONSTRAINT business_secrets_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
);
ALTER TABLE business_secrets ENABLE ROW LEVEL SECURITY;
ALTER TABLE business_secrets FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON business_secrets TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON business_secrets FOR SELECT TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON business_secrets TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE business_secrets TO mason_admin;
GRANT SELECT ON TABLE business_secrets TO mason_api;
GRANT SELECT ON TABLE business_secrets TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE business_secrets TO mason_worker;

CREATE TABLE businesses (
  claims bigint NOT NULL DEFAULT 0,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  http_hosts json NOT NULL DEFAULT '[]'::json,
  last_claimed_at timestamp with time zone,
  learning boolean NOT NULL DEFAULT true,
  max_concurrency integer CHECK ((max_concurrency > 0)),
  max_queued integer NOT NULL DEFAULT 10000 CHECK ((max_queued > 0)),
  queue_ttl interval NOT NULL DEFAULT '24:00:00'::interval,
  quota_queued_runs integer CHECK ((quota_queued_runs > 0)),
  quota_requests_per_minute integer CHECK ((quota_requests_per_minute > 0)),
  quota_storage_bytes bigint CHECK ((quota_storage_bytes > 0)),
  recall boolean NOT NULL DEFAULT true,
  tenant text NOT NULL,
  turns_read_hour timestamp with time zone NOT NULL DEFAULT '-infinity'::timestamp with time zone,
  turns_read_to text,
  turns_read_tokens bigint NOT NULL DEFAULT 0,
  CONSTRAINT businesses_pkey PRIMARY KEY (tenant)
) WITH (fillfactor=50);
ALTER TABLE businesses ENABLE ROW LEVEL SECURITY;
ALTER TABLE businesses FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON businesses TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON businesses TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON businesses TO mason_worker USING (true) WITH CHECK (true);
GRANT INSERT, SELECT, UPDATE ON TABLE businesses TO mason_admin;
GRANT SELECT ON TABLE businesses TO mason_api;
GRANT SELECT ON TABLE businesses TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE businesses TO mason_worker;
CREATE TRIGGER registry_changed AFTER UPDATE OF http_hosts ON mason.businesses FOR EACH ROW WHEN (((old.http_hosts)::text IS DISTINCT FROM (new.http_hosts)::text)) EXECUTE FUNCTION raise_registry_version();

CREATE TABLE categories (
  built_in boolean NOT NULL DEFAULT false,
  category_id text NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  description text NOT NULL DEFAULT ''::text,
  name text NOT NULL,
  updated_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT categories_name_key UNIQUE (name),
  CONSTRAINT categories_pkey PRIMARY KEY (category_id)
);
ALTER TABLE categories ENABLE ROW LEVEL SECURITY;
ALTER TABLE categories FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON categories TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON categories TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE categories TO mason_admin;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE categories TO mason_worker;
CREATE TRIGGER registry_changed AFTER INSERT OR DELETE OR UPDATE ON mason.categories FOR EACH STATEMENT EXECUTE FUNCTION raise_registry_version();

CREATE TABLE consent_links (
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamp with time zone NOT NULL,
  link_hash text NOT NULL,
  purpose text NOT NULL CHECK ((purpose = ANY (ARRAY['enrol'::text, 'consent'::text]))),
  ref_id text,
  tenant text NOT NULL,
  used_at timestamp with time zone,
  user_id text NOT NULL,
  CONSTRAINT consent_links_check CHECK (((purpose = 'consent'::text) = (ref_id IS NOT NULL))),
  CONSTRAINT consent_links_pkey PRIMARY KEY (link_hash),
  CONSTRAINT consent_links_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
);
CREATE INDEX consent_links_ended ON mason.consent_links USING btree (expires_at);
CREATE INDEX consent_links_of_user ON mason.consent_links USING btree (tenant, user_id);
ALTER TABLE consent_links ENABLE ROW LEVEL SECURITY;
ALTER TABLE consent_links FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON consent_links TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY only_the_api ON consent_links AS RESTRICTIVE TO mason_worker USING (( SELECT pg_has_role(SESSION_USER, 'mason_admin'::name, 'MEMBER'::text) AS pg_has_role)) WITH CHECK (( SELECT pg_has_role(SESSION_USER, 'mason_admin'::name, 'MEMBER'::text) AS pg_has_role));
CREATE POLICY worker ON consent_links TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT ON TABLE consent_links TO mason_admin;
GRANT DELETE, INSERT, SELECT ON TABLE consent_links TO mason_worker;
GRANT UPDATE (used_at) ON TABLE consent_links TO mason_admin;
GRANT UPDATE (used_at) ON TABLE consent_links TO mason_worker;

CREATE TABLE consents (
  answer json,
  answered_at timestamp with time zone,
  consent_id text NOT NULL,
  content text NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  decided_at timestamp with time zone,
  expires_at timestamp with time zone NOT NULL,
  issued json,
  next_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  nonce text NOT NULL,
  outcome json,
  payment_id text NOT NULL,
  run_id text,
  status text NOT NULL DEFAULT 'open'::text CHECK ((status = ANY (ARRAY['open'::text, 'signed'::text, 'refused'::text, 'expired'::text, 'verified'::text, 'failed'::text]))),
  tenant text NOT NULL,
  tries integer NOT NULL DEFAULT 0,
  user_id text NOT NULL,
  CONSTRAINT consents_nonce_key UNIQUE (nonce),
  CONSTRAINT consents_payment_id_key UNIQUE (payment_id),
  CONSTRAINT consents_pkey PRIMARY KEY (consent_id),
  CONSTRAINT consents_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
);
CREATE INDEX consents_of_user ON mason.consents USING btree (tenant, user_id, created_at);
CREATE UNIQUE INDEX consents_one_open ON mason.consents USING btree (tenant, run_id) WHERE (status = 'open'::text);
CREATE INDEX consents_undecided ON mason.consents USING btree (next_at) WHERE (decided_at IS NULL);
ALTER TABLE consents ENABLE ROW LEVEL SECURITY;
ALTER TABLE consents FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON consents TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON consents TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY executor ON consents TO mason_payments USING (true) WITH CHECK (true);
CREATE POLICY only_the_api ON consents AS RESTRICTIVE FOR UPDATE TO mason_worker USING (( SELECT pg_has_role(SESSION_USER, 'mason_admin'::name, 'MEMBER'::text) AS pg_has_role));
CREATE POLICY worker ON consents TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT ON TABLE consents TO mason_payments;
GRANT INSERT (consent_id, content, expires_at, nonce, payment_id, run_id, tenant, user_id) ON TABLE consents TO mason_admin;
GRANT SELECT (answered_at, consent_id, content, created_at, decided_at, expires_at, issued, nonce, outcome, payment_id, run_id, status, tenant, user_id) ON TABLE consents TO mason_admin;
GRANT UPDATE (answer, answered_at, status) ON TABLE consents TO mason_admin;
GRANT INSERT (consent_id, content, expires_at, nonce, payment_id, run_id, tenant, user_id) ON TABLE consents TO mason_api;
GRANT SELECT (answered_at, consent_id, content, created_at, decided_at, expires_at, issued, nonce, outcome, payment_id, run_id, status, tenant, user_id) ON TABLE consents TO mason_api;
GRANT INSERT (consent_id, content, expires_at, nonce, payment_id, run_id, tenant, user_id) ON TABLE consents TO mason_business;
GRANT SELECT (answered_at, consent_id, content, created_at, decided_at, expires_at, issued, nonce, outcome, payment_id, run_id, status, tenant, user_id) ON TABLE consents TO mason_business;
GRANT UPDATE (answer, decided_at, issued, next_at, outcome, status, tries) ON TABLE consents TO mason_payments;
GRANT INSERT (consent_id, content, expires_at, nonce, payment_id, run_id, tenant, user_id) ON TABLE consents TO mason_worker;
GRANT SELECT (answered_at, consent_id, content, created_at, decided_at, expires_at, issued, nonce, outcome, payment_id, run_id, status, tenant, user_id) ON TABLE consents TO mason_worker;
GRANT UPDATE (answer, answered_at, status) ON TABLE consents TO mason_worker;
CREATE TRIGGER webhook_of_consent AFTER INSERT ON mason.consents FOR EACH ROW WHEN ((new.run_id IS NOT NULL)) EXECUTE FUNCTION queue_consent_webhook();

CREATE TABLE console_sessions (
  admin_proof text,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamp with time zone NOT NULL,
  kind text NOT NULL CHECK ((kind = ANY (ARRAY['session'::text, 'code'::text]))),
  secret_hash text NOT NULL,
  token_id text,
  CONSTRAINT console_sessions_check CHECK (((token_id IS NULL) = (admin_proof IS NOT NULL))),
  CONSTRAINT console_sessions_pkey PRIMARY KEY (secret_hash)
);
CREATE INDEX console_sessions_ended ON mason.console_sessions USING btree (expires_at);
ALTER TABLE console_sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE console_sessions FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON console_sessions TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY only_the_api ON console_sessions AS RESTRICTIVE TO mason_worker USING (( SELECT pg_has_role(SESSION_USER, 'mason_admin'::name, 'MEMBER'::text) AS pg_has_role)) WITH CHECK (( SELECT pg_has_role(SESSION_USER, 'mason_admin'::name, 'MEMBER'::text) AS pg_has_role));
CREATE POLICY worker ON console_sessions TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT ON TABLE console_sessions TO mason_admin;
GRANT DELETE, INSERT, SELECT ON TABLE console_sessions TO mason_worker;

CREATE TABLE database_identity (
  id text NOT NULL,
  only_row boolean NOT NULL DEFAULT true CHECK (only_row),
  CONSTRAINT database_identity_pkey PRIMARY KEY (only_row)
);
ALTER TABLE database_identity ENABLE ROW LEVEL SECURITY;
ALTER TABLE database_identity FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON database_identity TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON database_identity TO mason_worker USING (true) WITH CHECK (true);
GRANT INSERT, SELECT, UPDATE ON TABLE database_identity TO mason_admin;
GRANT INSERT, SELECT, UPDATE ON TABLE database_identity TO mason_worker;

CREATE TABLE distillations (
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  due_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  error text,
  failed_at timestamp with time zone,
  run_id text NOT NULL,
  tenant text NOT NULL,
  tries integer NOT NULL DEFAULT 0,
  CONSTRAINT distillations_pkey PRIMARY KEY (tenant, run_id),
  CONSTRAINT distillations_tenant_run_id_fkey FOREIGN KEY (tenant, run_id) REFERENCES runs(tenant, run_id) ON DELETE CASCADE
) WITH (fillfactor=50);
CREATE INDEX distillations_due ON mason.distillations USING btree (due_at) WHERE (failed_at IS NULL);
ALTER TABLE distillations ENABLE ROW LEVEL SECURITY;
ALTER TABLE distillations FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON distillations TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON distillations TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON distillations TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE ON TABLE distillations TO mason_admin;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE distillations TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE distillations TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE distillations TO mason_worker;
GRANT SELECT (created_at, failed_at, run_id, tenant) ON TABLE distillations TO mason_admin;
GRANT UPDATE (failed_at) ON TABLE distillations TO mason_admin;

CREATE TABLE effects (
  class text NOT NULL CHECK ((class = ANY (ARRAY['pure'::text, 'keyed'::text, 'queryable'::text, 'manual'::text]))),
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  effect_id text NOT NULL,
  error text,
  first_sent_at timestamp with time zone,
  request bytea NOT NULL,
  request_hash text NOT NULL,
  response json,
  run_id text NOT NULL,
  sends integer NOT NULL DEFAULT 0,
  status text NOT NULL CHECK ((status = ANY (ARRAY['intent'::text, 'sent'::text, 'succeeded'::text, 'refused'::text, 'failed'::text, 'unknown'::text]))),
  tenant text NOT NULL,
  CONSTRAINT effects_pkey PRIMARY KEY (tenant, effect_id),
  CONSTRAINT effects_tenant_run_id_fkey FOREIGN KEY (tenant, run_id) REFERENCES runs(tenant, run_id) ON DELETE CASCADE
);
CREATE INDEX effects_unknown ON mason.effects USING btree (created_at, effect_id) WHERE (status = 'unknown'::text);
ALTER TABLE effects ENABLE ROW LEVEL SECURITY;
ALTER TABLE effects FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON effects FOR SELECT TO mason_admin USING (true);
CREATE POLICY business ON effects TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON effects TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE effects TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE effects TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE effects TO mason_worker;
GRANT SELECT (class, created_at, effect_id, error, first_sent_at, run_id, sends, status, tenant) ON TABLE effects TO mason_admin;

CREATE TABLE endpoints (
  allow_private boolean NOT NULL DEFAULT false,
  base_url text NOT NULL,
  categories text[] NOT NULL DEFAULT '{}'::text[],
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  endpoint_id text NOT NULL,
  master_key text,
  name text NOT NULL,
  protocol text NOT NULL CHECK ((protocol = ANY (ARRAY['openai'::text, 'http'::text]))),
  sealed_headers bytea,
  status text NOT NULL CHECK ((status = ANY (ARRAY['active'::text, 'disabled'::text]))),
  timeouts json NOT NULL DEFAULT '{}'::json,
  updated_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  vendor_id text NOT NULL,
  wrapped_key bytea,
  CONSTRAINT endpoints_pkey PRIMARY KEY (endpoint_id),
  CONSTRAINT endpoints_vendor_id_fkey FOREIGN KEY (vendor_id) REFERENCES vendors(vendor_id),
  CONSTRAINT endpoints_vendor_id_name_key UNIQUE (vendor_id, name)
);
ALTER TABLE endpoints ENABLE ROW LEVEL SECURITY;
ALTER TABLE endpoints FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON endpoints TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON endpoints TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE endpoints TO mason_admin;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE endpoints TO mason_worker;
CREATE TRIGGER registry_changed AFTER INSERT OR DELETE OR UPDATE ON mason.endpoints FOR EACH STATEMENT EXECUTE FUNCTION raise_registry_version();

CREATE TABLE file_parts (
  bytes bytea NOT NULL STORAGE e,
  file_id text NOT NULL,
  part integer NOT NULL,
  tenant text NOT NULL,
  CONSTRAINT file_parts_pkey PRIMARY KEY (tenant, file_id, part),
  CONSTRAINT file_parts_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
);
ALTER TABLE file_parts ENABLE ROW LEVEL SECURITY;
ALTER TABLE file_parts FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON file_parts TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON file_parts TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE file_parts TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE file_parts TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE file_parts TO mason_worker;

CREATE TABLE files (
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  expected_sha256 text,
  file_id text NOT NULL,
  length bigint,
  name text NOT NULL,
  named boolean NOT NULL DEFAULT false,
  received bigint NOT NULL DEFAULT 0,
  sha256 text,
  tenant text NOT NULL,
  touched_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  type text NOT NULL,
  CONSTRAINT files_pkey PRIMARY KEY (tenant, file_id),
  CONSTRAINT files_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
);
CREATE INDEX files_by_content ON mason.files USING btree (tenant, sha256) WHERE (sha256 IS NOT NULL);
CREATE INDEX files_unused ON mason.files USING btree (touched_at) WHERE (NOT named);
ALTER TABLE files ENABLE ROW LEVEL SECURITY;
ALTER TABLE files FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON files TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON files TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE files TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE files TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE files TO mason_worker;
CREATE TRIGGER files_delete_parts AFTER DELETE ON mason.files FOR EACH ROW WHEN ((old.sha256 IS NULL)) EXECUTE FUNCTION delete_file_parts();

CREATE TABLE grants (
  business_id text,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  grant_id text NOT NULL,
  key_id text NOT NULL,
  updated_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  user_id text,
  CONSTRAINT grants_business_id_fkey FOREIGN KEY (business_id) REFERENCES businesses(tenant),
  CONSTRAINT grants_check CHECK (((business_id IS NOT NULL) OR (user_id IS NOT NULL))),
  CONSTRAINT grants_key_id_fkey FOREIGN KEY (key_id) REFERENCES vendor_keys(key_id),
  CONSTRAINT grants_pkey PRIMARY KEY (grant_id)
);
CREATE INDEX grants_by_key ON mason.grants USING btree (key_id);
ALTER TABLE grants ENABLE ROW LEVEL SECURITY;
ALTER TABLE grants FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON grants TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON grants TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE grants TO mason_admin;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE grants TO mason_worker;
CREATE TRIGGER registry_changed AFTER INSERT OR DELETE OR UPDATE ON mason.grants FOR EACH STATEMENT EXECUTE FUNCTION raise_registry_version();

CREATE TABLE held_jobs (
  attempts integer NOT NULL DEFAULT 0,
  data json NOT NULL,
  data_hash text NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  faults json NOT NULL,
  held_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  job_id text NOT NULL,
  look_at timestamp with time zone,
  outcome json,
  seq bigint NOT NULL GENERATED AS IDENTITY (a),
  session_id text NOT NULL,
  tenant text NOT NULL,
  CONSTRAINT held_jobs_pkey PRIMARY KEY (seq),
  CONSTRAINT held_jobs_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
);
CREATE UNIQUE INDEX held_jobs_by_content ON mason.held_jobs USING btree (job_id, data_hash);
CREATE INDEX held_jobs_by_session ON mason.held_jobs USING btree (tenant, session_id, seq) WHERE (outcome IS NULL);
CREATE INDEX held_jobs_due ON mason.held_jobs USING btree (tenant, look_at) WHERE ((outcome IS NULL) AND (look_at IS NOT NULL));
CREATE INDEX held_jobs_expired ON mason.held_jobs USING btree (expires_at) WHERE (outcome IS NULL);
CREATE INDEX held_jobs_settled ON mason.held_jobs USING btree (look_at) WHERE (outcome IS NOT NULL);
ALTER TABLE held_jobs ENABLE ROW LEVEL SECURITY;
ALTER TABLE held_jobs FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON held_jobs TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON held_jobs TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT ON TABLE held_jobs TO mason_api;
GRANT SELECT ON TABLE held_jobs TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE held_jobs TO mason_worker;
GRANT UPDATE (data, look_at, outcome) ON TABLE held_jobs TO mason_api;
GRANT UPDATE (data, look_at, outcome) ON TABLE held_jobs TO mason_business;

CREATE TABLE idempotency (
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  key text NOT NULL,
  request_hash text NOT NULL,
  response json NOT NULL,
  route text NOT NULL,
  tenant text NOT NULL,
  CONSTRAINT idempotency_pkey PRIMARY KEY (tenant, route, key),
  CONSTRAINT idempotency_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
);
CREATE INDEX idempotency_by_age ON mason.idempotency USING btree (created_at);
ALTER TABLE idempotency ENABLE ROW LEVEL SECURITY;
ALTER TABLE idempotency FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON idempotency TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON idempotency TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE idempotency TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE idempotency TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE idempotency TO mason_worker;

CREATE TABLE inbox (
  message_id text NOT NULL,
  received_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  source text NOT NULL,
  tenant text NOT NULL,
  CONSTRAINT inbox_pkey PRIMARY KEY (tenant, source, message_id),
  CONSTRAINT inbox_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
);
ALTER TABLE inbox ENABLE ROW LEVEL SECURITY;
ALTER TABLE inbox FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON inbox TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON inbox TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE inbox TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE inbox TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE inbox TO mason_worker;

CREATE TABLE input_requests (
  answer json,
  answer_key text,
  answered_at timestamp with time zone,
  call_index integer NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamp with time zone NOT NULL,
  options json NOT NULL,
  payment_id text,
  plan_seq integer NOT NULL,
  question json NOT NULL,
  request_id text NOT NULL,
  run_id text NOT NULL,
  schema json NOT NULL,
  sealed text,
  secret boolean NOT NULL DEFAULT false,
  tenant text NOT NULL,
  CONSTRAINT input_requests_check CHECK (
CASE
    WHEN secret THEN (COALESCE((answer ->> 'answer'::text), ''::text) = ''::text)
    ELSE true
END),
  CONSTRAINT input_requests_pkey PRIMARY KEY (tenant, request_id),
  CONSTRAINT input_requests_tenant_run_id_fkey FOREIGN KEY (tenant, run_id) REFERENCES runs(tenant, run_id) ON DELETE CASCADE,
  CONSTRAINT input_requests_tenant_run_id_plan_seq_call_index_key UNIQUE (tenant, run_id, plan_seq, call_index)
);
CREATE INDEX input_requests_by_time ON mason.input_requests USING btree (tenant, created_at, request_id);
CREATE INDEX input_requests_open ON mason.input_requests USING btree (expires_at) WHERE (answered_at IS NULL);
CREATE INDEX input_requests_sealed ON mason.input_requests USING btree (answered_at) WHERE (sealed IS NOT NULL);
ALTER TABLE input_requests ENABLE ROW LEVEL SECURITY;
ALTER TABLE input_requests FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON input_requests FOR SELECT TO mason_admin USING (true);
CREATE POLICY business ON input_requests TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON input_requests TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE input_requests TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE input_requests TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE input_requests TO mason_worker;
GRANT SELECT (answered_at) ON TABLE input_requests TO mason_admin;

CREATE TABLE intake_lease (
  epoch bigint NOT NULL DEFAULT 0,
  lease_until timestamp with time zone NOT NULL DEFAULT '-infinity'::timestamp with time zone,
  lockable boolean,
  owner text NOT NULL DEFAULT ''::text,
  singleton boolean NOT NULL DEFAULT true CHECK (singleton),
  CONSTRAINT intake_lease_pkey PRIMARY KEY (singleton)
) WITH (fillfactor=50);
ALTER TABLE intake_lease ENABLE ROW LEVEL SECURITY;
ALTER TABLE intake_lease FORCE ROW LEVEL SECURITY;
CREATE POLICY fence ON intake_lease TO mason_api, mason_business USING (true) WITH CHECK (true);
CREATE POLICY worker ON intake_lease TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT ON TABLE intake_lease TO mason_api;
GRANT SELECT ON TABLE intake_lease TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE intake_lease TO mason_worker;
GRANT UPDATE (lockable) ON TABLE intake_lease TO mason_api;
GRANT UPDATE (lockable) ON TABLE intake_lease TO mason_business;

CREATE TABLE key_spending (
  begins_at timestamp with time zone NOT NULL,
  cost_micro bigint NOT NULL DEFAULT 0,
  key_id text NOT NULL,
  requests bigint NOT NULL DEFAULT 0,
  span text NOT NULL CHECK ((span = ANY (ARRAY['second'::text, 'day'::text, 'month'::text]))),
  tokens bigint NOT NULL DEFAULT 0,
  CONSTRAINT key_spending_key_id_fkey FOREIGN KEY (key_id) REFERENCES vendor_keys(key_id) ON DELETE CASCADE,
  CONSTRAINT key_spending_pkey PRIMARY KEY (key_id, span, begins_at)
) WITH (fillfactor=50);
ALTER TABLE key_spending ENABLE ROW LEVEL SECURITY;
ALTER TABLE key_spending FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON key_spending TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON key_spending TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE key_spending TO mason_admin;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE key_spending TO mason_worker;

CREATE TABLE mandate_spend (
  currency text NOT NULL,
  max_minor bigint,
  max_uses integer,
  reserved_minor bigint NOT NULL DEFAULT 0 CHECK ((reserved_minor >= 0)),
  reserved_uses integer NOT NULL DEFAULT 0 CHECK ((reserved_uses >= 0)),
  spend_id text NOT NULL,
  spent_minor bigint NOT NULL DEFAULT 0 CHECK ((spent_minor >= 0)),
  spent_uses integer NOT NULL DEFAULT 0 CHECK ((spent_uses >= 0)),
  tenant text NOT NULL,
  CONSTRAINT mandate_spend_budget CHECK (((reserved_minor + spent_minor) <= max_minor)),
  CONSTRAINT mandate_spend_pkey PRIMARY KEY (spend_id),
  CONSTRAINT mandate_spend_uses CHECK (((reserved_uses + spent_uses) <= max_uses))
) WITH (fillfactor=70);
ALTER TABLE mandate_spend ENABLE ROW LEVEL SECURITY;
ALTER TABLE mandate_spend FORCE ROW LEVEL SECURITY;
CREATE POLICY executor ON mandate_spend TO mason_payments USING (true) WITH CHECK (true);
GRANT INSERT, SELECT, UPDATE ON TABLE mandate_spend TO mason_payments;

CREATE TABLE mandates (
  issuer_key text NOT NULL,
  kind text NOT NULL CHECK ((kind = ANY (ARRAY['payment'::text, 'cart'::text, 'checkout'::text]))),
  payment_id text NOT NULL,
  raw text NOT NULL,
  signing_hash text NOT NULL,
  tenant text NOT NULL,
  verified_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT mandates_pkey PRIMARY KEY (payment_id, kind)
);
ALTER TABLE mandates ENABLE ROW LEVEL SECURITY;
ALTER TABLE mandates FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON mandates FOR SELECT TO mason_api USING ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY executor ON mandates TO mason_payments USING (true) WITH CHECK (true);
GRANT SELECT ON TABLE mandates TO mason_api;
GRANT INSERT, SELECT, UPDATE ON TABLE mandates TO mason_payments;

CREATE TABLE memories (
  content text NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  evidence text,
  kind text NOT NULL CHECK ((kind = ANY (ARRAY['preference'::text, 'fact'::text, 'knowledge'::text, 'episode'::text]))),
  last_used_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  memory_id text NOT NULL,
  number bigint DEFAULT nextval('memory_numbers'::regclass),
  origin text NOT NULL CHECK ((origin = ANY (ARRAY['user'::text, 'profile'::text, 'memory'::text, 'file'::text, 'tool'::text, 'web'::text, 'agent'::text]))),
  run_id text,
  session_id text,
  signature bit varying,
  source_action_ids integer[] NOT NULL DEFAULT '{}'::integer[],
  space text NOT NULL DEFAULT ''::text,
  strength real NOT NULL DEFAULT 0.5 CHECK (((strength >= (0)::double precision) AND (strength <= (1)::double precision))),
  subject text,
  superseded_by text,
  tenant text NOT NULL,
  trusted boolean NOT NULL,
  user_id text NOT NULL,
  uses integer NOT NULL DEFAULT 0,
  words tsvector NOT NULL,
  CONSTRAINT memories_number UNIQUE (number),
  CONSTRAINT memories_pkey PRIMARY KEY (tenant, memory_id),
  CONSTRAINT memories_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
) WITH (fillfactor=80, autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_insert_scale_factor=0.05);
CREATE INDEX memories_by_space ON mason.memories USING btree (space, tenant) WHERE (superseded_by IS NULL);
CREATE INDEX memories_listed ON mason.memories USING btree (tenant, user_id, created_at, memory_id);
CREATE INDEX memories_near ON mason.memories USING btree (tenant, user_id, space) INCLUDE (memory_id, signature) WHERE (superseded_by IS NULL);
CREATE INDEX memories_searched ON mason.memories USING btree (tenant, user_id, space) WHERE (superseded_by IS NULL);
CREATE INDEX memories_unread ON mason.memories USING btree (tenant, user_id, created_at) WHERE ((number IS NULL) AND (superseded_by IS NULL));
ALTER TABLE memories ENABLE ROW LEVEL SECURITY;
ALTER TABLE memories FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON memories TO mason_api, mason_business USING (((tenant = ( SELECT current_setting('mason.business'::text, true) AS current_setting)) AND ((( SELECT current_setting('mason.user'::text, true) AS current_setting) = '*'::text) OR (user_id = ( SELECT current_setting('mason.user'::text, true) AS current_setting))))) WITH CHECK (((tenant = ( SELECT current_setting('mason.business'::text, true) AS current_setting)) AND ((( SELECT current_setting('mason.user'::text, true) AS current_setting) = '*'::text) OR (user_id = ( SELECT current_setting('mason.user'::text, true) AS current_setting)))));
CREATE POLICY worker ON memories TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE memories TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE memories TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE memories TO mason_worker;
CREATE TRIGGER memory_is_read AFTER INSERT OR UPDATE OF superseded_by, number, words ON mason.memories FOR EACH ROW EXECUTE FUNCTION read_memory_words();

CREATE TABLE memory_sources (
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  memory_id text NOT NULL,
  run_id text NOT NULL,
  session_id text NOT NULL,
  tenant text NOT NULL,
  user_id text NOT NULL,
  CONSTRAINT memory_sources_pkey PRIMARY KEY (tenant, memory_id, run_id),
  CONSTRAINT memory_sources_tenant_memory_id_fkey FOREIGN KEY (tenant, memory_id) REFERENCES memories(tenant, memory_id) ON DELETE CASCADE
);
CREATE INDEX memory_sources_by_session ON mason.memory_sources USING btree (tenant, session_id);
ALTER TABLE memory_sources ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_sources FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON memory_sources TO mason_api, mason_business USING (((tenant = ( SELECT current_setting('mason.business'::text, true) AS current_setting)) AND ((( SELECT current_setting('mason.user'::text, true) AS current_setting) = '*'::text) OR (user_id = ( SELECT current_setting('mason.user'::text, true) AS current_setting))))) WITH CHECK (((tenant = ( SELECT current_setting('mason.business'::text, true) AS current_setting)) AND ((( SELECT current_setting('mason.user'::text, true) AS current_setting) = '*'::text) OR (user_id = ( SELECT current_setting('mason.user'::text, true) AS current_setting)))));
CREATE POLICY worker ON memory_sources TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE memory_sources TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE memory_sources TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE memory_sources TO mason_worker;

CREATE TABLE memory_spaces (
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  dimensions integer NOT NULL CHECK ((dimensions > 0)),
  pair_deviation real,
  pair_mean real,
  pairs integer NOT NULL DEFAULT 0,
  space text NOT NULL,
  CONSTRAINT memory_spaces_pkey PRIMARY KEY (space)
);
ALTER TABLE memory_spaces ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_spaces FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON memory_spaces TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY reader ON memory_spaces FOR SELECT TO mason_api, mason_business USING (true);
CREATE POLICY worker ON memory_spaces TO mason_worker USING (true) WITH CHECK (true);
GRANT INSERT, SELECT, UPDATE ON TABLE memory_spaces TO mason_admin;
GRANT SELECT ON TABLE memory_spaces TO mason_api;
GRANT SELECT ON TABLE memory_spaces TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE memory_spaces TO mason_worker;

CREATE TABLE memory_vectors (
  embedding halfvec NOT NULL STORAGE p,
  memory_id text NOT NULL,
  space text NOT NULL,
  tenant text NOT NULL,
  user_id text NOT NULL,
  CONSTRAINT memory_vectors_pkey PRIMARY KEY (tenant, memory_id),
  CONSTRAINT memory_vectors_tenant_memory_id_fkey FOREIGN KEY (tenant, memory_id) REFERENCES memories(tenant, memory_id) ON DELETE CASCADE
);
CREATE INDEX memory_vectors_searched ON mason.memory_vectors USING btree (tenant, user_id, space);
ALTER TABLE memory_vectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_vectors FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON memory_vectors TO mason_api, mason_business USING (((tenant = ( SELECT current_setting('mason.business'::text, true) AS current_setting)) AND ((( SELECT current_setting('mason.user'::text, true) AS current_setting) = '*'::text) OR (user_id = ( SELECT current_setting('mason.user'::text, true) AS current_setting))))) WITH CHECK (((tenant = ( SELECT current_setting('mason.business'::text, true) AS current_setting)) AND ((( SELECT current_setting('mason.user'::text, true) AS current_setting) = '*'::text) OR (user_id = ( SELECT current_setting('mason.user'::text, true) AS current_setting)))));
CREATE POLICY worker ON memory_vectors TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE memory_vectors TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE memory_vectors TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE memory_vectors TO mason_worker;

CREATE TABLE memory_words (
  number bigint NOT NULL,
  tenant text NOT NULL,
  user_id text NOT NULL,
  word bigint NOT NULL,
  CONSTRAINT memory_words_number_fkey FOREIGN KEY (number) REFERENCES memories(number) ON DELETE CASCADE,
  CONSTRAINT memory_words_pkey PRIMARY KEY (tenant, user_id, word, number)
) WITH (autovacuum_vacuum_insert_scale_factor=0.05);
CREATE INDEX memory_words_of ON mason.memory_words USING btree (number);
ALTER TABLE memory_words ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_words FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON memory_words TO mason_api, mason_business USING (((tenant = ( SELECT current_setting('mason.business'::text, true) AS current_setting)) AND ((( SELECT current_setting('mason.user'::text, true) AS current_setting) = '*'::text) OR (user_id = ( SELECT current_setting('mason.user'::text, true) AS current_setting))))) WITH CHECK (((tenant = ( SELECT current_setting('mason.business'::text, true) AS current_setting)) AND ((( SELECT current_setting('mason.user'::text, true) AS current_setting) = '*'::text) OR (user_id = ( SELECT current_setting('mason.user'::text, true) AS current_setting)))));
CREATE POLICY worker ON memory_words TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE memory_words TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE memory_words TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE memory_words TO mason_worker;

CREATE TABLE model_health (
  failures integer NOT NULL DEFAULT 0,
  for_all boolean NOT NULL DEFAULT true,
  last_error json,
  seen json NOT NULL DEFAULT '[]'::json,
  since timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  state text NOT NULL CHECK ((state = ANY (ARRAY['healthy'::text, 'cooling'::text, 'probing'::text, 'disabled'::text]))),
  subject text NOT NULL CHECK ((subject = ANY (ARRAY['endpoint'::text, 'model'::text, 'key'::text, 'key_model'::text]))),
  subject_id text NOT NULL,
  until timestamp with time zone,
  updated_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT model_health_pkey PRIMARY KEY (subject, subject_id)
) WITH (fillfactor=50);
ALTER TABLE model_health ENABLE ROW LEVEL SECURITY;
ALTER TABLE model_health FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON model_health TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON model_health TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE model_health TO mason_admin;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE model_health TO mason_worker;

CREATE TABLE models (
  capabilities text[] NOT NULL DEFAULT '{}'::text[],
  category text NOT NULL,
  context_window integer,
  continuation text NOT NULL DEFAULT 'none'::text CHECK ((continuation = ANY (ARRAY['none'::text, 'prefill'::text, 'flag'::text]))),
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  dialect text NOT NULL CHECK ((dialect = ANY (ARRAY['tools'::text, 'xml'::text]))),
  endpoint_id text NOT NULL,
  max_output integer,
  model_id text NOT NULL,
  name text NOT NULL,
  prices json,
  refuses_stop boolean NOT NULL DEFAULT false,
  response_format_id text,
  status text NOT NULL CHECK ((status = ANY (ARRAY['active'::text, 'disabled'::text]))),
  updated_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  upstream_name text NOT NULL,
  vendor_id text NOT NULL,
  version text,
  CONSTRAINT models_category_fkey FOREIGN KEY (category) REFERENCES categories(name),
  CONSTRAINT models_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES endpoints(endpoint_id),
  CONSTRAINT models_name_key UNIQUE (name),
  CONSTRAINT models_pkey PRIMARY KEY (model_id),
  CONSTRAINT models_response_format_id_fkey FOREIGN KEY (response_format_id) REFERENCES response_formats(format_id),
  CONSTRAINT models_vendor_id_fkey FOREIGN KEY (vendor_id) REFERENCES vendors(vendor_id)
);
ALTER TABLE models ENABLE ROW LEVEL SECURITY;
ALTER TABLE models FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON models TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON models TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE models TO mason_admin;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE models TO mason_worker;
CREATE TRIGGER registry_changed AFTER INSERT OR DELETE OR UPDATE ON mason.models FOR EACH STATEMENT EXECUTE FUNCTION raise_registry_version();

CREATE TABLE open_mandates (
  checkout text,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  decided_at timestamp with time zone,
  expires_at timestamp with time zone NOT NULL,
  mandate_id text NOT NULL,
  payment text,
  provider_id text NOT NULL,
  question text,
  revoked_at timestamp with time zone,
  run_id text NOT NULL,
  sealed text,
  status text NOT NULL DEFAULT 'proposed'::text CHECK ((status = ANY (ARRAY['proposed'::text, 'active'::text, 'refused'::text, 'expired'::text, 'failed'::text]))),
  tenant text NOT NULL,
  user_id text NOT NULL,
  CONSTRAINT open_mandates_check CHECK (((status = 'active'::text) = ((checkout IS NOT NULL) AND (payment IS NOT NULL)))),
  CONSTRAINT open_mandates_pkey PRIMARY KEY (mandate_id),
  CONSTRAINT open_mandates_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
);
CREATE INDEX open_mandates_of_user ON mason.open_mandates USING btree (tenant, user_id, created_at, mandate_id);
ALTER TABLE open_mandates ENABLE ROW LEVEL SECURITY;
ALTER TABLE open_mandates FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON open_mandates TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON open_mandates TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY executor ON open_mandates TO mason_payments USING (true) WITH CHECK (true);
CREATE POLICY only_the_api_delete ON open_mandates AS RESTRICTIVE FOR DELETE TO mason_worker USING (( SELECT pg_has_role(SESSION_USER, 'mason_admin'::name, 'MEMBER'::text) AS pg_has_role));
CREATE POLICY only_the_api_update ON open_mandates AS RESTRICTIVE FOR UPDATE TO mason_worker USING (( SELECT pg_has_role(SESSION_USER, 'mason_admin'::name, 'MEMBER'::text) AS pg_has_role));
CREATE POLICY worker ON open_mandates TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE ON TABLE open_mandates TO mason_admin;
GRANT SELECT ON TABLE open_mandates TO mason_payments;
GRANT DELETE ON TABLE open_mandates TO mason_worker;
GRANT INSERT (expires_at, mandate_id, provider_id, question, run_id, sealed, tenant, user_id) ON TABLE open_mandates TO mason_admin;
GRANT SELECT (created_at, decided_at, expires_at, mandate_id, provider_id, revoked_at, run_id, status, tenant, user_id) ON TABLE open_mandates TO mason_admin;
GRANT UPDATE (revoked_at) ON TABLE open_mandates TO mason_admin;
GRANT INSERT (expires_at, mandate_id, provider_id, question, run_id, sealed, tenant, user_id) ON TABLE open_mandates TO mason_api;
GRANT SELECT (created_at, decided_at, expires_at, mandate_id, provider_id, revoked_at, run_id, status, tenant, user_id) ON TABLE open_mandates TO mason_api;
GRANT INSERT (expires_at, mandate_id, provider_id, question, run_id, sealed, tenant, user_id) ON TABLE open_mandates TO mason_business;
GRANT SELECT (created_at, decided_at, expires_at, mandate_id, provider_id, revoked_at, run_id, status, tenant, user_id) ON TABLE open_mandates TO mason_business;
GRANT UPDATE (checkout, decided_at, payment, sealed, status) ON TABLE open_mandates TO mason_payments;
GRANT INSERT (expires_at, mandate_id, provider_id, question, run_id, sealed, tenant, user_id) ON TABLE open_mandates TO mason_worker;
GRANT SELECT (created_at, decided_at, expires_at, mandate_id, provider_id, revoked_at, run_id, status, tenant, user_id) ON TABLE open_mandates TO mason_worker;
GRANT UPDATE (revoked_at) ON TABLE open_mandates TO mason_worker;
CREATE TRIGGER ends BEFORE DELETE OR UPDATE OF revoked_at ON mason.open_mandates FOR EACH ROW EXECUTE FUNCTION end_open_mandate();

CREATE TABLE operators (
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  name text NOT NULL,
  operator_id text NOT NULL,
  revoked_at timestamp with time zone,
  token_hash text NOT NULL,
  CONSTRAINT operators_pkey PRIMARY KEY (operator_id),
  CONSTRAINT operators_token_hash_key UNIQUE (token_hash)
);
CREATE INDEX operators_listed ON mason.operators USING btree (created_at, operator_id) WHERE (revoked_at IS NULL);
ALTER TABLE operators ENABLE ROW LEVEL SECURITY;
ALTER TABLE operators FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON operators TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY only_the_api ON operators AS RESTRICTIVE TO mason_worker USING (( SELECT pg_has_role(SESSION_USER, 'mason_admin'::name, 'MEMBER'::text) AS pg_has_role)) WITH CHECK (( SELECT pg_has_role(SESSION_USER, 'mason_admin'::name, 'MEMBER'::text) AS pg_has_role));
CREATE POLICY worker ON operators TO mason_worker USING (true) WITH CHECK (true);
GRANT INSERT, SELECT ON TABLE operators TO mason_admin;
GRANT INSERT, SELECT ON TABLE operators TO mason_worker;
GRANT UPDATE (name, revoked_at) ON TABLE operators TO mason_admin;
GRANT UPDATE (name, revoked_at) ON TABLE operators TO mason_worker;

CREATE TABLE outbox (
  outbox_id bigint NOT NULL GENERATED AS IDENTITY (a),
  ring_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  run_id text NOT NULL,
  tenant text NOT NULL,
  CONSTRAINT outbox_pkey PRIMARY KEY (outbox_id),
  CONSTRAINT outbox_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
);
CREATE INDEX outbox_by_run ON mason.outbox USING btree (tenant, run_id);
CREATE INDEX outbox_by_time ON mason.outbox USING btree (ring_at);
ALTER TABLE outbox ENABLE ROW LEVEL SECURITY;
ALTER TABLE outbox FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON outbox FOR SELECT TO mason_admin USING (true);
CREATE POLICY business ON outbox TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON outbox TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE outbox TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE outbox TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE outbox TO mason_worker;
GRANT SELECT (outbox_id) ON TABLE outbox TO mason_admin;

CREATE TABLE passkeys (
  counter bigint NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  credential_id text NOT NULL,
  last_used_at timestamp with time zone,
  public_key bytea NOT NULL,
  tenant text NOT NULL,
  transports json NOT NULL DEFAULT '[]'::json,
  user_id text NOT NULL,
  CONSTRAINT passkeys_pkey PRIMARY KEY (credential_id),
  CONSTRAINT passkeys_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
);
CREATE INDEX passkeys_of_user ON mason.passkeys USING btree (tenant, user_id);
ALTER TABLE passkeys ENABLE ROW LEVEL SECURITY;
ALTER TABLE passkeys FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON passkeys TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY executor ON passkeys TO mason_payments USING (true) WITH CHECK (true);
CREATE POLICY only_the_api ON passkeys AS RESTRICTIVE TO mason_worker USING (( SELECT pg_has_role(SESSION_USER, 'mason_admin'::name, 'MEMBER'::text) AS pg_has_role)) WITH CHECK (( SELECT pg_has_role(SESSION_USER, 'mason_admin'::name, 'MEMBER'::text) AS pg_has_role));
CREATE POLICY worker ON passkeys TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT ON TABLE passkeys TO mason_admin;
GRANT SELECT ON TABLE passkeys TO mason_payments;
GRANT DELETE, INSERT, SELECT ON TABLE passkeys TO mason_worker;
GRANT UPDATE (counter, last_used_at) ON TABLE passkeys TO mason_payments;

CREATE TABLE payment_events (
  at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  detail json NOT NULL DEFAULT '{}'::json,
  event_id bigint NOT NULL GENERATED AS IDENTITY (a),
  kind text NOT NULL,
  payment_id text NOT NULL,
  tenant text NOT NULL,
  CONSTRAINT payment_events_pkey PRIMARY KEY (event_id)
);
CREATE INDEX payment_events_of_payment ON mason.payment_events USING btree (payment_id, event_id);
ALTER TABLE payment_events ENABLE ROW LEVEL SECURITY;
ALTER TABLE payment_events FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON payment_events FOR SELECT TO mason_api USING ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY executor ON payment_events TO mason_payments USING (true) WITH CHECK (true);
GRANT SELECT ON TABLE payment_events TO mason_api;
GRANT INSERT, SELECT ON TABLE payment_events TO mason_payments;
CREATE TRIGGER payment_events_never_change BEFORE DELETE OR UPDATE OR TRUNCATE ON mason.payment_events FOR EACH STATEMENT EXECUTE FUNCTION refuse_update();

CREATE TABLE payment_inbox (
  body bytea NOT NULL,
  done_at timestamp with time zone,
  event_id text,
  headers json NOT NULL,
  message_id bigint NOT NULL GENERATED AS IDENTITY (a),
  next_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  provider_id text NOT NULL,
  received_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  result text,
  tries integer NOT NULL DEFAULT 0,
  CONSTRAINT payment_inbox_pkey PRIMARY KEY (message_id)
);
CREATE UNIQUE INDEX payment_inbox_once ON mason.payment_inbox USING btree (provider_id, event_id);
CREATE INDEX payment_inbox_open ON mason.payment_inbox USING btree (next_at) WHERE (done_at IS NULL);
ALTER TABLE payment_inbox ENABLE ROW LEVEL SECURITY;
ALTER TABLE payment_inbox FORCE ROW LEVEL SECURITY;
CREATE POLICY executor ON payment_inbox TO mason_payments USING (true) WITH CHECK (true);
CREATE POLICY webhooks ON payment_inbox FOR INSERT TO mason_admin, mason_worker WITH CHECK (true);
GRANT INSERT, SELECT, UPDATE ON TABLE payment_inbox TO mason_payments;
GRANT INSERT (body, headers, provider_id) ON TABLE payment_inbox TO mason_admin;
GRANT INSERT (body, headers, provider_id) ON TABLE payment_inbox TO mason_worker;

CREATE TABLE payment_keys (
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  ended_at timestamp with time zone,
  kid text NOT NULL,
  master_key text NOT NULL,
  purpose text NOT NULL CHECK ((purpose = ANY (ARRAY['sealing'::text, 'signing'::text, 'agent'::text]))),
  sealed_private bytea NOT NULL,
  wrapped_key bytea NOT NULL,
  x text NOT NULL,
  y text NOT NULL,
  CONSTRAINT payment_keys_pkey PRIMARY KEY (kid)
);
CREATE UNIQUE INDEX payment_keys_in_use ON mason.payment_keys USING btree (purpose) WHERE (ended_at IS NULL);
ALTER TABLE payment_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE payment_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON payment_keys FOR SELECT TO mason_admin USING (true);
CREATE POLICY business ON payment_keys FOR SELECT TO mason_api, mason_business USING (true);
CREATE POLICY executor ON payment_keys TO mason_payments USING (true) WITH CHECK (true);
CREATE POLICY worker ON payment_keys FOR SELECT TO mason_worker USING (true);
GRANT INSERT, SELECT ON TABLE payment_keys TO mason_payments;
GRANT SELECT (created_at, ended_at, kid, purpose, x, y) ON TABLE payment_keys TO mason_admin;
GRANT SELECT (created_at, ended_at, kid, purpose, x, y) ON TABLE payment_keys TO mason_api;
GRANT SELECT (created_at, ended_at, kid, purpose, x, y) ON TABLE payment_keys TO mason_business;
GRANT UPDATE (ended_at, master_key, wrapped_key) ON TABLE payment_keys TO mason_payments;
GRANT SELECT (created_at, ended_at, kid, purpose, x, y) ON TABLE payment_keys TO mason_worker;

CREATE TABLE payment_nonces (
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamp with time zone NOT NULL,
  nonce text NOT NULL,
  payment_id text,
  tenant text NOT NULL,
  used_at timestamp with time zone,
  CONSTRAINT payment_nonces_pkey PRIMARY KEY (nonce)
);
ALTER TABLE payment_nonces ENABLE ROW LEVEL SECURITY;
ALTER TABLE payment_nonces FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON payment_nonces TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY executor ON payment_nonces TO mason_payments USING (true) WITH CHECK (true);
CREATE POLICY worker ON payment_nonces TO mason_worker USING (true) WITH CHECK (true);
GRANT INSERT, SELECT, UPDATE ON TABLE payment_nonces TO mason_payments;
GRANT INSERT (expires_at, nonce, tenant) ON TABLE payment_nonces TO mason_api;
GRANT INSERT (expires_at, nonce, tenant) ON TABLE payment_nonces TO mason_business;
GRANT INSERT (expires_at, nonce, tenant) ON TABLE payment_nonces TO mason_worker;

CREATE TABLE payment_operations (
  amount_minor bigint NOT NULL,
  answer json,
  capture boolean NOT NULL DEFAULT true,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  currency text NOT NULL,
  first_sent_at timestamp with time zone,
  kind text NOT NULL CHECK ((kind = ANY (ARRAY['authorize'::text, 'capture'::text, 'void'::text, 'refund'::text, 'answer'::text]))),
  operation_id text NOT NULL,
  order_id text NOT NULL,
  payment_id text NOT NULL,
  request bytea,
  request_hash text NOT NULL,
  sends integer NOT NULL DEFAULT 0,
  status text NOT NULL DEFAULT 'intent'::text CHECK ((status = ANY (ARRAY['intent'::text, 'sent'::text, 'done'::text, 'unknown'::text]))),
  tenant text NOT NULL,
  CONSTRAINT payment_operations_order_id_key UNIQUE (order_id),
  CONSTRAINT payment_operations_payment_id_fkey FOREIGN KEY (payment_id) REFERENCES payments(payment_id),
  CONSTRAINT payment_operations_pkey PRIMARY KEY (operation_id)
) WITH (fillfactor=70);
CREATE UNIQUE INDEX payment_operations_authorize ON mason.payment_operations USING btree (payment_id) WHERE (kind = 'authorize'::text);
CREATE INDEX payment_operations_of_payment ON mason.payment_operations USING btree (payment_id);
ALTER TABLE payment_operations ENABLE ROW LEVEL SECURITY;
ALTER TABLE payment_operations FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON payment_operations FOR SELECT TO mason_api USING ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY executor ON payment_operations TO mason_payments USING (true) WITH CHECK (true);
GRANT INSERT, SELECT, UPDATE ON TABLE payment_operations TO mason_payments;
GRANT SELECT (amount_minor, answer, created_at, currency, first_sent_at, kind, operation_id, payment_id, sends, status, tenant) ON TABLE payment_operations TO mason_api;

CREATE TABLE payment_orders (
  call_index integer,
  canceled_at timestamp with time zone,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  done_at timestamp with time zone,
  kind text NOT NULL CHECK ((kind = ANY (ARRAY['pay'::text, 'present'::text, 'capture'::text, 'void'::text, 'refund'::text, 'settle'::text, 'answer'::text]))),
  lease_until timestamp with time zone,
  next_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  open_mandate_id text,
  order_id text NOT NULL,
  outcome json,
  payment_id text NOT NULL,
  plan_seq integer,
  request json NOT NULL,
  run_id text,
  sealed text,
  sent_at timestamp with time zone,
  taken_at timestamp with time zone,
  takes integer NOT NULL DEFAULT 0,
  tenant text NOT NULL,
  CONSTRAINT payment_orders_pkey PRIMARY KEY (order_id),
  CONSTRAINT payment_orders_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
);
CREATE UNIQUE INDEX payment_orders_of_call ON mason.payment_orders USING btree (tenant, run_id, plan_seq, call_index, kind) WHERE (run_id IS NOT NULL);
CREATE INDEX payment_orders_of_open_mandate ON mason.payment_orders USING btree (open_mandate_id) WHERE (open_mandate_id IS NOT NULL);
CREATE INDEX payment_orders_of_payment ON mason.payment_orders USING btree (payment_id);
CREATE INDEX payment_orders_open ON mason.payment_orders USING btree (next_at) WHERE (done_at IS NULL);
CREATE UNIQUE INDEX payment_orders_pay ON mason.payment_orders USING btree (payment_id) WHERE (kind = 'pay'::text);
ALTER TABLE payment_orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE payment_orders FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON payment_orders TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON payment_orders TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY executor ON payment_orders TO mason_payments USING (true) WITH CHECK (true);
CREATE POLICY only_admins ON payment_orders AS RESTRICTIVE FOR INSERT TO mason_api, mason_business, mason_worker WITH CHECK (((kind = ANY (ARRAY['pay'::text, 'present'::text, 'answer'::text])) OR ( SELECT pg_has_role(SESSION_USER, 'mason_admin'::name, 'MEMBER'::text) AS pg_has_role)));
CREATE POLICY worker ON payment_orders TO mason_worker USING (true) WITH CHECK (true);
GRANT INSERT, SELECT, UPDATE ON TABLE payment_orders TO mason_payments;
GRANT INSERT (call_index, kind, open_mandate_id, order_id, payment_id, plan_seq, request, run_id, sealed, tenant) ON TABLE payment_orders TO mason_admin;
GRANT SELECT (call_index, canceled_at, created_at, done_at, kind, open_mandate_id, order_id, outcome, payment_id, plan_seq, run_id, sent_at, tenant) ON TABLE payment_orders TO mason_admin;
GRANT UPDATE (canceled_at) ON TABLE payment_orders TO mason_admin;
GRANT INSERT (call_index, kind, open_mandate_id, order_id, payment_id, plan_seq, request, run_id, sealed, tenant) ON TABLE payment_orders TO mason_api;
GRANT SELECT (call_index, canceled_at, created_at, done_at, kind, open_mandate_id, order_id, outcome, payment_id, plan_seq, run_id, sent_at, tenant) ON TABLE payment_orders TO mason_api;
GRANT UPDATE (canceled_at) ON TABLE payment_orders TO mason_api;
GRANT INSERT (call_index, kind, open_mandate_id, order_id, payment_id, plan_seq, request, run_id, sealed, tenant) ON TABLE payment_orders TO mason_business;
GRANT SELECT (call_index, canceled_at, created_at, done_at, kind, open_mandate_id, order_id, outcome, payment_id, plan_seq, run_id, sent_at, tenant) ON TABLE payment_orders TO mason_business;
GRANT UPDATE (canceled_at) ON TABLE payment_orders TO mason_business;
GRANT INSERT (call_index, kind, open_mandate_id, order_id, payment_id, plan_seq, request, run_id, sealed, tenant) ON TABLE payment_orders TO mason_worker;
GRANT SELECT (call_index, canceled_at, created_at, done_at, kind, open_mandate_id, order_id, outcome, payment_id, plan_seq, run_id, sent_at, tenant) ON TABLE payment_orders TO mason_worker;
GRANT UPDATE (canceled_at) ON TABLE payment_orders TO mason_worker;

CREATE TABLE payment_providers (
  allow_private boolean NOT NULL,
  api_key_end text,
  base_url text,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  ended_at timestamp with time zone,
  is_demo boolean NOT NULL DEFAULT false,
  is_test boolean NOT NULL,
  kind text NOT NULL CHECK ((kind = ANY (ARRAY['card'::text, 'agent'::text]))),
  name text NOT NULL,
  provider_id text NOT NULL,
  sealed_api_key text,
  sealed_webhook_secret text,
  tenants text[] CHECK ((cardinality(tenants) > 0)),
  timeout_ms integer NOT NULL CHECK ((timeout_ms > 0)),
  updated_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  webhook_secret_end text,
  window_ms integer NOT NULL CHECK ((window_ms > 0)),
  CONSTRAINT payment_providers_check CHECK ((is_test OR (NOT is_demo))),
  CONSTRAINT payment_providers_name_key UNIQUE (name),
  CONSTRAINT payment_providers_parts_check CHECK (
CASE kind
    WHEN 'card'::text THEN (num_nulls(base_url, sealed_api_key, api_key_end, sealed_webhook_secret, webhook_secret_end) = 0)
    ELSE (num_nonnulls(base_url, sealed_api_key, api_key_end, sealed_webhook_secret, webhook_secret_end) = 0)
END),
  CONSTRAINT payment_providers_pkey PRIMARY KEY (provider_id)
);
CREATE INDEX payment_providers_listed ON mason.payment_providers USING btree (created_at, provider_id);
ALTER TABLE payment_providers ENABLE ROW LEVEL SECURITY;
ALTER TABLE payment_providers FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON payment_providers TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY executor ON payment_providers FOR SELECT TO mason_payments USING (true);
CREATE POLICY only_the_api ON payment_providers AS RESTRICTIVE TO mason_worker USING (( SELECT (pg_has_role(SESSION_USER, 'mason_admin'::name, 'MEMBER'::text) OR (CURRENT_USER = ( SELECT pg_get_userbyid(pg_class.relowner) AS pg_get_userbyid
           FROM pg_class
          WHERE (pg_class.oid = ('payment_providers'::regclass)::oid)))))) WITH CHECK (( SELECT pg_has_role(SESSION_USER, 'mason_admin'::name, 'MEMBER'::text) AS pg_has_role));
CREATE POLICY worker ON payment_providers TO mason_worker USING (true) WITH CHECK (true);
GRANT INSERT ON TABLE payment_providers TO mason_admin;
GRANT SELECT ON TABLE payment_providers TO mason_payments;
GRANT INSERT ON TABLE payment_providers TO mason_worker;
GRANT SELECT (allow_private, api_key_end, base_url, created_at, ended_at, is_demo, is_test, kind, name, provider_id, tenants, timeout_ms, updated_at, webhook_secret_end, window_ms) ON TABLE payment_providers TO mason_admin;
GRANT UPDATE (allow_private, api_key_end, base_url, ended_at, name, sealed_api_key, sealed_webhook_secret, tenants, timeout_ms, updated_at, webhook_secret_end, window_ms) ON TABLE payment_providers TO mason_admin;
GRANT SELECT (allow_private, api_key_end, base_url, created_at, ended_at, is_demo, is_test, kind, name, provider_id, tenants, timeout_ms, updated_at, webhook_secret_end, window_ms) ON TABLE payment_providers TO mason_worker;
GRANT UPDATE (allow_private, api_key_end, base_url, ended_at, name, sealed_api_key, sealed_webhook_secret, tenants, timeout_ms, updated_at, webhook_secret_end, window_ms) ON TABLE payment_providers TO mason_worker;
CREATE TRIGGER registry_changed AFTER INSERT OR DELETE OR UPDATE ON mason.payment_providers FOR EACH STATEMENT EXECUTE FUNCTION raise_registry_version();

CREATE TABLE payments (
  amount_minor bigint CHECK ((amount_minor >= 0)),
  call_index integer,
  cart_id text,
  challenge json,
  checkout_hash text,
  checkout_id text,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  currency text,
  epoch integer NOT NULL DEFAULT 1,
  is_authorized boolean NOT NULL DEFAULT false,
  lease_until timestamp with time zone,
  mandate_hash text,
  mandate_key text,
  network_ref text,
  next_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  open_mandate_id text,
  order_id text NOT NULL,
  outcome json,
  payee json,
  payee_issuer text,
  payment_id text NOT NULL,
  plan_seq integer,
  provider_id text,
  provider_ref text,
  receipt text,
  refunded_minor bigint NOT NULL DEFAULT 0 CHECK ((refunded_minor >= 0)),
  run_id text,
  skipped_checks json,
  spend_id text,
  status text NOT NULL CHECK ((status = ANY (ARRAY['reserved'::text, 'sent'::text, 'succeeded'::text, 'declined'::text, 'unknown'::text, 'released'::text]))),
  tenant text NOT NULL,
  tries integer NOT NULL DEFAULT 0,
  updated_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  version text,
  CONSTRAINT payments_pkey PRIMARY KEY (payment_id),
  CONSTRAINT payments_refunds CHECK ((refunded_minor <= amount_minor)),
  CONSTRAINT payments_spend_id_fkey FOREIGN KEY (spend_id) REFERENCES mandate_spend(spend_id),
  CONSTRAINT payments_whole CHECK (((status = ANY (ARRAY['declined'::text, 'released'::text])) OR ((mandate_key IS NOT NULL) AND (mandate_hash IS NOT NULL) AND (spend_id IS NOT NULL) AND (amount_minor IS NOT NULL) AND (payee_issuer IS NOT NULL) AND (checkout_id IS NOT NULL))))
) WITH (fillfactor=50);
CREATE INDEX payments_listed ON mason.payments USING btree (tenant, created_at, payment_id);
CREATE INDEX payments_of_open_mandate ON mason.payments USING btree (open_mandate_id) WHERE (open_mandate_id IS NOT NULL);
CREATE INDEX payments_of_run ON mason.payments USING btree (tenant, run_id);
CREATE INDEX payments_of_spend ON mason.payments USING btree (spend_id);
CREATE UNIQUE INDEX payments_once ON mason.payments USING btree (mandate_key, mandate_hash);
CREATE UNIQUE INDEX payments_one_closed ON mason.payments USING btree (open_mandate_id) WHERE ((open_mandate_id IS NOT NULL) AND (status = ANY (ARRAY['reserved'::text, 'sent'::text, 'unknown'::text])));
CREATE UNIQUE INDEX payments_one_live ON mason.payments USING btree (payee_issuer, checkout_id) WHERE (status = ANY (ARRAY['reserved'::text, 'sent'::text, 'succeeded'::text, 'unknown'::text]));
CREATE UNIQUE INDEX payments_one_live_cart ON mason.payments USING btree (payee_issuer, cart_id) WHERE ((cart_id IS NOT NULL) AND (status = ANY (ARRAY['reserved'::text, 'sent'::text, 'succeeded'::text, 'unknown'::text])));
CREATE INDEX payments_open ON mason.payments USING btree (next_at) WHERE (status = ANY (ARRAY['reserved'::text, 'sent'::text, 'unknown'::text]));
ALTER TABLE payments ENABLE ROW LEVEL SECURITY;
ALTER TABLE payments FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON payments TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON payments TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY executor ON payments TO mason_payments USING (true) WITH CHECK (true);
CREATE POLICY worker ON payments TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT ON TABLE payments TO mason_api;
GRANT SELECT ON TABLE payments TO mason_business;
GRANT INSERT, SELECT, UPDATE ON TABLE payments TO mason_payments;
GRANT SELECT ON TABLE payments TO mason_worker;
GRANT SELECT (amount_minor, created_at, currency, open_mandate_id, payment_id, provider_id, provider_ref, refunded_minor, status, tenant, updated_at) ON TABLE payments TO mason_admin;

CREATE TABLE prepared_files (
  blobs text[] NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  found json NOT NULL,
  opened_as text NOT NULL,
  sha256 text NOT NULL,
  tenant text NOT NULL,
  CONSTRAINT prepared_files_pkey PRIMARY KEY (tenant, sha256, opened_as),
  CONSTRAINT prepared_files_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
);
CREATE INDEX prepared_files_by_age ON mason.prepared_files USING btree (created_at);
ALTER TABLE prepared_files ENABLE ROW LEVEL SECURITY;
ALTER TABLE prepared_files FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON prepared_files TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON prepared_files TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE prepared_files TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE prepared_files TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE prepared_files TO mason_worker;

CREATE TABLE recovered_jobs (
  attempts integer NOT NULL DEFAULT 1,
  counted_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  job_id text NOT NULL,
  CONSTRAINT recovered_jobs_pkey PRIMARY KEY (job_id)
);
ALTER TABLE recovered_jobs ENABLE ROW LEVEL SECURITY;
ALTER TABLE recovered_jobs FORCE ROW LEVEL SECURITY;
CREATE POLICY worker ON recovered_jobs TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE recovered_jobs TO mason_worker;

CREATE TABLE registry_version (
  single boolean NOT NULL DEFAULT true CHECK (single),
  version bigint NOT NULL,
  CONSTRAINT registry_version_pkey PRIMARY KEY (single)
) WITH (fillfactor=50);
ALTER TABLE registry_version ENABLE ROW LEVEL SECURITY;
ALTER TABLE registry_version FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON registry_version TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON registry_version TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE registry_version TO mason_admin;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE registry_version TO mason_worker;

CREATE TABLE rejected_jobs (
  data json NOT NULL,
  data_hash text NOT NULL DEFAULT ''::text,
  faults json NOT NULL,
  job_id text NOT NULL,
  may_pass boolean NOT NULL DEFAULT false,
  received_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  rejected_id bigint NOT NULL GENERATED AS IDENTITY (a),
  run_id text,
  tenant text,
  CONSTRAINT rejected_jobs_pkey PRIMARY KEY (rejected_id)
);
CREATE INDEX rejected_jobs_by_age ON mason.rejected_jobs USING btree (received_at);
CREATE UNIQUE INDEX rejected_jobs_by_content ON mason.rejected_jobs USING btree (job_id, data_hash);
ALTER TABLE rejected_jobs ENABLE ROW LEVEL SECURITY;
ALTER TABLE rejected_jobs FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON rejected_jobs TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON rejected_jobs TO mason_api, mason_business USING ((COALESCE(tenant, '_none'::text) = current_setting('mason.business'::text, true))) WITH CHECK ((COALESCE(tenant, '_none'::text) = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON rejected_jobs TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE ON TABLE rejected_jobs TO mason_admin;
GRANT SELECT ON TABLE rejected_jobs TO mason_api;
GRANT SELECT ON TABLE rejected_jobs TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE rejected_jobs TO mason_worker;
GRANT SELECT (faults, job_id, received_at, rejected_id, run_id, tenant) ON TABLE rejected_jobs TO mason_admin;
GRANT UPDATE (run_id) ON TABLE rejected_jobs TO mason_admin;

CREATE TABLE remote_agents (
  agent_id text NOT NULL,
  allow_private boolean NOT NULL,
  card json NOT NULL,
  card_url text NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  headers json NOT NULL,
  issuer text,
  name text NOT NULL,
  roles json NOT NULL,
  sealed_headers text,
  tenant text NOT NULL,
  updated_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT remote_agents_pkey PRIMARY KEY (agent_id),
  CONSTRAINT remote_agents_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant),
  CONSTRAINT remote_agents_tenant_name_key UNIQUE (tenant, name)
);
ALTER TABLE remote_agents ENABLE ROW LEVEL SECURITY;
ALTER TABLE remote_agents FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON remote_agents TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON remote_agents TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY executor ON remote_agents FOR SELECT TO mason_payments USING (true);
CREATE POLICY only_the_api_delete ON remote_agents AS RESTRICTIVE FOR DELETE TO mason_worker USING (( SELECT pg_has_role(SESSION_USER, 'mason_admin'::name, 'MEMBER'::text) AS pg_has_role));
CREATE POLICY only_the_api_insert ON remote_agents AS RESTRICTIVE FOR INSERT TO mason_worker WITH CHECK (( SELECT pg_has_role(SESSION_USER, 'mason_admin'::name, 'MEMBER'::text) AS pg_has_role));
CREATE POLICY only_the_api_update ON remote_agents AS RESTRICTIVE FOR UPDATE TO mason_worker USING (( SELECT pg_has_role(SESSION_USER, 'mason_admin'::name, 'MEMBER'::text) AS pg_has_role));
CREATE POLICY worker ON remote_agents TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE remote_agents TO mason_admin;
GRANT SELECT ON TABLE remote_agents TO mason_api;
GRANT SELECT ON TABLE remote_agents TO mason_business;
GRANT SELECT ON TABLE remote_agents TO mason_payments;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE remote_agents TO mason_worker;
CREATE TRIGGER registry_changed AFTER INSERT OR DELETE OR UPDATE ON mason.remote_agents FOR EACH STATEMENT EXECUTE FUNCTION raise_registry_version();

CREATE TABLE request_counts (
  minute timestamp with time zone NOT NULL,
  requests bigint NOT NULL,
  tenant text NOT NULL,
  CONSTRAINT request_counts_pkey PRIMARY KEY (tenant),
  CONSTRAINT request_counts_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
) WITH (fillfactor=50);
ALTER TABLE request_counts ENABLE ROW LEVEL SECURITY;
ALTER TABLE request_counts FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON request_counts TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON request_counts TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE request_counts TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE request_counts TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE request_counts TO mason_worker;

CREATE TABLE response_formats (
  built_in boolean NOT NULL DEFAULT false,
  category text NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  definition json NOT NULL,
  faults json NOT NULL DEFAULT '[]'::json,
  format_id text NOT NULL,
  name text NOT NULL,
  status text NOT NULL CHECK ((status = ANY (ARRAY['active'::text, 'inactive'::text]))),
  updated_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT response_formats_category_fkey FOREIGN KEY (category) REFERENCES categories(name),
  CONSTRAINT response_formats_name_key UNIQUE (name),
  CONSTRAINT response_formats_pkey PRIMARY KEY (format_id)
);
ALTER TABLE response_formats ENABLE ROW LEVEL SECURITY;
ALTER TABLE response_formats FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON response_formats TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON response_formats TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE response_formats TO mason_admin;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE response_formats TO mason_worker;
CREATE TRIGGER registry_changed AFTER INSERT OR DELETE OR UPDATE ON mason.response_formats FOR EACH STATEMENT EXECUTE FUNCTION raise_registry_version();

CREATE TABLE routes (
  category text,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  models json NOT NULL,
  role text,
  route_id text NOT NULL,
  strategy text NOT NULL CHECK ((strategy = ANY (ARRAY['priority'::text, 'weighted'::text, 'least-busy'::text, 'cheapest'::text]))),
  updated_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT routes_category_fkey FOREIGN KEY (category) REFERENCES categories(name),
  CONSTRAINT routes_category_key UNIQUE (category),
  CONSTRAINT routes_check CHECK (((role IS NULL) <> (category IS NULL))),
  CONSTRAINT routes_pkey PRIMARY KEY (route_id),
  CONSTRAINT routes_role_key UNIQUE (role)
);
ALTER TABLE routes ENABLE ROW LEVEL SECURITY;
ALTER TABLE routes FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON routes TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON routes TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE routes TO mason_admin;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE routes TO mason_worker;
CREATE TRIGGER registry_changed AFTER INSERT OR DELETE OR UPDATE ON mason.routes FOR EACH STATEMENT EXECUTE FUNCTION raise_registry_version();

CREATE TABLE run_changes (
  at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  run_id text NOT NULL,
  session_id text NOT NULL,
  status text NOT NULL,
  tenant text NOT NULL,
  xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  CONSTRAINT run_changes_tenant_run_id_fkey FOREIGN KEY (tenant, run_id) REFERENCES runs(tenant, run_id) ON DELETE CASCADE
);
CREATE INDEX run_changes_by_age ON mason.run_changes USING btree (at);
CREATE INDEX run_changes_by_transaction ON mason.run_changes USING btree (tenant, xid);
CREATE INDEX run_changes_of_run ON mason.run_changes USING btree (tenant, run_id);
ALTER TABLE run_changes ENABLE ROW LEVEL SECURITY;
ALTER TABLE run_changes FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON run_changes TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON run_changes TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE run_changes TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE run_changes TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE run_changes TO mason_worker;

CREATE TABLE run_failures (
  created_at timestamp with time zone NOT NULL,
  error text NOT NULL,
  node text,
  run_id text NOT NULL,
  tenant text NOT NULL,
  CONSTRAINT run_failures_pkey PRIMARY KEY (tenant, run_id),
  CONSTRAINT run_failures_tenant_run_id_fkey FOREIGN KEY (tenant, run_id) REFERENCES runs(tenant, run_id) ON DELETE CASCADE
);
CREATE INDEX run_failures_by_error ON mason.run_failures USING btree (tenant, error, created_at, run_id);
CREATE INDEX run_failures_by_node ON mason.run_failures USING btree (tenant, node, created_at, run_id);
ALTER TABLE run_failures ENABLE ROW LEVEL SECURITY;
ALTER TABLE run_failures FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON run_failures TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON run_failures TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE run_failures TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE run_failures TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE run_failures TO mason_worker;

CREATE TABLE run_metadata (
  created_at timestamp with time zone NOT NULL,
  entry uuid NOT NULL,
  run_id text NOT NULL,
  tenant text NOT NULL,
  CONSTRAINT run_metadata_pkey PRIMARY KEY (tenant, run_id, entry),
  CONSTRAINT run_metadata_tenant_run_id_fkey FOREIGN KEY (tenant, run_id) REFERENCES runs(tenant, run_id) ON DELETE CASCADE
);
CREATE INDEX run_metadata_by_entry ON mason.run_metadata USING btree (tenant, entry, created_at, run_id);
ALTER TABLE run_metadata ENABLE ROW LEVEL SECURITY;
ALTER TABLE run_metadata FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON run_metadata TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON run_metadata TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE run_metadata TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE run_metadata TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE run_metadata TO mason_worker;

CREATE TABLE run_models (
  created_at timestamp with time zone NOT NULL,
  model text NOT NULL,
  run_id text NOT NULL,
  tenant text NOT NULL,
  CONSTRAINT run_models_pkey PRIMARY KEY (tenant, run_id, model),
  CONSTRAINT run_models_tenant_run_id_fkey FOREIGN KEY (tenant, run_id) REFERENCES runs(tenant, run_id) ON DELETE CASCADE
);
CREATE INDEX run_models_by_model ON mason.run_models USING btree (tenant, model, created_at, run_id);
ALTER TABLE run_models ENABLE ROW LEVEL SECURITY;
ALTER TABLE run_models FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON run_models TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON run_models TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON run_models TO mason_worker USING (true) WITH CHECK (true);
GRANT INSERT, SELECT ON TABLE run_models TO mason_admin;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE run_models TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE run_models TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE run_models TO mason_worker;

CREATE TABLE run_outages (
  reason json NOT NULL,
  record json NOT NULL,
  run_id text NOT NULL,
  seq integer NOT NULL,
  tenant text NOT NULL,
  tries integer NOT NULL,
  CONSTRAINT run_outages_pkey PRIMARY KEY (tenant, run_id),
  CONSTRAINT run_outages_tenant_run_id_fkey FOREIGN KEY (tenant, run_id) REFERENCES runs(tenant, run_id) ON DELETE CASCADE
);
ALTER TABLE run_outages ENABLE ROW LEVEL SECURITY;
ALTER TABLE run_outages FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON run_outages TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON run_outages TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE run_outages TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE run_outages TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE run_outages TO mason_worker;

CREATE TABLE run_requests (
  idempotency_key text,
  metadata json NOT NULL,
  request json NOT NULL,
  retry_of text,
  run_id text NOT NULL,
  tenant text NOT NULL,
  token_id text,
  user_id text NOT NULL,
  webhook_url text,
  CONSTRAINT run_requests_pkey PRIMARY KEY (tenant, run_id),
  CONSTRAINT run_requests_tenant_run_id_fkey FOREIGN KEY (tenant, run_id) REFERENCES runs(tenant, run_id) ON DELETE CASCADE
);
CREATE INDEX run_requests_by_key ON mason.run_requests USING btree (tenant, idempotency_key) WHERE (idempotency_key IS NOT NULL);
ALTER TABLE run_requests ENABLE ROW LEVEL SECURITY;
ALTER TABLE run_requests FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON run_requests FOR SELECT TO mason_admin USING (true);
CREATE POLICY business ON run_requests TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON run_requests TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE run_requests TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE run_requests TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE run_requests TO mason_worker;
GRANT SELECT (run_id, tenant, token_id) ON TABLE run_requests TO mason_admin;

CREATE TABLE run_results (
  result json NOT NULL,
  run_id text NOT NULL,
  tenant text NOT NULL,
  CONSTRAINT run_results_pkey PRIMARY KEY (tenant, run_id),
  CONSTRAINT run_results_tenant_run_id_fkey FOREIGN KEY (tenant, run_id) REFERENCES runs(tenant, run_id) ON DELETE CASCADE
);
ALTER TABLE run_results ENABLE ROW LEVEL SECURITY;
ALTER TABLE run_results FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON run_results TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON run_results TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE run_results TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE run_results TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE run_results TO mason_worker;

CREATE TABLE run_words (
  created_at timestamp with time zone NOT NULL,
  run_id text NOT NULL,
  tenant text NOT NULL,
  word bigint NOT NULL,
  CONSTRAINT run_words_pkey PRIMARY KEY (tenant, run_id, word),
  CONSTRAINT run_words_tenant_run_id_fkey FOREIGN KEY (tenant, run_id) REFERENCES runs(tenant, run_id) ON DELETE CASCADE
);
CREATE INDEX run_words_by_word ON mason.run_words USING btree (tenant, word, created_at, run_id);
ALTER TABLE run_words ENABLE ROW LEVEL SECURITY;
ALTER TABLE run_words FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON run_words TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON run_words TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE run_words TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE run_words TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE run_words TO mason_worker;

CREATE TABLE runs (
  cancel_reason json,
  cancel_requested_at timestamp with time zone,
  completion_tokens bigint NOT NULL DEFAULT 0,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  ended_at timestamp with time zone,
  epoch integer NOT NULL DEFAULT 0,
  expires_at timestamp with time zone NOT NULL,
  finish_reason text,
  first_seq integer,
  graph_version text,
  lease_owner text,
  lease_until timestamp with time zone,
  next_seq integer,
  parent_run_id text,
  priority integer NOT NULL DEFAULT 0,
  prompt_tokens bigint NOT NULL DEFAULT 0,
  run_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  run_id text NOT NULL,
  session_id text NOT NULL,
  stalls integer NOT NULL DEFAULT 0,
  started_at timestamp with time zone,
  status text NOT NULL CHECK ((status = ANY (ARRAY['queued'::text, 'running'::text, 'input_required'::text, 'waiting'::text, 'completed'::text, 'failed'::text, 'cancelled'::text]))),
  tenant text NOT NULL,
  total_tokens bigint NOT NULL DEFAULT 0,
  turn integer NOT NULL,
  worked_ms bigint NOT NULL DEFAULT 0,
  CONSTRAINT runs_pkey PRIMARY KEY (tenant, run_id),
  CONSTRAINT runs_tenant_session_id_fkey FOREIGN KEY (tenant, session_id) REFERENCES sessions(tenant, session_id) ON DELETE CASCADE,
  CONSTRAINT runs_tenant_session_id_turn_key UNIQUE (tenant, session_id, turn)
) WITH (fillfactor=50);
CREATE UNIQUE INDEX runs_by_id ON mason.runs USING btree (run_id) WHERE (run_id ~~ 'run\_%'::text);
CREATE INDEX runs_listed ON mason.runs USING btree (tenant, created_at, run_id);
CREATE INDEX runs_not_ended ON mason.runs USING btree (tenant, session_id, turn) WHERE (status = ANY (ARRAY['queued'::text, 'running'::text, 'input_required'::text, 'waiting'::text]));
CREATE INDEX runs_open ON mason.runs USING btree (tenant, priority DESC, run_at, run_id) WHERE (status = ANY (ARRAY['queued'::text, 'running'::text]));
ALTER TABLE runs ENABLE ROW LEVEL SECURITY;
ALTER TABLE runs FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON runs FOR SELECT TO mason_admin USING (true);
CREATE POLICY business ON runs TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON runs TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE runs TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE runs TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE runs TO mason_worker;
GRANT SELECT (created_at, ended_at, lease_until, run_at, run_id, session_id, status, tenant, turn) ON TABLE runs TO mason_admin;
CREATE TRIGGER run_completed AFTER UPDATE OF status ON mason.runs FOR EACH ROW WHEN (((new.status = 'completed'::text) AND (old.status = 'running'::text))) EXECUTE FUNCTION queue_distillation();
CREATE TRIGGER run_has_changed AFTER UPDATE OF status ON mason.runs FOR EACH ROW WHEN ((new.status IS DISTINCT FROM old.status)) EXECUTE FUNCTION note_changed_run();
CREATE TRIGGER runs_are_new AFTER INSERT ON mason.runs REFERENCING NEW TABLE AS made FOR EACH STATEMENT EXECUTE FUNCTION note_new_runs();
CREATE TRIGGER webhook_of_status AFTER UPDATE OF status ON mason.runs FOR EACH ROW WHEN (((new.status IS DISTINCT FROM old.status) AND (new.status = ANY (ARRAY['completed'::text, 'failed'::text, 'cancelled'::text, 'input_required'::text])))) EXECUTE FUNCTION queue_webhook();

CREATE TABLE scenarios (
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  description text NOT NULL DEFAULT ''::text,
  examples text[] NOT NULL DEFAULT '{}'::text[],
  limits json NOT NULL DEFAULT '{}'::json,
  models json NOT NULL DEFAULT '{}'::json,
  name text NOT NULL,
  output_tool text,
  prompts json NOT NULL DEFAULT '{}'::json,
  rules text[] NOT NULL DEFAULT '{}'::text[],
  scenario_id text NOT NULL,
  status text NOT NULL CHECK ((status = ANY (ARRAY['active'::text, 'disabled'::text]))),
  tools text[],
  updated_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT scenarios_name_key UNIQUE (name),
  CONSTRAINT scenarios_pkey PRIMARY KEY (scenario_id)
);
ALTER TABLE scenarios ENABLE ROW LEVEL SECURITY;
ALTER TABLE scenarios FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON scenarios TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON scenarios TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE scenarios TO mason_admin;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE scenarios TO mason_worker;
CREATE TRIGGER registry_changed AFTER INSERT OR DELETE OR UPDATE ON mason.scenarios FOR EACH STATEMENT EXECUTE FUNCTION raise_registry_version();

CREATE TABLE schedules (
  at timestamp with time zone,
  catch_up text NOT NULL CHECK ((catch_up = ANY (ARRAY['none'::text, 'last'::text, 'all'::text]))),
  claims integer NOT NULL DEFAULT 0,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  cron text,
  last_error json,
  last_planned_at timestamp with time zone,
  last_run_id text,
  name text NOT NULL,
  next_at timestamp with time zone,
  request json NOT NULL,
  schedule_id text NOT NULL,
  status text NOT NULL DEFAULT 'active'::text CHECK ((status = ANY (ARRAY['active'::text, 'paused'::text, 'ended'::text]))),
  tenant text NOT NULL,
  time_zone text NOT NULL,
  try_at timestamp with time zone,
  updated_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT schedules_check CHECK (((cron IS NULL) <> (at IS NULL))),
  CONSTRAINT schedules_check1 CHECK (((status = 'active'::text) = ((next_at IS NOT NULL) AND (try_at IS NOT NULL)))),
  CONSTRAINT schedules_pkey PRIMARY KEY (tenant, schedule_id),
  CONSTRAINT schedules_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
);
CREATE INDEX schedules_due ON mason.schedules USING btree (tenant, try_at) WHERE (status = 'active'::text);
CREATE INDEX schedules_listed ON mason.schedules USING btree (tenant, created_at, schedule_id);
ALTER TABLE schedules ENABLE ROW LEVEL SECURITY;
ALTER TABLE schedules FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON schedules TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON schedules TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE schedules TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE schedules TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE schedules TO mason_worker;

CREATE TABLE sessions (
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  session_id text NOT NULL,
  summary text NOT NULL DEFAULT ''::text,
  summary_turn integer NOT NULL DEFAULT 0,
  tenant text NOT NULL,
  turns integer NOT NULL DEFAULT 0,
  updated_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  user_id text NOT NULL,
  CONSTRAINT sessions_pkey PRIMARY KEY (tenant, session_id),
  CONSTRAINT sessions_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
);
CREATE INDEX sessions_by_user ON mason.sessions USING btree (tenant, user_id, created_at, session_id);
ALTER TABLE sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE sessions FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON sessions FOR SELECT TO mason_admin USING (true);
CREATE POLICY business ON sessions TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON sessions TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE sessions TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE sessions TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE sessions TO mason_worker;
GRANT SELECT (session_id, tenant, turns) ON TABLE sessions TO mason_admin;
CREATE TRIGGER end_held_jobs AFTER DELETE ON mason.sessions FOR EACH ROW EXECUTE FUNCTION end_held_jobs();

CREATE TABLE spending (
  cost_micro bigint NOT NULL,
  currency text NOT NULL,
  day date NOT NULL,
  subject text NOT NULL,
  tenant text NOT NULL,
  CONSTRAINT spending_pkey PRIMARY KEY (tenant, subject, currency, day)
) WITH (fillfactor=50);
ALTER TABLE spending ENABLE ROW LEVEL SECURITY;
ALTER TABLE spending FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON spending TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON spending TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON spending TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE spending TO mason_admin;
GRANT SELECT ON TABLE spending TO mason_api;
GRANT SELECT ON TABLE spending TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE spending TO mason_worker;

CREATE TABLE tokens (
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  label text NOT NULL,
  revoked_at timestamp with time zone,
  roles text[] NOT NULL,
  tenant text NOT NULL,
  token_hash text NOT NULL,
  token_id text NOT NULL,
  CONSTRAINT tokens_pkey PRIMARY KEY (tenant, token_id),
  CONSTRAINT tokens_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant),
  CONSTRAINT tokens_token_hash_key UNIQUE (token_hash)
);
CREATE INDEX tokens_by_id ON mason.tokens USING btree (token_id);
ALTER TABLE tokens ENABLE ROW LEVEL SECURITY;
ALTER TABLE tokens FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON tokens TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON tokens TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY only_the_api ON tokens AS RESTRICTIVE TO mason_worker USING (( SELECT pg_has_role(SESSION_USER, 'mason_api'::name, 'MEMBER'::text) AS pg_has_role)) WITH CHECK (( SELECT pg_has_role(SESSION_USER, 'mason_api'::name, 'MEMBER'::text) AS pg_has_role));
CREATE POLICY worker ON tokens TO mason_worker USING (true) WITH CHECK (true);
GRANT INSERT, SELECT, UPDATE ON TABLE tokens TO mason_admin;
GRANT SELECT ON TABLE tokens TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE tokens TO mason_worker;

CREATE TABLE trusted_keys (
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  issuer text NOT NULL,
  key_id text NOT NULL,
  kid text NOT NULL,
  revoked_at timestamp with time zone,
  roles text[] NOT NULL CHECK ((cardinality(roles) > 0)),
  tenant text,
  valid_from timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  valid_to timestamp with time zone,
  x text NOT NULL,
  y text NOT NULL,
  CONSTRAINT trusted_keys_pkey PRIMARY KEY (key_id),
  CONSTRAINT trusted_keys_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
);
CREATE INDEX trusted_keys_listed ON mason.trusted_keys USING btree (created_at, key_id);
CREATE UNIQUE INDEX trusted_keys_named ON mason.trusted_keys USING btree (kid, issuer, COALESCE(tenant, ''::text));
CREATE INDEX trusted_keys_of_issuer ON mason.trusted_keys USING btree (issuer);
CREATE INDEX trusted_keys_of_point ON mason.trusted_keys USING btree (x);
ALTER TABLE trusted_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE trusted_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON trusted_keys TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON trusted_keys FOR SELECT TO mason_api, mason_business USING (((tenant IS NULL) OR (tenant = current_setting('mason.business'::text, true))));
CREATE POLICY executor ON trusted_keys FOR SELECT TO mason_payments USING (true);
CREATE POLICY only_the_api ON trusted_keys AS RESTRICTIVE TO mason_worker USING (true) WITH CHECK (( SELECT pg_has_role(SESSION_USER, 'mason_admin'::name, 'MEMBER'::text) AS pg_has_role));
CREATE POLICY worker ON trusted_keys TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT ON TABLE trusted_keys TO mason_admin;
GRANT SELECT ON TABLE trusted_keys TO mason_api;
GRANT SELECT ON TABLE trusted_keys TO mason_business;
GRANT SELECT ON TABLE trusted_keys TO mason_payments;
GRANT SELECT ON TABLE trusted_keys TO mason_worker;
GRANT INSERT (issuer, key_id, kid, roles, tenant, valid_from, valid_to, x, y) ON TABLE trusted_keys TO mason_admin;
GRANT UPDATE (revoked_at, valid_to) ON TABLE trusted_keys TO mason_admin;
GRANT INSERT (issuer, key_id, kid, roles, tenant, valid_from, valid_to, x, y) ON TABLE trusted_keys TO mason_worker;
GRANT UPDATE (revoked_at, valid_to) ON TABLE trusted_keys TO mason_worker;
CREATE TRIGGER trusted_keys_end BEFORE UPDATE ON mason.trusted_keys FOR EACH ROW EXECUTE FUNCTION end_trusted_key();
CREATE TRIGGER trusted_keys_stay BEFORE DELETE OR TRUNCATE ON mason.trusted_keys FOR EACH STATEMENT EXECUTE FUNCTION refuse_update();

CREATE TABLE turn_cutoffs (
  said_before timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  tenant text NOT NULL,
  user_id text NOT NULL,
  CONSTRAINT turn_cutoffs_pkey PRIMARY KEY (tenant, user_id),
  CONSTRAINT turn_cutoffs_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant) ON DELETE CASCADE
);
ALTER TABLE turn_cutoffs ENABLE ROW LEVEL SECURITY;
ALTER TABLE turn_cutoffs FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON turn_cutoffs TO mason_api, mason_business USING (((tenant = ( SELECT current_setting('mason.business'::text, true) AS current_setting)) AND ((( SELECT current_setting('mason.user'::text, true) AS current_setting) = '*'::text) OR (user_id = ( SELECT current_setting('mason.user'::text, true) AS current_setting))))) WITH CHECK (((tenant = ( SELECT current_setting('mason.business'::text, true) AS current_setting)) AND ((( SELECT current_setting('mason.user'::text, true) AS current_setting) = '*'::text) OR (user_id = ( SELECT current_setting('mason.user'::text, true) AS current_setting)))));
CREATE POLICY worker ON turn_cutoffs TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE turn_cutoffs TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE turn_cutoffs TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE turn_cutoffs TO mason_worker;

CREATE TABLE turn_vectors (
  embedding halfvec NOT NULL STORAGE p,
  number bigint NOT NULL,
  said_at timestamp with time zone NOT NULL,
  session_id text NOT NULL,
  space text NOT NULL,
  tenant text NOT NULL,
  user_id text NOT NULL,
  CONSTRAINT turn_vectors_number_fkey FOREIGN KEY (number) REFERENCES turns(number) ON DELETE CASCADE,
  CONSTRAINT turn_vectors_pkey PRIMARY KEY (number)
);
CREATE INDEX turn_vectors_searched ON mason.turn_vectors USING btree (tenant, user_id, space);
ALTER TABLE turn_vectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE turn_vectors FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON turn_vectors TO mason_api, mason_business USING (((tenant = ( SELECT current_setting('mason.business'::text, true) AS current_setting)) AND ((( SELECT current_setting('mason.user'::text, true) AS current_setting) = '*'::text) OR (user_id = ( SELECT current_setting('mason.user'::text, true) AS current_setting))))) WITH CHECK (((tenant = ( SELECT current_setting('mason.business'::text, true) AS current_setting)) AND ((( SELECT current_setting('mason.user'::text, true) AS current_setting) = '*'::text) OR (user_id = ( SELECT current_setting('mason.user'::text, true) AS current_setting)))));
CREATE POLICY worker ON turn_vectors TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE turn_vectors TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE turn_vectors TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE turn_vectors TO mason_worker;

CREATE TABLE turn_words (
  number bigint NOT NULL,
  tenant text NOT NULL,
  user_id text NOT NULL,
  word bigint NOT NULL,
  CONSTRAINT turn_words_number_fkey FOREIGN KEY (number) REFERENCES turns(number) ON DELETE CASCADE,
  CONSTRAINT turn_words_pkey PRIMARY KEY (tenant, user_id, word, number)
);
CREATE INDEX turn_words_of ON mason.turn_words USING btree (number);
ALTER TABLE turn_words ENABLE ROW LEVEL SECURITY;
ALTER TABLE turn_words FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON turn_words TO mason_api, mason_business USING (((tenant = ( SELECT current_setting('mason.business'::text, true) AS current_setting)) AND ((( SELECT current_setting('mason.user'::text, true) AS current_setting) = '*'::text) OR (user_id = ( SELECT current_setting('mason.user'::text, true) AS current_setting))))) WITH CHECK (((tenant = ( SELECT current_setting('mason.business'::text, true) AS current_setting)) AND ((( SELECT current_setting('mason.user'::text, true) AS current_setting) = '*'::text) OR (user_id = ( SELECT current_setting('mason.user'::text, true) AS current_setting)))));
CREATE POLICY worker ON turn_words TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE turn_words TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE turn_words TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE turn_words TO mason_worker;

CREATE TABLE turns (
  content text NOT NULL,
  last_turn integer NOT NULL,
  number bigint NOT NULL DEFAULT nextval('turn_numbers'::regclass),
  said_at timestamp with time zone NOT NULL,
  session_id text NOT NULL,
  signature bit varying,
  space text NOT NULL DEFAULT ''::text,
  tenant text NOT NULL,
  turn integer NOT NULL,
  user_id text NOT NULL,
  words tsvector NOT NULL,
  CONSTRAINT turns_number_key UNIQUE (number),
  CONSTRAINT turns_pkey PRIMARY KEY (tenant, session_id, turn),
  CONSTRAINT turns_tenant_session_id_fkey FOREIGN KEY (tenant, session_id) REFERENCES sessions(tenant, session_id) ON DELETE CASCADE
);
CREATE INDEX turns_by_space ON mason.turns USING btree (space, tenant);
CREATE INDEX turns_near ON mason.turns USING btree (tenant, user_id, space) INCLUDE (number, signature, session_id, said_at);
CREATE INDEX turns_said ON mason.turns USING btree (tenant, user_id, said_at);
ALTER TABLE turns ENABLE ROW LEVEL SECURITY;
ALTER TABLE turns FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON turns TO mason_admin USING (true);
CREATE POLICY business ON turns TO mason_api, mason_business USING (((tenant = ( SELECT current_setting('mason.business'::text, true) AS current_setting)) AND ((( SELECT current_setting('mason.user'::text, true) AS current_setting) = '*'::text) OR (user_id = ( SELECT current_setting('mason.user'::text, true) AS current_setting))))) WITH CHECK (((tenant = ( SELECT current_setting('mason.business'::text, true) AS current_setting)) AND ((( SELECT current_setting('mason.user'::text, true) AS current_setting) = '*'::text) OR (user_id = ( SELECT current_setting('mason.user'::text, true) AS current_setting)))));
CREATE POLICY worker ON turns TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE ON TABLE turns TO mason_admin;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE turns TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE turns TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE turns TO mason_worker;
GRANT SELECT (space, tenant) ON TABLE turns TO mason_admin;
CREATE TRIGGER turn_is_read AFTER INSERT OR UPDATE OF words ON mason.turns FOR EACH ROW EXECUTE FUNCTION read_turn_words();

CREATE TABLE unread_answers (
  answer_id bigint NOT NULL GENERATED AS IDENTITY (a),
  at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  format_id text,
  model_id text NOT NULL,
  place text NOT NULL,
  raw text NOT NULL,
  CONSTRAINT unread_answers_pkey PRIMARY KEY (answer_id)
);
CREATE INDEX unread_answers_by_model ON mason.unread_answers USING btree (model_id, answer_id);
ALTER TABLE unread_answers ENABLE ROW LEVEL SECURITY;
ALTER TABLE unread_answers FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON unread_answers TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON unread_answers TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE unread_answers TO mason_admin;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE unread_answers TO mason_worker;

CREATE TABLE unread_runs (
  created_at timestamp with time zone NOT NULL,
  run_id text NOT NULL,
  tenant text NOT NULL,
  CONSTRAINT unread_runs_pkey PRIMARY KEY (tenant, run_id),
  CONSTRAINT unread_runs_tenant_run_id_fkey FOREIGN KEY (tenant, run_id) REFERENCES runs(tenant, run_id) ON DELETE CASCADE
);
CREATE INDEX unread_runs_by_time ON mason.unread_runs USING btree (created_at);
ALTER TABLE unread_runs ENABLE ROW LEVEL SECURITY;
ALTER TABLE unread_runs FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON unread_runs TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON unread_runs TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE unread_runs TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE unread_runs TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE unread_runs TO mason_worker;

CREATE TABLE usage_ledger (
  at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  cached_tokens bigint NOT NULL DEFAULT 0,
  completion_tokens bigint NOT NULL,
  cost_micro bigint NOT NULL,
  currency text NOT NULL,
  endpoint_id text NOT NULL,
  error_code text,
  estimated boolean NOT NULL DEFAULT false,
  key_id text,
  model_id text NOT NULL,
  model_name text NOT NULL,
  ms integer NOT NULL,
  prompt_tokens bigint NOT NULL,
  reasoning_tokens bigint NOT NULL DEFAULT 0,
  request_id text NOT NULL,
  role text NOT NULL,
  run_id text,
  status text NOT NULL CHECK ((status = ANY (ARRAY['succeeded'::text, 'failed'::text, 'aborted'::text, 'lost'::text]))),
  tenant text NOT NULL,
  token_id text,
  tool text,
  total_tokens bigint NOT NULL,
  upstream_name text NOT NULL,
  usage_id bigint NOT NULL GENERATED AS IDENTITY (a),
  user_id text,
  vendor_id text NOT NULL,
  visit_id text,
  CONSTRAINT usage_ledger_pkey PRIMARY KEY (usage_id),
  CONSTRAINT usage_ledger_request_id_key UNIQUE (request_id)
);
CREATE INDEX usage_ledger_by_run ON mason.usage_ledger USING btree (run_id) WHERE (run_id IS NOT NULL);
CREATE INDEX usage_ledger_by_time ON mason.usage_ledger USING btree (at);
ALTER TABLE usage_ledger ENABLE ROW LEVEL SECURITY;
ALTER TABLE usage_ledger FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON usage_ledger TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON usage_ledger TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON usage_ledger TO mason_worker USING (true) WITH CHECK (true);
GRANT INSERT, SELECT ON TABLE usage_ledger TO mason_admin;
GRANT SELECT ON TABLE usage_ledger TO mason_api;
GRANT SELECT ON TABLE usage_ledger TO mason_business;
GRANT INSERT, SELECT ON TABLE usage_ledger TO mason_worker;
CREATE TRIGGER entries_are_spent AFTER INSERT ON mason.usage_ledger REFERENCING NEW TABLE AS entered FOR EACH STATEMENT EXECUTE FUNCTION add_spending();
CREATE TRIGGER entries_have_models AFTER INSERT ON mason.usage_ledger REFERENCING NEW TABLE AS entered FOR EACH STATEMENT EXECUTE FUNCTION note_models();
CREATE TRIGGER ledger_never_changes BEFORE DELETE OR UPDATE ON mason.usage_ledger FOR EACH STATEMENT EXECUTE FUNCTION refuse_update();

CREATE TABLE usage_reservations (
  cost_micro bigint NOT NULL,
  entry json NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  key_id text,
  request_id text NOT NULL,
  reserved_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  tokens bigint NOT NULL,
  CONSTRAINT usage_reservations_pkey PRIMARY KEY (request_id)
);
CREATE INDEX usage_reservations_by_expiry ON mason.usage_reservations USING btree (expires_at);
ALTER TABLE usage_reservations ENABLE ROW LEVEL SECURITY;
ALTER TABLE usage_reservations FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON usage_reservations TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON usage_reservations TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE usage_reservations TO mason_admin;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE usage_reservations TO mason_worker;

CREATE TABLE users (
  learned json NOT NULL DEFAULT '{}'::json,
  profile json NOT NULL DEFAULT '{}'::json,
  tenant text NOT NULL,
  updated_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  user_id text NOT NULL,
  CONSTRAINT users_pkey PRIMARY KEY (tenant, user_id),
  CONSTRAINT users_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
);
ALTER TABLE users ENABLE ROW LEVEL SECURITY;
ALTER TABLE users FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON users TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON users TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON users TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE users TO mason_admin;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE users TO mason_api;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE users TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE users TO mason_worker;

CREATE TABLE vendor_keys (
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  key_id text NOT NULL,
  label text NOT NULL,
  last_four text NOT NULL,
  limits json NOT NULL DEFAULT '{}'::json,
  master_key text NOT NULL,
  sealed_secret bytea NOT NULL,
  status text NOT NULL CHECK ((status = ANY (ARRAY['active'::text, 'disabled'::text]))),
  updated_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  vendor_id text NOT NULL,
  wrapped_key bytea NOT NULL,
  CONSTRAINT vendor_keys_pkey PRIMARY KEY (key_id),
  CONSTRAINT vendor_keys_vendor_id_fkey FOREIGN KEY (vendor_id) REFERENCES vendors(vendor_id),
  CONSTRAINT vendor_keys_vendor_id_label_key UNIQUE (vendor_id, label)
);
ALTER TABLE vendor_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE vendor_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON vendor_keys TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY worker ON vendor_keys TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE vendor_keys TO mason_admin;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE vendor_keys TO mason_worker;
CREATE TRIGGER registry_changed AFTER INSERT OR DELETE OR UPDATE ON mason.vendor_keys FOR EACH STATEMENT EXECUTE FUNCTION raise_registry_version();

CREATE TABLE vendors (
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  homepage text,
  name text NOT NULL,
  status text NOT NULL CHECK ((status = ANY (ARRAY['active'::text, 'disabled'::text]))),
  updated_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  vendor_id text NOT NULL,
  CONSTRAINT vendors_name_key UNIQUE (name),
  CONSTRAINT vendors_pkey PRIMARY KEY (vendor_id)
);
ALTER TABLE vendors ENABLE ROW LEVEL SECURITY;
ALTER TABLE vendors FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON vendors TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY names ON vendors FOR SELECT TO mason_api, mason_business USING (true);
CREATE POLICY worker ON vendors TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE vendors TO mason_admin;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE vendors TO mason_worker;
GRANT SELECT (name, vendor_id) ON TABLE vendors TO mason_api;
GRANT SELECT (name, vendor_id) ON TABLE vendors TO mason_business;
CREATE TRIGGER registry_changed AFTER INSERT OR DELETE OR UPDATE ON mason.vendors FOR EACH STATEMENT EXECUTE FUNCTION raise_registry_version();

CREATE TABLE waits (
  call_index integer NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  done_at timestamp with time zone,
  due_at timestamp with time zone,
  kind text NOT NULL CHECK ((kind = ANY (ARRAY['payment'::text, 'run'::text, 'job'::text, 'effect'::text]))),
  outcome json,
  part integer NOT NULL,
  plan_seq integer NOT NULL,
  poll_at timestamp with time zone,
  ref_id text NOT NULL,
  run_id text NOT NULL,
  seen_at timestamp with time zone,
  tenant text NOT NULL,
  CONSTRAINT waits_check CHECK (((due_at IS NULL) OR (kind <> 'payment'::text))),
  CONSTRAINT waits_check1 CHECK (((poll_at IS NULL) OR (kind = 'job'::text))),
  CONSTRAINT waits_check2 CHECK (((done_at IS NULL) = (outcome IS NULL))),
  CONSTRAINT waits_pkey PRIMARY KEY (tenant, run_id, plan_seq, call_index, part),
  CONSTRAINT waits_tenant_run_id_fkey FOREIGN KEY (tenant, run_id) REFERENCES runs(tenant, run_id) ON DELETE CASCADE
) WITH (fillfactor=50);
CREATE INDEX waits_due ON mason.waits USING btree (LEAST(due_at, poll_at)) WHERE (done_at IS NULL);
CREATE INDEX waits_job ON mason.waits USING btree (ref_id) WHERE ((done_at IS NULL) AND (kind = 'job'::text));
CREATE INDEX waits_open ON mason.waits USING btree (tenant, kind, ref_id) WHERE (done_at IS NULL);
CREATE INDEX waits_unseen ON mason.waits USING btree (done_at) WHERE ((done_at IS NOT NULL) AND (seen_at IS NULL));
ALTER TABLE waits ENABLE ROW LEVEL SECURITY;
ALTER TABLE waits FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON waits TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON waits TO mason_worker USING (true) WITH CHECK (true);
GRANT INSERT, SELECT, UPDATE ON TABLE waits TO mason_api;
GRANT INSERT, SELECT, UPDATE ON TABLE waits TO mason_business;
GRANT INSERT, SELECT, UPDATE ON TABLE waits TO mason_worker;
CREATE TRIGGER webhook_of_operator AFTER INSERT ON mason.waits FOR EACH ROW WHEN ((new.kind = 'effect'::text)) EXECUTE FUNCTION queue_operator_webhook();

CREATE TABLE webhook_deliveries (
  attempts integer NOT NULL DEFAULT 0,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  due_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  ended_at timestamp with time zone,
  host text NOT NULL,
  is_gone boolean NOT NULL DEFAULT false,
  last_attempt_at timestamp with time zone,
  last_error text,
  last_status integer,
  push_id text,
  request_id text,
  run_id text,
  status text NOT NULL DEFAULT 'pending'::text CHECK ((status = ANY (ARRAY['pending'::text, 'sending'::text, 'delivered'::text, 'dead'::text]))),
  tenant text NOT NULL,
  tries integer NOT NULL DEFAULT 0,
  type text NOT NULL,
  url text NOT NULL,
  webhook_id text NOT NULL DEFAULT ('msg_'::text || replace((gen_random_uuid())::text, '-'::text, ''::text)),
  CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (webhook_id),
  CONSTRAINT webhook_deliveries_push_id_fkey FOREIGN KEY (push_id) REFERENCES agent_pushes(push_id) ON DELETE CASCADE,
  CONSTRAINT webhook_deliveries_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant),
  CONSTRAINT webhook_deliveries_tenant_run_id_fkey FOREIGN KEY (tenant, run_id) REFERENCES runs(tenant, run_id) ON DELETE CASCADE
);
CREATE INDEX webhook_deliveries_gone ON mason.webhook_deliveries USING btree (tenant, md5(url)) WHERE is_gone;
CREATE INDEX webhook_deliveries_listed ON mason.webhook_deliveries USING btree (created_at, webhook_id);
CREATE INDEX webhook_deliveries_of_run ON mason.webhook_deliveries USING btree (tenant, run_id);
CREATE INDEX webhook_deliveries_open ON mason.webhook_deliveries USING btree (tenant, host, due_at) WHERE (status = ANY (ARRAY['pending'::text, 'sending'::text]));
CREATE INDEX webhook_deliveries_pushed ON mason.webhook_deliveries USING btree (push_id) WHERE (push_id IS NOT NULL);
CREATE INDEX webhook_deliveries_sending ON mason.webhook_deliveries USING btree (tenant, host) WHERE (status = 'sending'::text);
ALTER TABLE webhook_deliveries ENABLE ROW LEVEL SECURITY;
ALTER TABLE webhook_deliveries FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON webhook_deliveries TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON webhook_deliveries TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON webhook_deliveries TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE webhook_deliveries TO mason_admin;
GRANT INSERT, SELECT ON TABLE webhook_deliveries TO mason_api;
GRANT INSERT, SELECT ON TABLE webhook_deliveries TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE webhook_deliveries TO mason_worker;

CREATE TABLE webhook_secrets (
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamp with time zone,
  last_four text NOT NULL,
  master_key text NOT NULL,
  sealed_secret bytea NOT NULL,
  secret_id text NOT NULL,
  tenant text NOT NULL,
  wrapped_key bytea NOT NULL,
  CONSTRAINT webhook_secrets_pkey PRIMARY KEY (secret_id),
  CONSTRAINT webhook_secrets_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
);
CREATE UNIQUE INDEX webhook_secrets_newest ON mason.webhook_secrets USING btree (tenant) WHERE (expires_at IS NULL);
CREATE INDEX webhook_secrets_of_business ON mason.webhook_secrets USING btree (tenant, created_at);
ALTER TABLE webhook_secrets ENABLE ROW LEVEL SECURITY;
ALTER TABLE webhook_secrets FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON webhook_secrets TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON webhook_secrets TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON webhook_secrets TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE webhook_secrets TO mason_admin;
GRANT SELECT ON TABLE webhook_secrets TO mason_api;
GRANT SELECT ON TABLE webhook_secrets TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE webhook_secrets TO mason_worker;

CREATE TABLE webhook_settings (
  allow_private boolean NOT NULL DEFAULT false,
  tenant text NOT NULL,
  updated_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  url text,
  CONSTRAINT webhook_settings_pkey PRIMARY KEY (tenant),
  CONSTRAINT webhook_settings_tenant_fkey FOREIGN KEY (tenant) REFERENCES businesses(tenant)
);
ALTER TABLE webhook_settings ENABLE ROW LEVEL SECURITY;
ALTER TABLE webhook_settings FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON webhook_settings TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON webhook_settings TO mason_api, mason_business USING ((tenant = current_setting('mason.business'::text, true))) WITH CHECK ((tenant = current_setting('mason.business'::text, true)));
CREATE POLICY worker ON webhook_settings TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE webhook_settings TO mason_admin;
GRANT SELECT ON TABLE webhook_settings TO mason_api;
GRANT SELECT ON TABLE webhook_settings TO mason_business;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE webhook_settings TO mason_worker;

CREATE TABLE workers (
  running integer NOT NULL DEFAULT 0,
  seen_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  started_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  worker_id text NOT NULL,
  CONSTRAINT workers_pkey PRIMARY KEY (worker_id)
) WITH (fillfactor=50);
ALTER TABLE workers ENABLE ROW LEVEL SECURITY;
ALTER TABLE workers FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON workers FOR SELECT TO mason_admin USING (true);
CREATE POLICY worker ON workers TO mason_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE workers TO mason_worker;
GRANT SELECT (running, seen_at, started_at, worker_id) ON TABLE workers TO mason_admin;
