-- Where another agent wants to hear of a task (A2A push notifications): its token and credentials are sealed.
CREATE TABLE agent_pushes (
  tenant text NOT NULL,
  push_id text PRIMARY KEY,
  run_id text NOT NULL,
  -- The id that its client knows, unique in the task.
  config_id text NOT NULL,
  url text NOT NULL,
  protocol text NOT NULL CHECK (protocol IN ('1.0', '0.3')),
  master_key text NOT NULL,
  wrapped_key bytea NOT NULL,
  sealed_secrets bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (tenant, run_id, config_id),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
);
GRANT SELECT, INSERT, UPDATE, DELETE ON agent_pushes TO mason_worker, mason_admin, mason_api, mason_business;
ALTER TABLE agent_pushes ENABLE ROW LEVEL SECURITY;
ALTER TABLE agent_pushes FORCE ROW LEVEL SECURITY;
CREATE POLICY worker ON agent_pushes TO mason_worker USING (true) WITH CHECK (true);
CREATE POLICY admin ON agent_pushes TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON agent_pushes TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));

-- Such a message, which another agent gets beside the webhook of the run.
ALTER TABLE webhook_deliveries ADD COLUMN push_id text REFERENCES agent_pushes ON DELETE CASCADE;
CREATE INDEX webhook_deliveries_pushed ON webhook_deliveries (push_id) WHERE push_id IS NOT NULL;

-- As in 0034: pushes are messages of their own.
CREATE OR REPLACE FUNCTION add_webhook_delivery(p_tenant text, p_run_id text, p_type text, p_request_id text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  address text;
  gone boolean;
BEGIN
  PERFORM add_agent_pushes(p_tenant, p_run_id, p_type, p_request_id, NULL);
  SELECT COALESCE(q.webhook_url, s.url) INTO address
  FROM run_requests q LEFT JOIN webhook_settings s ON s.tenant = q.tenant WHERE q.tenant = p_tenant AND q.run_id = p_run_id;
  IF address IS NULL OR EXISTS (SELECT FROM webhook_deliveries d
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

-- Writes a message to every address of the task, or to one of them; of each event once.
CREATE FUNCTION add_agent_pushes(p_tenant text, p_run_id text, p_type text, p_request_id text, p_push_id text) RETURNS void
LANGUAGE sql AS $$
  INSERT INTO webhook_deliveries (tenant, type, run_id, request_id, push_id, url, host)
  SELECT p.tenant, p_type, p.run_id, p_request_id, p.push_id, p.url, substring(p.url FROM '^[^/?#]+//[^/?#]+')
  FROM agent_pushes p WHERE p.tenant = p_tenant AND p.run_id = p_run_id AND (p_push_id IS NULL OR p.push_id = p_push_id)
    AND NOT EXISTS (SELECT FROM webhook_deliveries d
      WHERE d.push_id = p.push_id AND d.type = p_type AND d.request_id IS NOT DISTINCT FROM p_request_id)
$$;
