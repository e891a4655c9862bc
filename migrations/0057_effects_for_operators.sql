-- A side effect that was refused, and why one was refused or is unknown.
ALTER TABLE effects ADD COLUMN error text;
ALTER TABLE effects DROP CONSTRAINT effects_status_check;
-- NOT VALID, here and below: the rows that are there hold it, as they held the narrower one.
ALTER TABLE effects ADD CONSTRAINT effects_status_check
  CHECK (status IN ('intent', 'sent', 'succeeded', 'refused', 'failed', 'unknown')) NOT VALID;
GRANT SELECT (error) ON effects TO mason_admin;

-- A call whose side effect is unknown waits for an operator. `ref_id` is the effect; `part` counts down with how often it was sent.
ALTER TABLE waits DROP CONSTRAINT waits_kind_check;
ALTER TABLE waits ADD CONSTRAINT waits_kind_check CHECK (kind IN ('payment', 'run', 'job', 'effect')) NOT VALID;

-- As in 0038. An operator is needed each time, and no other agent hears of it.
CREATE OR REPLACE FUNCTION add_webhook_delivery(p_tenant text, p_run_id text, p_type text, p_request_id text) RETURNS void
LANGUAGE plpgsql AS $$
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
END $$;

CREATE FUNCTION queue_operator_webhook() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM add_webhook_delivery(NEW.tenant, NEW.run_id, 'run.operator_required', NEW.ref_id);
  RETURN NULL;
END $$;
CREATE TRIGGER webhook_of_operator AFTER INSERT ON waits FOR EACH ROW WHEN (NEW.kind = 'effect')
  EXECUTE FUNCTION queue_operator_webhook();
