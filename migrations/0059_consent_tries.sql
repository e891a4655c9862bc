-- How often the decision of a consent has thrown: the last time, it fails.
ALTER TABLE consents ADD COLUMN tries int NOT NULL DEFAULT 0;
GRANT UPDATE (tries) ON consents TO mason_payments;
