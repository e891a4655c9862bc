-- Keys of issuers whose signatures on mandates, carts and receipts are trusted. A row ends and never changes.
CREATE TABLE trusted_keys (
  key_id text PRIMARY KEY,
  -- Null: all businesses trust it.
  tenant text REFERENCES businesses,
  issuer text NOT NULL,
  kid text NOT NULL,
  roles text[] NOT NULL CHECK (cardinality(roles) > 0),
  -- The point on P-256, as in a JWK. Both points of one x have related private keys, so a revocation is about x.
  x text NOT NULL,
  y text NOT NULL,
  valid_from timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Null: until it is ended. Ending a key sets it to the time of the end, once.
  valid_to timestamptz,
  revoked_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE UNIQUE INDEX trusted_keys_named ON trusted_keys (kid, issuer, COALESCE(tenant, ''));
CREATE INDEX trusted_keys_of_issuer ON trusted_keys (issuer);
CREATE INDEX trusted_keys_of_point ON trusted_keys (x);
CREATE INDEX trusted_keys_listed ON trusted_keys (created_at, key_id);

-- Binds every role, the owner's too. The times of an end are the database's own, whatever the statement says.
CREATE FUNCTION end_trusted_key() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  ended trusted_keys := OLD;
BEGIN
  IF NEW.valid_to IS DISTINCT FROM OLD.valid_to AND (OLD.valid_to IS NULL OR OLD.valid_to > clock_timestamp()) THEN
    ended.valid_to := clock_timestamp();
    NEW.valid_to := ended.valid_to;
  END IF;
  IF OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL THEN
    ended.revoked_at := clock_timestamp();
    NEW.revoked_at := ended.revoked_at;
  END IF;
  IF NEW IS DISTINCT FROM ended THEN
    RAISE EXCEPTION 'rows of trusted_keys end once and never change otherwise' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER trusted_keys_end BEFORE UPDATE ON trusted_keys FOR EACH ROW EXECUTE FUNCTION end_trusted_key();
CREATE TRIGGER trusted_keys_stay BEFORE DELETE OR TRUNCATE ON trusted_keys FOR EACH STATEMENT EXECUTE FUNCTION refuse_update();

GRANT SELECT ON trusted_keys TO mason_admin, mason_worker, mason_api, mason_business;
GRANT INSERT (key_id, tenant, issuer, kid, roles, x, y, valid_from, valid_to), UPDATE (valid_to, revoked_at)
  ON trusted_keys TO mason_admin, mason_worker;
ALTER TABLE trusted_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE trusted_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY worker ON trusted_keys TO mason_worker USING (true) WITH CHECK (true);
CREATE POLICY admin ON trusted_keys TO mason_admin USING (true) WITH CHECK (true);
CREATE POLICY business ON trusted_keys FOR SELECT TO mason_api, mason_business
  USING (tenant IS NULL OR tenant = current_setting('mason.business', true));
-- A worker's login reads and writes nothing. One that is both processes, as with DATABASE_URL alone, has the rights of both.
CREATE POLICY only_the_api ON trusted_keys AS RESTRICTIVE TO mason_worker
  USING (true) WITH CHECK ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')));
