-- Whether anything is learned from the runs of a business. With a constant default no row is rewritten.
ALTER TABLE businesses ADD COLUMN learning boolean NOT NULL DEFAULT true;

-- Decided here, so that processes of an earlier version leave it alone too while a new one is rolled out.
CREATE OR REPLACE FUNCTION queue_distillation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO distillations (tenant, run_id)
  SELECT NEW.tenant, NEW.run_id FROM businesses WHERE tenant = NEW.tenant AND learning ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
