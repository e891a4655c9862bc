-- The spine: sessions, runs, their actions, and everything that makes one run durable.
-- The tenant is the business; it is part of every key. One clock: clock_timestamp() of this database.
-- `json`, not `jsonb`: jsonb reorders keys and refuses NUL and lone surrogates.

-- Two roles that cannot bypass row-level security: the API acts for one business, the worker for all.
-- Roles belong to the whole server, so another database may have made them just now.
DO $$
DECLARE
  wanted text;
  -- since PostgreSQL 16 who makes a role is its member, but may not act as it
  needed text := CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END;
BEGIN
  FOREACH wanted IN ARRAY ARRAY['mason_api', 'mason_worker'] LOOP
    BEGIN
      IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
        EXECUTE format('CREATE ROLE %I NOLOGIN NOBYPASSRLS', wanted);
      END IF;
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
    END;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = wanted AND (rolsuper OR rolbypassrls)) THEN
      RAISE EXCEPTION 'role % can bypass row-level security', wanted USING HINT = format('ALTER ROLE %I NOSUPERUSER NOBYPASSRLS', wanted);
    END IF;
    IF NOT pg_has_role(current_user, wanted, needed) THEN
      EXECUTE format('GRANT %I TO %I', wanted, current_user);
    END IF;
  END LOOP;
END $$;

CREATE TABLE businesses (
  tenant text PRIMARY KEY,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Runs at work at once; null: no limit.
  max_concurrency int CHECK (max_concurrency > 0),
  -- Runs waiting; more are refused with 429.
  max_queued int NOT NULL DEFAULT 10000 CHECK (max_queued > 0),
  -- How long a run may wait to be started.
  queue_ttl interval NOT NULL DEFAULT interval '24 hours',
  -- For round-robin between businesses; `claims` makes two claims at one moment see each other.
  last_claimed_at timestamptz,
  claims bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE tokens (
  tenant text NOT NULL REFERENCES businesses,
  token_id text NOT NULL,
  token_hash text NOT NULL UNIQUE,
  label text NOT NULL,
  roles text[] NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  revoked_at timestamptz,
  PRIMARY KEY (tenant, token_id)
);

CREATE TABLE users (
  tenant text NOT NULL REFERENCES businesses,
  user_id text NOT NULL,
  profile json NOT NULL DEFAULT '{}',
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant, user_id)
);

CREATE TABLE sessions (
  tenant text NOT NULL REFERENCES businesses,
  session_id text NOT NULL,
  user_id text NOT NULL,
  -- The last turn given out; updated under this row's lock, which orders the turns.
  turns int NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant, session_id)
);
CREATE INDEX sessions_by_user ON sessions (tenant, user_id, created_at, session_id);

-- Narrow: updated at every append. No index covers a column that an append or a heartbeat changes.
CREATE TABLE runs (
  tenant text NOT NULL,
  run_id text NOT NULL,
  session_id text NOT NULL,
  turn int NOT NULL,
  parent_run_id text,
  -- The graph of the worker that claimed it last.
  graph_version text,
  status text NOT NULL CHECK (status IN ('queued', 'running', 'input_required', 'completed', 'failed', 'cancelled')),
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
CREATE INDEX runs_open ON runs (tenant, priority DESC, run_at, run_id) WHERE status IN ('queued', 'running');
-- Which turn of a session is next, however many have ended.
CREATE INDEX runs_unfinished ON runs (tenant, session_id, turn) WHERE status IN ('queued', 'running', 'input_required');
CREATE INDEX runs_listed ON runs (tenant, created_at, run_id);

-- What was asked for and what came out: wide, written once each. Nothing is ever taken out of these documents in SQL:
-- the operators of json refuse a whole document for one NUL or lone surrogate anywhere in it.
CREATE TABLE run_requests (
  tenant text NOT NULL,
  run_id text NOT NULL,
  user_id text NOT NULL,
  request json NOT NULL,
  metadata json NOT NULL,
  PRIMARY KEY (tenant, run_id),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
);
CREATE TABLE run_results (
  tenant text NOT NULL,
  run_id text NOT NULL,
  -- {answer, output_structure, error}
  result json NOT NULL,
  PRIMARY KEY (tenant, run_id),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
);

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
  PRIMARY KEY (tenant, session_id, seq)
);

CREATE FUNCTION refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of % never change', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER actions_never_change BEFORE UPDATE ON actions FOR EACH STATEMENT EXECUTE FUNCTION refuse_update();

-- Uploaded files and results over 32 KB, by content.
CREATE TABLE blobs (
  tenant text NOT NULL REFERENCES businesses,
  sha256 text NOT NULL,
  bytes bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant, sha256)
);
ALTER TABLE blobs ALTER COLUMN bytes SET STORAGE EXTERNAL;

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
  PRIMARY KEY (tenant, request_id),
  UNIQUE (tenant, run_id, plan_seq, call_index),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
);
CREATE INDEX input_requests_open ON input_requests (expires_at) WHERE answered_at IS NULL;

CREATE TABLE effects (
  tenant text NOT NULL,
  effect_id text NOT NULL,
  run_id text NOT NULL,
  class text NOT NULL CHECK (class IN ('pure', 'keyed', 'queryable', 'manual')),
  request bytea NOT NULL,
  request_hash text NOT NULL,
  status text NOT NULL CHECK (status IN ('intent', 'sent', 'succeeded', 'failed', 'unknown')),
  sends int NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  first_sent_at timestamptz,
  response json,
  PRIMARY KEY (tenant, effect_id),
  FOREIGN KEY (tenant, run_id) REFERENCES runs ON DELETE CASCADE
);

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

-- Bells to be rung after the commit that makes them true; the relay rings what is left here.
CREATE TABLE outbox (
  outbox_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant text NOT NULL REFERENCES businesses,
  run_id text NOT NULL,
  ring_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX outbox_by_time ON outbox (ring_at);

CREATE TABLE inbox (
  tenant text NOT NULL REFERENCES businesses,
  source text NOT NULL,
  message_id text NOT NULL,
  received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant, source, message_id)
);

-- Queue jobs that could not be admitted. Of no business when the job does not name a known one.
CREATE TABLE rejected_jobs (
  rejected_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant text,
  job_id text NOT NULL,
  data json NOT NULL,
  faults json NOT NULL,
  received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (job_id)
);

CREATE TABLE workers (
  worker_id text PRIMARY KEY,
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  running int NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

GRANT USAGE ON SCHEMA mason TO mason_api, mason_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA mason TO mason_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON
  users, sessions, runs, run_requests, run_results, blobs, input_requests, effects, idempotency, outbox, inbox TO mason_api;
GRANT SELECT ON businesses, tokens, rejected_jobs TO mason_api;
GRANT SELECT, INSERT, DELETE ON actions TO mason_api;
REVOKE UPDATE ON actions FROM mason_worker;
REVOKE ALL ON migrations FROM mason_worker;

-- FORCE: the owner of the tables is bound too. The API sees its business only; the worker's policy is one of
-- its own, its writes being guarded by the epoch they name.
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['businesses', 'tokens', 'users', 'sessions', 'runs', 'run_requests', 'run_results',
    'actions', 'blobs', 'input_requests', 'effects', 'idempotency', 'outbox', 'inbox', 'rejected_jobs', 'workers'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY worker ON %I TO mason_worker USING (true) WITH CHECK (true)', name);
    IF name <> 'workers' THEN
      EXECUTE format(
        'CREATE POLICY business ON %I TO mason_api USING (tenant = current_setting(''mason.business'', true))
         WITH CHECK (tenant = current_setting(''mason.business'', true))', name);
    END IF;
  END LOOP;
END $$;
