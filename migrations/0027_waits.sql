-- What a call waits for beside a person: a payment, a run or a job. The run is parked meanwhile: status `waiting`, without a lease.
ALTER TABLE runs DROP CONSTRAINT runs_status_check;
-- NOT VALID: the rows that are there hold it, as they held the narrower one.
ALTER TABLE runs ADD CONSTRAINT runs_status_check
  CHECK (status IN ('queued', 'running', 'input_required', 'waiting', 'completed', 'failed', 'cancelled')) NOT VALID;
CREATE INDEX runs_not_ended ON runs (tenant, session_id, turn) WHERE status IN ('queued', 'running', 'input_required', 'waiting');
DROP INDEX runs_unfinished;

CREATE TABLE waits (
  tenant text NOT NULL,
  run_id text NOT NULL,
  -- The call that waits: action id of the planner and index in its calls; `part` numbers the waits of one call.
  plan_seq int NOT NULL,
  call_index int NOT NULL,
  part int NOT NULL,
  kind text NOT NULL CHECK (kind IN ('payment', 'run', 'job')),
  -- The payment, run or job.
  ref_id text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- When it ends as expired. Only the executor ends a payment.
  due_at timestamptz CHECK (due_at IS NULL OR kind <> 'payment'),
  -- When a worker looks how far the job is.
  poll_at timestamptz CHECK (poll_at IS NULL OR kind = 'job'),
  done_at timestamptz,
  outcome json,
  -- When its end queued the run, or a claim read it: until then the end may have been missed.
  seen_at timestamptz,
  CHECK ((done_at IS NULL) = (outcome IS NULL)),
  PRIMARY KEY (tenant, run_id, plan_seq, call_index, part),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
) WITH (fillfactor = 50);
CREATE INDEX waits_open ON waits (tenant, kind, ref_id) WHERE done_at IS NULL;
CREATE INDEX waits_due ON waits (LEAST(due_at, poll_at)) WHERE done_at IS NULL;
CREATE INDEX waits_unseen ON waits (done_at) WHERE done_at IS NOT NULL AND seen_at IS NULL;

GRANT SELECT, INSERT, UPDATE ON waits TO mason_worker, mason_api, mason_business;
ALTER TABLE waits ENABLE ROW LEVEL SECURITY;
ALTER TABLE waits FORCE ROW LEVEL SECURITY;
CREATE POLICY worker ON waits TO mason_worker USING (true) WITH CHECK (true);
CREATE POLICY business ON waits TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));

-- Ends the waits for one thing, and queues their runs again; returns how many it ended, 0 when they had ended before. The row
-- of the run comes first, and each statement after it sees what parking has committed: with one statement on each side a
-- run waits for ever (docs/decisions/0085-both-sides-of-a-wait-lock-the-run.md). The caller wakes workers; the outbox does it later.
CREATE FUNCTION end_wait(p_tenant text, p_kind text, p_ref_id text, p_outcome json) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mason, pg_temp AS $$
DECLARE
  waiting text;
  was text;
  ended int;
  total int := 0;
BEGIN
  IF p_kind = 'payment' AND NOT pg_has_role(session_user, 'mason_payments', 'MEMBER') THEN
    RAISE EXCEPTION 'only the payment executor ends the wait for a payment' USING ERRCODE = 'insufficient_privilege';
  END IF;
  FOR waiting IN SELECT DISTINCT w.run_id FROM waits w
    WHERE w.tenant = p_tenant AND w.kind = p_kind AND w.ref_id = p_ref_id AND w.done_at IS NULL ORDER BY w.run_id
  LOOP
    SELECT r.status INTO was FROM runs r WHERE r.tenant = p_tenant AND r.run_id = waiting FOR NO KEY UPDATE;
    UPDATE waits w SET done_at = clock_timestamp(), outcome = p_outcome,
      seen_at = CASE WHEN was IN ('input_required', 'waiting') THEN clock_timestamp() END
    WHERE w.tenant = p_tenant AND w.run_id = waiting AND w.kind = p_kind AND w.ref_id = p_ref_id AND w.done_at IS NULL;
    GET DIAGNOSTICS ended = ROW_COUNT;
    total := total + ended;
    IF ended > 0 AND was IN ('input_required', 'waiting') THEN
      UPDATE runs r SET status = 'queued' WHERE r.tenant = p_tenant AND r.run_id = waiting;
      INSERT INTO outbox (tenant, run_id) VALUES (p_tenant, waiting);
    END IF;
  END LOOP;
  RETURN total;
END $$;
REVOKE ALL ON FUNCTION end_wait FROM PUBLIC;
GRANT EXECUTE ON FUNCTION end_wait TO mason_worker, mason_payments;

-- As in 0017; a question whose run is parked again, since a wait has ended meanwhile, is sent once.
CREATE OR REPLACE FUNCTION queue_webhook() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  address text;
  gone boolean;
  question text;
BEGIN
  SELECT COALESCE(q.webhook_url, s.url) INTO address
  FROM run_requests q LEFT JOIN webhook_settings s ON s.tenant = q.tenant WHERE q.tenant = NEW.tenant AND q.run_id = NEW.run_id;
  IF address IS NULL THEN
    RETURN NULL;
  END IF;
  IF NEW.status = 'input_required' THEN
    SELECT i.request_id INTO question FROM input_requests i
    WHERE i.tenant = NEW.tenant AND i.run_id = NEW.run_id AND i.answered_at IS NULL ORDER BY i.created_at DESC LIMIT 1;
    IF EXISTS (SELECT FROM webhook_deliveries d
      WHERE d.tenant = NEW.tenant AND d.run_id = NEW.run_id AND d.request_id = question) THEN
      RETURN NULL;
    END IF;
  END IF;
  gone := EXISTS (SELECT FROM webhook_deliveries d
    WHERE d.tenant = NEW.tenant AND md5(d.url) = md5(address) AND d.url = address AND d.is_gone);
  INSERT INTO webhook_deliveries (tenant, type, run_id, request_id, url, host, status, last_error, ended_at)
  VALUES (NEW.tenant, 'run.' || NEW.status, NEW.run_id, question,
    address, substring(address FROM '^[^/?#]+//[^/?#]+'), CASE WHEN gone THEN 'dead' ELSE 'pending' END,
    CASE WHEN gone THEN 'not sent: the address has answered 410 Gone' END, CASE WHEN gone THEN clock_timestamp() END);
  RETURN NULL;
END $$;
