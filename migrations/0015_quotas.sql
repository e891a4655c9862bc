-- Quotas of a business; null: the default of the settings. `max_concurrency` is the fourth, and `max_queued` what was set before.
ALTER TABLE businesses
  ADD COLUMN quota_storage_bytes bigint CHECK (quota_storage_bytes > 0),
  ADD COLUMN quota_queued_runs int CHECK (quota_queued_runs > 0),
  ADD COLUMN quota_requests_per_minute int CHECK (quota_requests_per_minute > 0);

-- Requests of a business in its latest minute, of all processes.
CREATE TABLE request_counts (
  tenant text PRIMARY KEY REFERENCES businesses,
  minute timestamptz NOT NULL,
  requests bigint NOT NULL
) WITH (fillfactor = 50);

GRANT SELECT, INSERT, UPDATE, DELETE ON request_counts TO mason_worker, mason_api, mason_business;
ALTER TABLE request_counts ENABLE ROW LEVEL SECURITY;
ALTER TABLE request_counts FORCE ROW LEVEL SECURITY;
CREATE POLICY worker ON request_counts TO mason_worker USING (true) WITH CHECK (true);
CREATE POLICY business ON request_counts TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
