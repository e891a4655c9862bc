CREATE TABLE sessions (
  tenant text NOT NULL REFERENCES businesses,
  session_id text NOT NULL,
  user_id text NOT NULL,
  -- The last turn given out; updated under this row's lock, which orders the turns.
  turns int NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- What was said so far, and up to which turn.
  summary text NOT NULL DEFAULT '',
  summary_turn int NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant, session_id)
);
CREATE INDEX sessions_by_user ON sessions (tenant, user_id, created_at, session_id);
ALTER TABLE sessions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON sessions FOR SELECT TO mason_admin USING (true);
CREATE POLICY business ON sessions TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON sessions TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON sessions TO mason_api, mason_business, mason_worker;
GRANT SELECT (session_id, tenant, turns) ON sessions TO mason_admin;

-- Narrow: updated at every append. No index covers a column that an append or a heartbeat changes.
CREATE TABLE runs (
  tenant text NOT NULL,
  run_id text NOT NULL,
  session_id text NOT NULL,
  turn int NOT NULL,
  parent_run_id text,
  -- The graph of the worker that claimed it last.
  graph_version text,
  status text NOT NULL CHECK (status IN ('queued', 'running', 'input_required', 'waiting', 'completed', 'failed', 'cancelled')),
  finish_reason text,
  priority int NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  run_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz NOT NULL,
  started_at timestamptz,
  ended_at timestamptz,
  -- The fencing token: every claim raises it, every write names it.
  epoch int NOT NULL DEFAULT 0,
  lease_owner text,
  lease_until timestamptz,
  -- The id of its first action, and the one its next action gets; null until the first claim.
  first_seq int,
  next_seq int,
  -- Claims since the last new action.
  stalls int NOT NULL DEFAULT 0,
  cancel_requested_at timestamptz,
  cancel_reason json,
  -- Milliseconds of work so far, and tokens of this turn.
  worked_ms bigint NOT NULL DEFAULT 0,
  prompt_tokens bigint NOT NULL DEFAULT 0,
  completion_tokens bigint NOT NULL DEFAULT 0,
  total_tokens bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant, run_id),
  UNIQUE (tenant, session_id, turn),
  FOREIGN KEY (tenant, session_id) REFERENCES sessions ON DELETE CASCADE
) WITH (fillfactor = 50);
-- Ids that producers choose are unique across businesses, as random ones are. Index entries know no business, so the one
-- whose id is taken learns nothing else.
CREATE UNIQUE INDEX runs_by_id ON runs (run_id) WHERE run_id ~~ 'run\_%';
CREATE INDEX runs_listed ON runs (tenant, created_at, run_id);
CREATE INDEX runs_not_ended ON runs (tenant, session_id, turn) WHERE status IN ('queued', 'running', 'input_required', 'waiting');
CREATE INDEX runs_open ON runs (tenant, priority DESC, run_at, run_id) WHERE status IN ('queued', 'running');
ALTER TABLE runs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON runs FOR SELECT TO mason_admin USING (true);
CREATE POLICY business ON runs TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON runs TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON runs TO mason_api, mason_business, mason_worker;
GRANT SELECT (created_at, ended_at, lease_until, run_at, run_id, session_id, status, tenant, turn) ON runs TO mason_admin;

-- What was asked for and what came out: wide, written once each. Nothing is ever taken out of these documents in SQL:
-- the operators of json refuse a whole document for one NUL or lone surrogate anywhere in it.
CREATE TABLE run_requests (
  tenant text NOT NULL,
  run_id text NOT NULL,
  user_id text NOT NULL,
  request json NOT NULL,
  metadata json NOT NULL,
  -- The key under which a run was admitted, for longer than `idempotency` refuses another body under it.
  idempotency_key text,
  -- The address of one run, in place of that of its business. Beside the request, since SQL does not look into JSON.
  webhook_url text,
  -- The failed run that this one repeats.
  retry_of text,
  -- The token that submitted it, and that its calls are charged to.
  token_id text,
  PRIMARY KEY (tenant, run_id),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
);
CREATE INDEX run_requests_by_key ON run_requests (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;
ALTER TABLE run_requests ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON run_requests FOR SELECT TO mason_admin USING (true);
CREATE POLICY business ON run_requests TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON run_requests TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON run_requests TO mason_api, mason_business, mason_worker;
GRANT SELECT (run_id, tenant, token_id) ON run_requests TO mason_admin;

CREATE TABLE run_results (
  tenant text NOT NULL,
  run_id text NOT NULL,
  -- {answer, output_structure, error}
  result json NOT NULL,
  PRIMARY KEY (tenant, run_id),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
);
ALTER TABLE run_results ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON run_results TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON run_results TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON run_results TO mason_api, mason_business, mason_worker;

-- Append-only. `seq` is the action's id: 1, 2, 3 … within the session, no gaps. No foreign key: each append would
-- lock the session's row; deleting a session deletes its actions by name.
CREATE TABLE actions (
  tenant text NOT NULL,
  session_id text NOT NULL,
  seq int NOT NULL,
  run_id text NOT NULL,
  turn int NOT NULL,
  epoch int NOT NULL,
  attempt_id text NOT NULL UNIQUE,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  body json NOT NULL,
  patch json NOT NULL,
  -- Each visit of a node or tool has an id before it calls a model: its action and the entries of the ledger name it. All of
  -- these are null in rows of earlier versions, and where no worker has appended the action.
  visit_id text,
  ms int,
  worker text,
  -- The hash of the messages with which a visit first called a model; null where it called none, and in rows of earlier versions.
  prompt_sha256 bytea,
  PRIMARY KEY (tenant, session_id, seq)
);
ALTER TABLE actions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON actions FOR SELECT TO mason_admin USING (true);
CREATE POLICY business ON actions TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON actions TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, DELETE ON actions TO mason_api, mason_business, mason_worker;
GRANT SELECT (seq, session_id, tenant) ON actions TO mason_admin;

-- Questions to users. Of a secret one only the executor of payments can read the answer, such as a one-time password.
CREATE TABLE input_requests (
  tenant text NOT NULL,
  request_id text NOT NULL,
  run_id text NOT NULL,
  -- The call that asks: action id of the planner and index in its calls.
  plan_seq int NOT NULL,
  call_index int NOT NULL,
  question json NOT NULL,
  schema json NOT NULL,
  options json NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz NOT NULL,
  answered_at timestamptz,
  -- {kind: answered, answer} or {kind: expired}
  answer json,
  secret boolean NOT NULL DEFAULT false,
  -- The answer, encrypted to the executor (compact JWE). It is removed once it was ordered, or 15 minutes after it came.
  sealed text,
  -- The message that brought an answer: sent again, it answers no later question.
  answer_key text,
  -- For which payment (or open mandate) the answer to a secret question is: it is encrypted for that one, its user and this question.
  payment_id text,
  PRIMARY KEY (tenant, request_id),
  UNIQUE (tenant, run_id, plan_seq, call_index),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE,
  CONSTRAINT input_requests_check CHECK (CASE
    WHEN secret THEN (COALESCE((answer ->> 'answer'), '') = '')
    ELSE true
END)
);
CREATE INDEX input_requests_by_time ON input_requests (tenant, created_at, request_id);
CREATE INDEX input_requests_open ON input_requests (expires_at) WHERE answered_at IS NULL;
CREATE INDEX input_requests_sealed ON input_requests (answered_at) WHERE sealed IS NOT NULL;
ALTER TABLE input_requests ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON input_requests FOR SELECT TO mason_admin USING (true);
CREATE POLICY business ON input_requests TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON input_requests TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON input_requests TO mason_api, mason_business, mason_worker;
GRANT SELECT (answered_at) ON input_requests TO mason_admin;

CREATE TABLE effects (
  tenant text NOT NULL,
  effect_id text NOT NULL,
  run_id text NOT NULL,
  class text NOT NULL CHECK (class IN ('pure', 'keyed', 'queryable', 'manual')),
  request bytea NOT NULL,
  request_hash text NOT NULL,
  status text NOT NULL CHECK (status IN ('intent', 'sent', 'succeeded', 'refused', 'failed', 'unknown')),
  sends int NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  first_sent_at timestamptz,
  response json,
  -- A side effect that was refused, and why one was refused or is unknown.
  error text,
  PRIMARY KEY (tenant, effect_id),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
);
CREATE INDEX effects_unknown ON effects (created_at, effect_id) WHERE status = 'unknown';
ALTER TABLE effects ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON effects FOR SELECT TO mason_admin USING (true);
CREATE POLICY business ON effects TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON effects TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON effects TO mason_api, mason_business, mason_worker;
GRANT SELECT (class, created_at, effect_id, error, first_sent_at, run_id, sends, status, tenant) ON effects TO mason_admin;

CREATE TABLE idempotency (
  tenant text NOT NULL REFERENCES businesses,
  route text NOT NULL,
  key text NOT NULL,
  request_hash text NOT NULL,
  response json NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant, route, key)
);
CREATE INDEX idempotency_by_age ON idempotency (created_at);
ALTER TABLE idempotency ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON idempotency TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON idempotency TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency TO mason_api, mason_business, mason_worker;

-- Wake-ups to be sent after the commit that makes them true; the relay sends what is left here.
CREATE TABLE outbox (
  outbox_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant text NOT NULL REFERENCES businesses,
  run_id text NOT NULL,
  ring_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- A claim deletes the wake-ups of its run: without this it would walk over all that wait, and over those that were sent.
CREATE INDEX outbox_by_run ON outbox (tenant, run_id);
CREATE INDEX outbox_by_time ON outbox (ring_at);
ALTER TABLE outbox ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON outbox FOR SELECT TO mason_admin USING (true);
CREATE POLICY business ON outbox TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON outbox TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON outbox TO mason_api, mason_business, mason_worker;
GRANT SELECT (outbox_id) ON outbox TO mason_admin;

CREATE TABLE inbox (
  tenant text NOT NULL REFERENCES businesses,
  source text NOT NULL,
  message_id text NOT NULL,
  received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant, source, message_id)
);
ALTER TABLE inbox ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON inbox TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON inbox TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON inbox TO mason_api, mason_business, mason_worker;

-- Queue jobs that could not be admitted. Of no business when the job does not name a known one.
-- One id may have been refused with several contents: of two businesses, or of a queue that began to count again.
CREATE TABLE rejected_jobs (
  rejected_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant text,
  job_id text NOT NULL,
  data json NOT NULL,
  faults json NOT NULL,
  received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- SHA-256 of `data`; empty in rows of the version before.
  data_hash text NOT NULL DEFAULT '',
  -- The run that a later submission of the job became.
  run_id text,
  -- Why it was rejected may pass: the job is admitted when it comes again.
  may_pass boolean NOT NULL DEFAULT false
);
CREATE INDEX rejected_jobs_by_age ON rejected_jobs (received_at);
CREATE UNIQUE INDEX rejected_jobs_by_content ON rejected_jobs (job_id, data_hash);
ALTER TABLE rejected_jobs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON rejected_jobs TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON rejected_jobs TO mason_api, mason_business USING (COALESCE(tenant, '_none') = current_setting('mason.business', true))
  WITH CHECK (COALESCE(tenant, '_none') = current_setting('mason.business', true));
CREATE POLICY worker ON rejected_jobs TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT (faults, job_id, received_at, rejected_id, run_id, tenant), UPDATE (run_id), DELETE ON rejected_jobs TO mason_admin;
GRANT SELECT ON rejected_jobs TO mason_api, mason_business;
GRANT SELECT, INSERT, UPDATE, DELETE ON rejected_jobs TO mason_worker;

CREATE TABLE workers (
  worker_id text PRIMARY KEY,
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  running int NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
ALTER TABLE workers ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON workers FOR SELECT TO mason_admin USING (true);
CREATE POLICY worker ON workers TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON workers TO mason_worker;
GRANT SELECT (running, seen_at, started_at, worker_id) ON workers TO mason_admin;

-- Runs that wait for a model. A row says something of its run while no action came since: `seq` is the run's next_seq then.
CREATE TABLE run_outages (
  tenant text NOT NULL,
  run_id text NOT NULL,
  seq int NOT NULL,
  -- Tries since the last action of the run.
  tries int NOT NULL,
  -- {code, message} of the last try.
  reason json NOT NULL,
  -- {first, omitted, last}: the tries of the run with their times, errors and waits.
  record json NOT NULL,
  PRIMARY KEY (tenant, run_id),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
);
ALTER TABLE run_outages ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON run_outages TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON run_outages TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON run_outages TO mason_api, mason_business, mason_worker;

-- What runs can be found by: an entry for each member of their metadata that is a text, a number, true, false or null.
-- An entry is the first 128 bits of SHA-256 of "<bytes of the key>:<key><value>", as src/engine/runs/metadata-entries.ts makes it.
CREATE TABLE run_metadata (
  tenant text NOT NULL,
  run_id text NOT NULL,
  entry uuid NOT NULL,
  -- That of the run: lists have the latest first.
  created_at timestamptz NOT NULL,
  PRIMARY KEY (tenant, run_id, entry),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
);
CREATE INDEX run_metadata_by_entry ON run_metadata (tenant, entry, created_at, run_id);
ALTER TABLE run_metadata ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON run_metadata TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON run_metadata TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON run_metadata TO mason_api, mason_business, mason_worker;

-- What a call waits for beside a person: a payment, a run, a job, or, for a side effect whose outcome is unknown, an operator. The run is
-- parked meanwhile: status `waiting`, without a lease. Of a wait for an operator `ref_id` is the effect; `part` counts down with how often it was sent.
CREATE TABLE waits (
  tenant text NOT NULL,
  run_id text NOT NULL,
  -- The call that waits: action id of the planner and index in its calls; `part` numbers the waits of one call.
  plan_seq int NOT NULL,
  call_index int NOT NULL,
  part int NOT NULL,
  kind text NOT NULL CHECK (kind IN ('payment', 'run', 'job', 'effect')),
  -- The payment, run or job.
  ref_id text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- When it ends as expired. Only the executor ends a payment.
  due_at timestamptz,
  -- When a worker looks how far the job is.
  poll_at timestamptz,
  done_at timestamptz,
  outcome json,
  -- When its end queued the run, or a claim read it: until then the end may have been missed.
  seen_at timestamptz,
  PRIMARY KEY (tenant, run_id, plan_seq, call_index, part),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE,
  CONSTRAINT waits_check CHECK (due_at IS NULL OR kind <> 'payment'),
  CONSTRAINT waits_check1 CHECK (poll_at IS NULL OR kind = 'job'),
  CONSTRAINT waits_check2 CHECK ((done_at IS NULL) = (outcome IS NULL))
) WITH (fillfactor = 50);
CREATE INDEX waits_due ON waits (LEAST(due_at, poll_at)) WHERE done_at IS NULL;
-- Pushes of agents of others (A2A) name a message, and with it the wait for its task, in the path of their address.
CREATE INDEX waits_job ON waits (ref_id) WHERE done_at IS NULL AND kind = 'job';
CREATE INDEX waits_open ON waits (tenant, kind, ref_id) WHERE done_at IS NULL;
CREATE INDEX waits_unseen ON waits (done_at) WHERE done_at IS NOT NULL AND seen_at IS NULL;
ALTER TABLE waits ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON waits TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON waits TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE ON waits TO mason_api, mason_business, mason_worker;

-- Where failed runs failed, so that lists find them by it. A table of their own: what an append changes is in no index of runs.
CREATE TABLE run_failures (
  tenant text NOT NULL,
  run_id text NOT NULL,
  error text NOT NULL,
  -- Null: no node did.
  node text,
  -- That of the run: lists have the latest first.
  created_at timestamptz NOT NULL,
  PRIMARY KEY (tenant, run_id),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
);
CREATE INDEX run_failures_by_error ON run_failures (tenant, error, created_at, run_id);
CREATE INDEX run_failures_by_node ON run_failures (tenant, node, created_at, run_id);
ALTER TABLE run_failures ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON run_failures TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON run_failures TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON run_failures TO mason_api, mason_business, mason_worker;

-- Which runs have a new status, for streams that follow a business. The id of the transaction is the position of a stream: all that
-- are below the oldest one still open have ended, so nothing is written there any more. Rows are kept for a day.
CREATE TABLE run_changes (
  tenant text NOT NULL,
  run_id text NOT NULL,
  session_id text NOT NULL,
  status text NOT NULL,
  xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
);
CREATE INDEX run_changes_by_age ON run_changes (at);
CREATE INDEX run_changes_by_transaction ON run_changes (tenant, xid);
CREATE INDEX run_changes_of_run ON run_changes (tenant, run_id);
ALTER TABLE run_changes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON run_changes TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON run_changes TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON run_changes TO mason_api, mason_business, mason_worker;

-- Which models a run has called, as the ledger has them. A table of its own: what an append changes is in no index of runs.
CREATE TABLE run_models (
  tenant text NOT NULL,
  run_id text NOT NULL,
  model text NOT NULL,
  -- That of the run: lists have the latest first.
  created_at timestamptz NOT NULL,
  PRIMARY KEY (tenant, run_id, model),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
);
CREATE INDEX run_models_by_model ON run_models (tenant, model, created_at, run_id);
ALTER TABLE run_models ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY admin ON run_models TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON run_models TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON run_models TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT ON run_models TO mason_admin;
GRANT SELECT, INSERT, UPDATE, DELETE ON run_models TO mason_api, mason_business, mason_worker;

-- The words of the prompt and the answer of an ended run, each as the first 64 bits of its hash. A row each: row security lets no index
-- of arrays be used.
CREATE TABLE run_words (
  tenant text NOT NULL,
  run_id text NOT NULL,
  word bigint NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (tenant, run_id, word),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
);
CREATE INDEX run_words_by_word ON run_words (tenant, word, created_at, run_id);
ALTER TABLE run_words ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON run_words TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON run_words TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON run_words TO mason_api, mason_business, mason_worker;

-- Ended runs whose words are not read yet.
CREATE TABLE unread_runs (
  tenant text NOT NULL,
  run_id text NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (tenant, run_id),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
);
CREATE INDEX unread_runs_by_time ON unread_runs (created_at);
ALTER TABLE unread_runs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON unread_runs TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON unread_runs TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON unread_runs TO mason_api, mason_business, mason_worker;

-- One action on many runs: a fixed list, which a worker goes through under a lease once it is confirmed. No filter and no content
-- is stored.
CREATE TABLE bulk_jobs (
  tenant text NOT NULL REFERENCES businesses,
  job_id text NOT NULL,
  action text NOT NULL CHECK (action IN ('cancel', 'retry')),
  reason text,
  -- Whose budget the retries spend.
  token_id text,
  status text NOT NULL DEFAULT 'unconfirmed' CHECK (status IN ('unconfirmed', 'queued', 'running', 'completed', 'cancelled')),
  -- When a worker may take it: of one that is taken, the end of its lease.
  due_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  claims int NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  confirmed_at timestamptz,
  ended_at timestamptz,
  PRIMARY KEY (tenant, job_id)
);
CREATE INDEX bulk_jobs_by_age ON bulk_jobs (created_at);
CREATE INDEX bulk_jobs_due ON bulk_jobs (due_at) WHERE status IN ('queued', 'running');
ALTER TABLE bulk_jobs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON bulk_jobs TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON bulk_jobs TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON bulk_jobs TO mason_api, mason_business, mason_worker;

CREATE TABLE bulk_runs (
  tenant text NOT NULL,
  job_id text NOT NULL,
  run_id text NOT NULL,
  position int NOT NULL,
  -- Null: not yet.
  status text CHECK (status IN ('done', 'refused')),
  -- Why it was refused.
  code text,
  PRIMARY KEY (tenant, job_id, run_id),
  FOREIGN KEY (tenant, job_id) REFERENCES bulk_jobs ON DELETE CASCADE
);
CREATE INDEX bulk_runs_left ON bulk_runs (tenant, job_id, "position") WHERE status IS NULL;
ALTER TABLE bulk_runs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON bulk_runs TO mason_api, mason_business USING (tenant = current_setting('mason.business', true))
  WITH CHECK (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON bulk_runs TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON bulk_runs TO mason_api, mason_business, mason_worker;

-- Jobs of the public queue are admitted by one leader a database, in the order in which Redis took them.
CREATE TABLE intake_lease (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  owner text NOT NULL DEFAULT '',
  -- The fencing token: every leader raises it, every admission from the queue names it and locks the row.
  epoch bigint NOT NULL DEFAULT 0,
  lease_until timestamptz NOT NULL DEFAULT '-infinity',
  -- Never written. Who may update a column may lock the row.
  lockable boolean
) WITH (fillfactor = 50);
ALTER TABLE intake_lease ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY fence ON intake_lease TO mason_api, mason_business USING (true) WITH CHECK (true);
CREATE POLICY worker ON intake_lease TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, UPDATE (lockable) ON intake_lease TO mason_api, mason_business;
GRANT SELECT, INSERT, UPDATE, DELETE ON intake_lease TO mason_worker;
INSERT INTO intake_lease DEFAULT VALUES;

-- Jobs that must wait (429, budget), and those of their sessions that came later, in the order of `seq`.
CREATE TABLE held_jobs (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant text NOT NULL REFERENCES businesses,
  session_id text NOT NULL,
  job_id text NOT NULL,
  data json NOT NULL,
  data_hash text NOT NULL,
  -- Why it waits.
  faults json NOT NULL,
  -- How often it was tried since it last only had to wait.
  attempts int NOT NULL DEFAULT 0,
  -- When it is tried next; of one with an outcome, when its job is released next. Null: after the one before it in its session.
  look_at timestamptz,
  -- What its job ends with. Null: it still waits.
  outcome json,
  held_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX held_jobs_by_content ON held_jobs (job_id, data_hash);
CREATE INDEX held_jobs_by_session ON held_jobs (tenant, session_id, seq) WHERE outcome IS NULL;
CREATE INDEX held_jobs_due ON held_jobs (tenant, look_at) WHERE outcome IS NULL AND look_at IS NOT NULL;
CREATE INDEX held_jobs_expired ON held_jobs (expires_at) WHERE outcome IS NULL;
CREATE INDEX held_jobs_settled ON held_jobs (look_at) WHERE outcome IS NOT NULL;
ALTER TABLE held_jobs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY business ON held_jobs TO mason_api, mason_business USING (tenant = current_setting('mason.business', true));
CREATE POLICY worker ON held_jobs TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, UPDATE (data, look_at, outcome) ON held_jobs TO mason_api, mason_business;
GRANT SELECT, INSERT, UPDATE, DELETE ON held_jobs TO mason_worker;

-- Jobs that a leader had taken when it was lost. Counted before they are read again, so that a deadly job ends.
CREATE TABLE recovered_jobs (
  job_id text PRIMARY KEY,
  attempts int NOT NULL DEFAULT 1,
  counted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
ALTER TABLE recovered_jobs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY worker ON recovered_jobs TO mason_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON recovered_jobs TO mason_worker;

-- Ends the waits for one thing, and queues their runs again; returns how many it ended, 0 when they had ended before. The row
-- of the run comes first, and each statement after it sees what parking has committed: with one statement on each side a
-- run waits forever (docs/decisions/0085-both-sides-of-a-wait-lock-the-run.md). The caller wakes workers; the outbox does it later.
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
REVOKE EXECUTE ON FUNCTION end_wait FROM PUBLIC;
GRANT EXECUTE ON FUNCTION end_wait TO mason_payments, mason_worker;

CREATE FUNCTION note_changed_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO run_changes (tenant, run_id, session_id, status) VALUES (NEW.tenant, NEW.run_id, NEW.session_id, NEW.status);
  IF NEW.status IN ('completed', 'failed', 'cancelled') THEN
    INSERT INTO unread_runs (tenant, run_id, created_at) VALUES (NEW.tenant, NEW.run_id, NEW.created_at) ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END $$;

-- What a run that is canceled has paid for and goes on: the feature that pays replaces it.
CREATE FUNCTION release_payments(p_tenant text, p_run_id text) RETURNS SETOF text LANGUAGE sql AS 'SELECT NULL::text LIMIT 0';
REVOKE EXECUTE ON FUNCTION release_payments FROM PUBLIC;
GRANT EXECUTE ON FUNCTION release_payments TO mason_api, mason_business, mason_worker;

-- Has a job polled at once; whether a run waits for it. A caller can do nothing with it but let a worker look.
CREATE FUNCTION poll_job_now(p_ref_id text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mason, pg_temp AS $$
BEGIN
  UPDATE waits SET poll_at = clock_timestamp()
  WHERE ref_id = p_ref_id AND kind = 'job' AND done_at IS NULL AND poll_at > clock_timestamp();
  RETURN FOUND;
END $$;
REVOKE EXECUTE ON FUNCTION poll_job_now FROM PUBLIC;
GRANT EXECUTE ON FUNCTION poll_job_now TO mason_admin, mason_worker;

-- What ends is to be searched by its words. A fork brings runs that have ended.
CREATE FUNCTION note_new_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO run_changes (tenant, run_id, session_id, status) SELECT tenant, run_id, session_id, status FROM made;
  INSERT INTO unread_runs (tenant, run_id, created_at) SELECT tenant, run_id, created_at FROM made
  WHERE status IN ('completed', 'failed', 'cancelled') ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;

CREATE TRIGGER run_has_changed AFTER UPDATE OF status ON runs FOR EACH ROW
  WHEN (NEW.status IS DISTINCT FROM OLD.status)
  EXECUTE FUNCTION note_changed_run();
CREATE TRIGGER runs_are_new AFTER INSERT ON runs REFERENCING NEW TABLE AS made FOR EACH STATEMENT EXECUTE FUNCTION note_new_runs();
CREATE TRIGGER actions_never_change BEFORE UPDATE ON actions FOR EACH STATEMENT EXECUTE FUNCTION refuse_update();
