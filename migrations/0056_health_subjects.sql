-- Models on endpoints and keys with models have a health of their own; what one business met alone closes nothing for others.
ALTER TABLE model_health DROP CONSTRAINT model_health_subject_check,
  ADD CONSTRAINT model_health_subject_check CHECK (subject IN ('endpoint', 'model', 'key', 'key_model')),
  -- the latest failures: whose, and with which model; a row of an earlier version is for all
  ADD COLUMN seen json NOT NULL DEFAULT '[]',
  ADD COLUMN for_all boolean NOT NULL DEFAULT true;
