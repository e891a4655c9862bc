-- Pushes of agents of others (A2A) name a message, and with it the wait for its task, in the path of their address.
CREATE INDEX waits_job ON waits (ref_id) WHERE done_at IS NULL AND kind = 'job';

-- Has a job polled at once; whether a run waits for it. Whoever calls it can do nothing but let a worker look.
CREATE FUNCTION poll_job_now(p_ref_id text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mason, pg_temp AS $$
BEGIN
  UPDATE waits SET poll_at = clock_timestamp()
  WHERE ref_id = p_ref_id AND kind = 'job' AND done_at IS NULL AND poll_at > clock_timestamp();
  RETURN FOUND;
END $$;
REVOKE ALL ON FUNCTION poll_job_now FROM PUBLIC;
GRANT EXECUTE ON FUNCTION poll_job_now TO mason_admin, mason_worker;
