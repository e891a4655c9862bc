-- A function of this file reads the messages of webhooks, which a build may not have.
SET LOCAL check_function_bodies = off;

-- What a business says of itself to other agents (A2A). A business without a card serves no A2A.
CREATE TABLE agent_cards (
  tenant text PRIMARY KEY REFERENCES businesses,
  card json NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- The card in each version of the protocol as canonical JSON (RFC 8785), under the address of this server, and the signatures on it. The
  -- API writes the payload and takes the signatures away; the executor of payments, which alone has the key, adds them.
  payload json,
  signatures json
);
CREATE INDEX agent_cards_unsigned ON agent_cards (tenant) WHERE payload IS NOT NULL AND signatures IS NULL;
ALTER TABLE agent_cards ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON agent_cards TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON agent_cards TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY executor ON agent_cards TO mason_payments USING (true) WITH CHECK (true);
CREATE POLICY worker ON agent_cards TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON agent_cards TO mason_admin, mason_worker;
GRANT SELECT ON agent_cards TO mason_api, mason_business;
GRANT SELECT (payload, signatures, tenant), UPDATE (signatures) ON agent_cards TO mason_payments;

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
ALTER TABLE agent_pushes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON agent_pushes TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON agent_pushes TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON agent_pushes TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON agent_pushes TO mason_admin, mason_api, mason_business, mason_worker;

-- Messages to other agents are sent as webhooks are, where that feature is.
DO $$ BEGIN
  IF to_regclass('mason.webhook_deliveries') IS NOT NULL THEN
    ALTER TABLE webhook_deliveries ADD FOREIGN KEY (push_id) REFERENCES agent_pushes ON DELETE CASCADE;
  END IF;
END $$;

-- Agents of others that the runs of a business may call (A2A). The card is as it was when an admin added or changed the row.
CREATE TABLE remote_agents (
  agent_id text PRIMARY KEY,
  tenant text NOT NULL REFERENCES businesses,
  name text NOT NULL,
  card_url text NOT NULL,
  roles json NOT NULL,
  headers json NOT NULL,
  allow_private boolean NOT NULL,
  card json NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- `issuer`: whose trusted key signs the carts of the agent; null: the origin of its card. `sealed_headers`: its headers with their
  -- secrets, as a JWE that only the executor can open.
  issuer text,
  sealed_headers text,
  UNIQUE (tenant, name)
);
ALTER TABLE remote_agents ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON remote_agents TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON remote_agents TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY executor ON remote_agents FOR SELECT TO mason_payments USING (true);
CREATE POLICY only_the_api_delete ON remote_agents AS RESTRICTIVE FOR DELETE TO mason_worker
  USING ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')));
CREATE POLICY only_the_api_insert ON remote_agents AS RESTRICTIVE FOR INSERT TO mason_worker
  WITH CHECK ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')));
CREATE POLICY only_the_api_update ON remote_agents AS RESTRICTIVE FOR UPDATE TO mason_worker
  USING ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')));
CREATE POLICY worker ON remote_agents TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON remote_agents TO mason_admin, mason_worker;
GRANT SELECT ON remote_agents TO mason_api, mason_business, mason_payments;

-- Writes a message to every address of the task, or to one of them; of each event once.
CREATE OR REPLACE FUNCTION add_agent_pushes(p_tenant text, p_run_id text, p_type text, p_request_id text, p_push_id text) RETURNS void
LANGUAGE sql AS $$
  INSERT INTO webhook_deliveries (tenant, type, run_id, request_id, push_id, url, host)
  SELECT p.tenant, p_type, p.run_id, p_request_id, p.push_id, p.url, substring(p.url FROM '^[^/?#]+//[^/?#]+')
  FROM agent_pushes p WHERE p.tenant = p_tenant AND p.run_id = p_run_id AND (p_push_id IS NULL OR p.push_id = p_push_id)
    AND NOT EXISTS (SELECT FROM webhook_deliveries d
      WHERE d.push_id = p.push_id AND d.type = p_type AND d.request_id IS NOT DISTINCT FROM p_request_id)
$$;

