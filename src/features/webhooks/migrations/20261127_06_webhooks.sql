CREATE TABLE webhook_settings (
  tenant text PRIMARY KEY REFERENCES businesses,
  url text,
  -- Whether its addresses may be private ones; also those of its runs.
  allow_private boolean NOT NULL DEFAULT false,
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
ALTER TABLE webhook_settings ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON webhook_settings TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON webhook_settings TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON webhook_settings TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_settings TO mason_admin, mason_worker;
GRANT SELECT ON webhook_settings TO mason_api, mason_business;

-- What messages are signed with: the newest, and for a day the one before.
CREATE TABLE webhook_secrets (
  tenant text NOT NULL REFERENCES businesses,
  secret_id text PRIMARY KEY,
  master_key text NOT NULL,
  wrapped_key bytea NOT NULL,
  sealed_secret bytea NOT NULL,
  last_four text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Null: the newest one.
  expires_at timestamptz
);
CREATE UNIQUE INDEX webhook_secrets_newest ON webhook_secrets (tenant) WHERE expires_at IS NULL;
CREATE INDEX webhook_secrets_of_business ON webhook_secrets (tenant, created_at);
ALTER TABLE webhook_secrets ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON webhook_secrets TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON webhook_secrets TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON webhook_secrets TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_secrets TO mason_admin, mason_worker;
GRANT SELECT ON webhook_secrets TO mason_api, mason_business;

-- One message to one address. `attempts` is the fencing token: a claim raises it, and what became of the attempt names it.
CREATE TABLE webhook_deliveries (
  tenant text NOT NULL REFERENCES businesses,
  webhook_id text PRIMARY KEY DEFAULT 'msg_' || replace(gen_random_uuid()::text, '-', ''),
  type text NOT NULL,
  -- Null: a test message.
  run_id text,
  -- The question, of run.input_required.
  request_id text,
  url text NOT NULL,
  -- Scheme, host and port of the address: what is limited.
  host text NOT NULL,
  status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'sending', 'delivered', 'dead')),
  attempts int NOT NULL DEFAULT 0,
  -- Attempts since the message was written or replayed.
  tries int NOT NULL DEFAULT 0,
  -- When it is sent next; of one that is being sent, when another worker may send it again.
  due_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  last_status int,
  last_error text,
  last_attempt_at timestamptz,
  -- The address answered 410: nothing else is sent there.
  is_gone boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  ended_at timestamptz,
  -- For a message to another agent: its row of agent_pushes.
  push_id text,
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
);
CREATE INDEX webhook_deliveries_gone ON webhook_deliveries (tenant, md5(url)) WHERE is_gone;
CREATE INDEX webhook_deliveries_listed ON webhook_deliveries (created_at, webhook_id);
CREATE INDEX webhook_deliveries_of_run ON webhook_deliveries (tenant, run_id);
CREATE INDEX webhook_deliveries_open ON webhook_deliveries (tenant, host, due_at) WHERE status IN ('pending', 'sending');
CREATE INDEX webhook_deliveries_pushed ON webhook_deliveries (push_id) WHERE push_id IS NOT NULL;
CREATE INDEX webhook_deliveries_sending ON webhook_deliveries (tenant, host) WHERE status = 'sending';
ALTER TABLE webhook_deliveries ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON webhook_deliveries TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON webhook_deliveries TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON webhook_deliveries TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_deliveries TO mason_admin, mason_worker;
GRANT SELECT, INSERT ON webhook_deliveries TO mason_api, mason_business;

CREATE FUNCTION queue_operator_webhook() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM add_webhook_delivery(NEW.tenant, NEW.run_id, 'run.operator_required', NEW.ref_id);
  RETURN NULL;
END $$;

-- A question whose run is parked again, since a wait has ended meanwhile, is sent once.
CREATE FUNCTION queue_webhook() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM add_webhook_delivery(NEW.tenant, NEW.run_id, 'run.' || NEW.status,
    CASE WHEN NEW.status = 'input_required' THEN (SELECT i.request_id FROM input_requests i
      WHERE i.tenant = NEW.tenant AND i.run_id = NEW.run_id AND i.answered_at IS NULL ORDER BY i.created_at DESC LIMIT 1) END);
  RETURN NULL;
END $$;

-- Messages to other agents beside those of the webhook: a feature that has such addresses replaces it.
CREATE FUNCTION add_agent_pushes(p_tenant text, p_run_id text, p_type text, p_request_id text, p_push_id text) RETURNS void
LANGUAGE sql AS '';

-- Writes a message to the address of a run, once. An operator is needed each time, and no other agent hears of it.
CREATE FUNCTION add_webhook_delivery(p_tenant text, p_run_id text, p_type text, p_request_id text) RETURNS void
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

CREATE TRIGGER webhook_of_status AFTER UPDATE OF status ON runs FOR EACH ROW
  WHEN (NEW.status IS DISTINCT FROM OLD.status AND NEW.status IN ('completed', 'failed', 'cancelled', 'input_required'))
  EXECUTE FUNCTION queue_webhook();
CREATE TRIGGER webhook_of_operator AFTER INSERT ON waits FOR EACH ROW WHEN (NEW.kind = 'effect') EXECUTE FUNCTION queue_operator_webhook();
