-- Writes a message about a run to the address of the run or its business, if there is one.
CREATE FUNCTION add_webhook_delivery(p_tenant text, p_run_id text, p_type text, p_request_id text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  address text;
  gone boolean;
BEGIN
  SELECT COALESCE(q.webhook_url, s.url) INTO address
  FROM run_requests q LEFT JOIN webhook_settings s ON s.tenant = q.tenant WHERE q.tenant = p_tenant AND q.run_id = p_run_id;
  IF address IS NULL OR EXISTS (SELECT FROM webhook_deliveries d
    WHERE d.tenant = p_tenant AND d.run_id = p_run_id AND d.request_id = p_request_id) THEN
    RETURN;
  END IF;
  gone := EXISTS (SELECT FROM webhook_deliveries d
    WHERE d.tenant = p_tenant AND md5(d.url) = md5(address) AND d.url = address AND d.is_gone);
  INSERT INTO webhook_deliveries (tenant, type, run_id, request_id, url, host, status, last_error, ended_at)
  VALUES (p_tenant, p_type, p_run_id, p_request_id, address, substring(address FROM '^[^/?#]+//[^/?#]+'),
    CASE WHEN gone THEN 'dead' ELSE 'pending' END,
    CASE WHEN gone THEN 'not sent: the address has answered 410 Gone' END, CASE WHEN gone THEN clock_timestamp() END);
END $$;

-- As in 0027: a question whose run is parked again, since a wait has ended meanwhile, is sent once.
CREATE OR REPLACE FUNCTION queue_webhook() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM add_webhook_delivery(NEW.tenant, NEW.run_id, 'run.' || NEW.status,
    CASE WHEN NEW.status = 'input_required' THEN (SELECT i.request_id FROM input_requests i
      WHERE i.tenant = NEW.tenant AND i.run_id = NEW.run_id AND i.answered_at IS NULL ORDER BY i.created_at DESC LIMIT 1) END);
  RETURN NULL;
END $$;

CREATE FUNCTION queue_consent_webhook() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM add_webhook_delivery(NEW.tenant, NEW.run_id, 'run.consent_required', NEW.payment_id);
  RETURN NULL;
END $$;
CREATE TRIGGER webhook_of_consent AFTER INSERT ON consents FOR EACH ROW WHEN (NEW.run_id IS NOT NULL)
  EXECUTE FUNCTION queue_consent_webhook();
