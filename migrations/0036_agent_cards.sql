-- What a business says of itself to other agents (A2A). A business without a card serves no A2A.
CREATE TABLE agent_cards (
  tenant text PRIMARY KEY REFERENCES businesses,
  card json NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
GRANT SELECT, INSERT, UPDATE, DELETE ON agent_cards TO mason_worker, mason_admin;
GRANT SELECT ON agent_cards TO mason_api, mason_business;
ALTER TABLE agent_cards ENABLE ROW LEVEL SECURITY;
ALTER TABLE agent_cards FORCE ROW LEVEL SECURITY;
CREATE POLICY worker ON agent_cards TO mason_worker USING (true) WITH CHECK (true);
CREATE POLICY admin ON agent_cards TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON agent_cards TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));

-- The message that brought an answer: sent again, it answers no later question.
ALTER TABLE input_requests ADD COLUMN answer_key text;
