-- For which payment (or open mandate) the answer to a secret question is: it is encrypted for that one, its user and this question.
ALTER TABLE input_requests ADD COLUMN payment_id text;
-- The question whose answer is `sealed`, as it is encrypted for.
ALTER TABLE open_mandates ADD COLUMN question text;
GRANT INSERT (question) ON open_mandates TO mason_worker, mason_business, mason_api, mason_admin;
