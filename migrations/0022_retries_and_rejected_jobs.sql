-- The failed run that this one repeats.
ALTER TABLE run_requests ADD COLUMN retry_of text;

-- The admin API lists and deletes rejected jobs. What a job holds is content: it is read for its business, and for `_none`,
-- which is no business, where the job names none.
GRANT SELECT (rejected_id, tenant, job_id, faults, received_at, run_id), UPDATE (run_id), DELETE ON rejected_jobs TO mason_admin;
CREATE POLICY admin ON rejected_jobs TO mason_admin USING (true) WITH CHECK (true);
ALTER POLICY business ON rejected_jobs USING (COALESCE(tenant, '_none') = current_setting('mason.business', true))
  WITH CHECK (COALESCE(tenant, '_none') = current_setting('mason.business', true));
