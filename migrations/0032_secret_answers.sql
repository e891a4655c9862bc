-- Questions whose answer only the executor of payments can read, such as a one-time password.
ALTER TABLE input_requests
  ADD COLUMN secret boolean NOT NULL DEFAULT false,
  -- The answer, encrypted to the executor (compact JWE). It is removed once it was ordered, or 15 minutes after it came.
  ADD COLUMN sealed text,
  -- API processes of earlier versions know of no secrets: what they would store as plain text is refused.
  ADD CHECK (CASE WHEN secret THEN COALESCE(answer->>'answer', '') = '' ELSE true END);
CREATE INDEX input_requests_sealed ON input_requests (answered_at) WHERE sealed IS NOT NULL;

-- The public halves of key pairs, for the API on behalf of a business.
GRANT SELECT (kid, purpose, x, y, created_at, ended_at) ON payment_keys TO mason_api, mason_business;
CREATE POLICY business ON payment_keys FOR SELECT TO mason_api, mason_business USING (true);
