-- Hosts that the runs of a business may call with http_request, and the secrets that only requests to them carry.
ALTER TABLE businesses ADD COLUMN http_hosts json NOT NULL DEFAULT '[]';

-- All secrets of one business: a JSON object of names and values, sealed as the secrets of vendors are.
CREATE TABLE business_secrets (
  tenant text PRIMARY KEY REFERENCES businesses,
  names text[] NOT NULL,
  master_key text NOT NULL,
  wrapped_key bytea NOT NULL,
  sealed_secrets bytea NOT NULL
);

GRANT SELECT, INSERT, UPDATE, DELETE ON business_secrets TO mason_worker, mason_admin;
GRANT SELECT ON business_secrets TO mason_api, mason_business;
ALTER TABLE business_secrets ENABLE ROW LEVEL SECURITY;
ALTER TABLE business_secrets FORCE ROW LEVEL SECURITY;
CREATE POLICY worker ON business_secrets TO mason_worker USING (true) WITH CHECK (true);
CREATE POLICY admin ON business_secrets TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON business_secrets FOR SELECT TO mason_api, mason_business USING (tenant = current_setting('mason.business', true));
