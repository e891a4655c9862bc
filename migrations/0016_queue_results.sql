-- Results of queue jobs: a producer may choose the run's id, and each refused content of a job is kept.

-- Ids that producers choose are unique across businesses, as random ones are. Index entries know no business, so the one
-- whose id is taken learns nothing else.
CREATE UNIQUE INDEX runs_by_id ON runs (run_id) WHERE run_id LIKE 'run\_%';

-- The key under which a run was admitted, for longer than `idempotency` refuses another body under it.
ALTER TABLE run_requests ADD COLUMN idempotency_key text;
CREATE INDEX run_requests_by_key ON run_requests (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;

-- One id may have been refused with several contents: of two businesses, or of a queue that began to count again.
ALTER TABLE rejected_jobs DROP CONSTRAINT rejected_jobs_job_id_key,
  -- SHA-256 of `data`; empty in rows of the version before.
  ADD COLUMN data_hash text NOT NULL DEFAULT '',
  -- The run that a later submission of the job became.
  ADD COLUMN run_id text;
CREATE UNIQUE INDEX rejected_jobs_by_content ON rejected_jobs (job_id, data_hash);
