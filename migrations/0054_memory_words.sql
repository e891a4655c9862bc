-- The words of memories that are searched, each by a 64-bit hash. A row each, since row security lets no index of a tsvector be used. A
-- memory has a number here, later ones a higher one: narrower than its id, and the order of those that share as many words.
CREATE SEQUENCE memory_numbers;
GRANT USAGE ON SEQUENCE memory_numbers TO mason_worker, mason_api, mason_business;
-- Null in rows of earlier versions until a memory worker has read their words: backwards, with numbers below zero.
ALTER TABLE memories ADD COLUMN number bigint;
ALTER TABLE memories ALTER COLUMN number SET DEFAULT nextval('memory_numbers');
ALTER TABLE memories ADD CONSTRAINT memories_number UNIQUE (number);
CREATE INDEX memories_unread ON memories (tenant, user_id, created_at) WHERE number IS NULL AND superseded_by IS NULL;

CREATE TABLE memory_words (
  tenant text NOT NULL,
  user_id text NOT NULL,
  word bigint NOT NULL,
  number bigint NOT NULL REFERENCES memories (number) ON DELETE CASCADE,
  PRIMARY KEY (tenant, user_id, word, number)
);
CREATE INDEX memory_words_of ON memory_words (number);
ALTER TABLE memory_words SET (autovacuum_vacuum_insert_scale_factor = 0.05);

GRANT SELECT, INSERT, UPDATE, DELETE ON memory_words TO mason_worker, mason_api, mason_business;
ALTER TABLE memory_words ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_words FORCE ROW LEVEL SECURITY;
CREATE POLICY worker ON memory_words TO mason_worker USING (true) WITH CHECK (true);
CREATE POLICY business ON memory_words TO mason_api, mason_business
  USING (tenant = (SELECT current_setting('mason.business', true))
    AND ((SELECT current_setting('mason.user', true)) = '*' OR user_id = (SELECT current_setting('mason.user', true))))
  WITH CHECK (tenant = (SELECT current_setting('mason.business', true))
    AND ((SELECT current_setting('mason.user', true)) = '*' OR user_id = (SELECT current_setting('mason.user', true))));

-- In the transaction of the memory, also of workers of an earlier version. One that is superseded is not searched.
CREATE FUNCTION read_memory_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN DELETE FROM memory_words WHERE number = OLD.number; END IF;
  IF NEW.superseded_by IS NULL AND NEW.number IS NOT NULL THEN
    INSERT INTO memory_words (tenant, user_id, word, number)
    SELECT DISTINCT NEW.tenant, NEW.user_id, hashtextextended(word, 0), NEW.number FROM unnest(tsvector_to_array(NEW.words)) AS word;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER memory_is_read AFTER INSERT OR UPDATE OF superseded_by, number, words ON memories
  FOR EACH ROW EXECUTE FUNCTION read_memory_words();
