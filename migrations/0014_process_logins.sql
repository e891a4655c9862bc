-- Logins of their own for the API and the workers: what each may do beyond one business. `mason migrate` creates the logins.
-- An API process: mason_api for one business, mason_admin across all. A worker: mason_business for one, mason_worker across all.
DO $$
DECLARE
  wanted text;
  needed text := CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END;
BEGIN
  FOREACH wanted IN ARRAY ARRAY['mason_admin', 'mason_business'] LOOP
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

GRANT USAGE ON SCHEMA mason TO mason_admin, mason_business;
-- Every start compares them with its own.
GRANT SELECT ON migrations TO mason_worker, mason_admin;

-- For one business a worker may what the API may; only the tokens are the API's alone.
GRANT SELECT, INSERT, UPDATE, DELETE ON users, sessions, runs, run_requests, run_results, blobs, input_requests, effects,
  idempotency, outbox, inbox, memories, memory_vectors, memory_sources, distillations, blob_uses, prepared_files, run_outages, files, file_parts
  TO mason_business;
GRANT SELECT, INSERT, DELETE ON actions TO mason_business;
GRANT SELECT ON businesses, rejected_jobs, usage_ledger TO mason_business;
DO $$
DECLARE name regclass;
BEGIN
  FOR name IN SELECT polrelid::regclass FROM pg_policy JOIN pg_class c ON c.oid = polrelid
    WHERE polname = 'business' AND relnamespace = 'mason'::regnamespace LOOP
    EXECUTE format('ALTER POLICY business ON %s TO mason_api, mason_business', name);
  END LOOP;
END $$;

-- A worker's login sees no tokens. One that is both processes, as with DATABASE_URL alone, does as before.
CREATE POLICY only_the_api ON tokens AS RESTRICTIVE TO mason_worker
  USING ((SELECT pg_has_role(session_user, 'mason_api', 'MEMBER'))) WITH CHECK ((SELECT pg_has_role(session_user, 'mason_api', 'MEMBER')));

-- What an API process does across businesses: accounts, the registry, the ledger. Of the work of a business it sees how much
-- there is and where it is, never what is in it: those rights are by column.
GRANT SELECT, INSERT, UPDATE ON businesses, tokens, database_identity, memory_spaces TO mason_admin;
GRANT SELECT, INSERT ON usage_ledger TO mason_admin;
GRANT SELECT, INSERT, UPDATE, DELETE ON users, vendors, vendor_keys, endpoints, categories, response_formats, models, routes, grants,
  scenarios, registry_version, model_health, usage_reservations, key_spending, unread_answers TO mason_admin;
GRANT SELECT (tenant, run_id, failed_at), UPDATE (failed_at), DELETE ON distillations TO mason_admin;
GRANT SELECT (tenant, run_id, session_id, turn, status, run_at) ON runs TO mason_admin;
GRANT SELECT (tenant, session_id, turns) ON sessions TO mason_admin;
GRANT SELECT (tenant, session_id, seq) ON actions TO mason_admin;
GRANT SELECT (answered_at) ON input_requests TO mason_admin;
GRANT SELECT (outbox_id) ON outbox TO mason_admin;
GRANT SELECT (worker_id) ON workers TO mason_admin;
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['businesses', 'tokens', 'database_identity', 'memory_spaces', 'usage_ledger', 'users', 'vendors',
    'vendor_keys', 'endpoints', 'categories', 'response_formats', 'models', 'routes', 'grants', 'scenarios', 'registry_version',
    'model_health', 'usage_reservations', 'key_spending', 'unread_answers', 'distillations'] LOOP
    EXECUTE format('CREATE POLICY admin ON %I TO mason_admin USING (true) WITH CHECK (true)', name);
  END LOOP;
  FOREACH name IN ARRAY ARRAY['runs', 'sessions', 'actions', 'input_requests', 'outbox', 'workers'] LOOP
    EXECUTE format('CREATE POLICY admin ON %I FOR SELECT TO mason_admin USING (true)', name);
  END LOOP;
END $$;
