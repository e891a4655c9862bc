-- Webhooks: messages to an address of the product about ends and questions of runs.

-- The address of one run, in place of that of its business. Beside the request, since SQL does not look into JSON.
ALTER TABLE run_requests ADD COLUMN webhook_url text;

CREATE TABLE webhook_settings (
  tenant text PRIMARY KEY REFERENCES businesses,
  url text,
  -- Whether its addresses may be private ones; also those of its runs.
  allow_private boolean NOT NULL DEFAULT false,
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

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
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
);
CREATE INDEX webhook_deliveries_open ON webhook_deliveries (tenant, host, due_at) WHERE status IN ('pending', 'sending');
CREATE INDEX webhook_deliveries_sending ON webhook_deliveries (tenant, host) WHERE status = 'sending';
CREATE INDEX webhook_deliveries_gone ON webhook_deliveries (tenant, md5(url)) WHERE is_gone;
CREATE INDEX webhook_deliveries_of_run ON webhook_deliveries (tenant, run_id);
CREATE INDEX webhook_deliveries_listed ON webhook_deliveries (created_at, webhook_id);

-- A trigger, so that every way in which a run ends or asks writes its message in the same transaction, also in processes of an earlier version.
CREATE FUNCTION queue_webhook() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  address text;
  gone boolean;
BEGIN
  SELECT COALESCE(q.webhook_url, s.url) INTO address
  FROM run_requests q LEFT JOIN webhook_settings s ON s.tenant = q.tenant WHERE q.tenant = NEW.tenant AND q.run_id = NEW.run_id;
  IF address IS NULL THEN
    RETURN NULL;
  END IF;
  gone := EXISTS (SELECT FROM webhook_deliveries d
    WHERE d.tenant = NEW.tenant AND md5(d.url) = md5(address) AND d.url = address AND d.is_gone);
  INSERT INTO webhook_deliveries (tenant, type, run_id, request_id, url, host, status, last_error, ended_at)
  VALUES (NEW.tenant, 'run.' || NEW.status, NEW.run_id,
    CASE WHEN NEW.status = 'input_required' THEN (SELECT i.request_id FROM input_requests i
      WHERE i.tenant = NEW.tenant AND i.run_id = NEW.run_id AND i.answered_at IS NULL ORDER BY i.created_at DESC LIMIT 1) END,
    address, substring(address FROM '^[^/?#]+//[^/?#]+'), CASE WHEN gone THEN 'dead' ELSE 'pending' END,
    CASE WHEN gone THEN 'not sent: the address has answered 410 Gone' END, CASE WHEN gone THEN clock_timestamp() END);
  RETURN NULL;
END $$;
CREATE TRIGGER webhook_of_status AFTER UPDATE OF status ON runs FOR EACH ROW
  WHEN (NEW.status IS DISTINCT FROM OLD.status AND NEW.status IN ('completed', 'failed', 'cancelled', 'input_required'))
  EXECUTE FUNCTION queue_webhook();

GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_settings, webhook_secrets, webhook_deliveries TO mason_worker, mason_admin;
GRANT SELECT ON webhook_settings, webhook_secrets TO mason_api, mason_business;
GRANT SELECT, INSERT ON webhook_deliveries TO mason_api, mason_business;
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['webhook_settings', 'webhook_secrets', 'webhook_deliveries'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY worker ON %I TO mason_worker USING (true) WITH CHECK (true)', name);
    EXECUTE format('CREATE POLICY admin ON %I TO mason_admin USING (true) WITH CHECK (true)', name);
    EXECUTE format('CREATE POLICY business ON %I TO mason_api, mason_business USING (tenant = current_setting(''mason.business'', true))
      WITH CHECK (tenant = current_setting(''mason.business'', true))', name);
  END LOOP;
END $$;
