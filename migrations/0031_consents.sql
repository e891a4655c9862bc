-- What a person is asked to sign. The API stores what came back; the executor of payments verifies it, and alone decides.
CREATE TABLE consents (
  consent_id text PRIMARY KEY,
  tenant text NOT NULL REFERENCES businesses,
  user_id text NOT NULL,
  -- No foreign key: deleting a run neither frees nor repeats what was signed for it.
  run_id text,
  -- Of the payment that the signature will be for.
  payment_id text NOT NULL UNIQUE,
  -- The bytes to sign, JSON: the page shows them, and their hash is the challenge.
  content text NOT NULL,
  nonce text NOT NULL UNIQUE,
  status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'signed', 'refused', 'expired', 'verified', 'failed')),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz NOT NULL,
  -- What the person's browser sent, as it came.
  answer json,
  answered_at timestamptz,
  -- Null until the executor has decided.
  decided_at timestamptz,
  outcome json,
  -- The mandates that the executor signed.
  issued json
);
CREATE UNIQUE INDEX consents_one_open ON consents (tenant, run_id) WHERE status = 'open';
CREATE INDEX consents_of_user ON consents (tenant, user_id, created_at);
CREATE INDEX consents_undecided ON consents (created_at) WHERE decided_at IS NULL;

ALTER TABLE consents ENABLE ROW LEVEL SECURITY;
ALTER TABLE consents FORCE ROW LEVEL SECURITY;
CREATE POLICY worker ON consents TO mason_worker USING (true) WITH CHECK (true);
CREATE POLICY admin ON consents TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY executor ON consents TO mason_payments USING (true) WITH CHECK (true);
CREATE POLICY business ON consents TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
-- Workers ask; what came back is written by the API.
CREATE POLICY only_the_api ON consents AS RESTRICTIVE FOR UPDATE TO mason_worker
  USING ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')));
GRANT SELECT (consent_id, tenant, user_id, run_id, payment_id, content, nonce, status, created_at, expires_at, answered_at, decided_at,
  outcome, issued), INSERT (consent_id, tenant, user_id, run_id, payment_id, content, nonce, expires_at)
  ON consents TO mason_worker, mason_business, mason_api, mason_admin;
GRANT UPDATE (status, answer, answered_at) ON consents TO mason_admin, mason_worker;
GRANT SELECT, UPDATE (status, answer, decided_at, outcome, issued) ON consents TO mason_payments;
