-- The card in each version of the protocol as canonical JSON (RFC 8785), under the address of this server, and the signatures on it. The
-- API writes the payload and takes the signatures away; the executor of payments, which alone has the key, adds them.
ALTER TABLE agent_cards ADD COLUMN payload json, ADD COLUMN signatures json;
CREATE INDEX agent_cards_unsigned ON agent_cards (tenant) WHERE payload IS NOT NULL AND signatures IS NULL;
GRANT SELECT (tenant, payload, signatures), UPDATE (signatures) ON agent_cards TO mason_payments;
CREATE POLICY executor ON agent_cards TO mason_payments USING (true) WITH CHECK (true);
