-- Ended turns as texts that later sessions of the user search by meaning and by words: apart from `memories`, so that statements are not
-- crowded out. A short turn stands in the row of the turn before it.
-- Beside `learning`: a business that learns may leave it out.
ALTER TABLE businesses ADD COLUMN recall boolean NOT NULL DEFAULT true,
  -- Turns of earlier versions, and of the time when recall was off, are read session by session, after this one. Null: all are read.
  ADD COLUMN turns_read_to text DEFAULT '',
  -- What was read of them in this hour.
  ADD COLUMN turns_read_tokens bigint NOT NULL DEFAULT 0, ADD COLUMN turns_read_hour timestamptz NOT NULL DEFAULT '-infinity';
ALTER TABLE businesses ALTER COLUMN turns_read_to DROP DEFAULT;

CREATE SEQUENCE turn_numbers;
CREATE TABLE turns (
  tenant text NOT NULL,
  session_id text NOT NULL,
  turn int NOT NULL,
  -- The last turn in the row.
  last_turn int NOT NULL,
  user_id text NOT NULL,
  number bigint NOT NULL DEFAULT nextval('turn_numbers') UNIQUE,
  content text NOT NULL,
  words tsvector NOT NULL,
  -- Which model's vector it has; empty: none yet.
  space text NOT NULL DEFAULT '',
  signature bit varying,
  said_at timestamptz NOT NULL,
  PRIMARY KEY (tenant, session_id, turn),
  FOREIGN KEY (tenant, session_id) REFERENCES sessions ON DELETE CASCADE
);
CREATE INDEX turns_near ON turns (tenant, user_id, space) INCLUDE (number, signature, session_id, said_at);
CREATE INDEX turns_said ON turns (tenant, user_id, said_at);
CREATE INDEX turns_by_space ON turns (space, tenant);

CREATE TABLE turn_vectors (
  tenant text NOT NULL,
  user_id text NOT NULL,
  number bigint PRIMARY KEY REFERENCES turns (number) ON DELETE CASCADE,
  session_id text NOT NULL,
  said_at timestamptz NOT NULL,
  space text NOT NULL,
  embedding halfvec NOT NULL
);
CREATE INDEX turn_vectors_searched ON turn_vectors (tenant, user_id, space);
ALTER TABLE turn_vectors ALTER COLUMN embedding SET STORAGE PLAIN;

CREATE TABLE turn_words (
  tenant text NOT NULL,
  user_id text NOT NULL,
  word bigint NOT NULL,
  number bigint NOT NULL REFERENCES turns (number) ON DELETE CASCADE,
  PRIMARY KEY (tenant, user_id, word, number)
);
CREATE INDEX turn_words_of ON turn_words (number);
CREATE FUNCTION read_turn_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN DELETE FROM turn_words WHERE number = OLD.number; END IF;
  INSERT INTO turn_words (tenant, user_id, word, number)
  SELECT DISTINCT NEW.tenant, NEW.user_id, hashtextextended(word, 0), NEW.number FROM unnest(tsvector_to_array(NEW.words)) AS word;
  RETURN NULL;
END $$;
CREATE TRIGGER turn_is_read AFTER INSERT OR UPDATE OF words ON turns FOR EACH ROW EXECUTE FUNCTION read_turn_words();

-- What a user said before this is not read into `turns` later: something of it was forgotten.
CREATE TABLE turn_cutoffs (
  tenant text NOT NULL REFERENCES businesses ON DELETE CASCADE,
  user_id text NOT NULL,
  said_before timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant, user_id)
);

-- The similarity of texts of a space that have nothing to do with each other.
ALTER TABLE memory_spaces ADD COLUMN pair_mean real, ADD COLUMN pair_deviation real, ADD COLUMN pairs int NOT NULL DEFAULT 0;
GRANT SELECT ON memory_spaces TO mason_api, mason_business;
CREATE POLICY reader ON memory_spaces FOR SELECT TO mason_api, mason_business USING (true);

GRANT USAGE ON SEQUENCE turn_numbers TO mason_worker, mason_api, mason_business;
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['turns', 'turn_vectors', 'turn_words', 'turn_cutoffs'] LOOP
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO mason_worker', name);
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY worker ON %I TO mason_worker USING (true) WITH CHECK (true)', name);
  END LOOP;
  FOREACH name IN ARRAY ARRAY['turns', 'turn_vectors', 'turn_words', 'turn_cutoffs'] LOOP
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO mason_api, mason_business', name);
    EXECUTE format('CREATE POLICY business ON %I TO mason_api, mason_business
      USING (tenant = (SELECT current_setting(''mason.business'', true))
        AND ((SELECT current_setting(''mason.user'', true)) = ''*'' OR user_id = (SELECT current_setting(''mason.user'', true))))
      WITH CHECK (tenant = (SELECT current_setting(''mason.business'', true))
        AND ((SELECT current_setting(''mason.user'', true)) = ''*'' OR user_id = (SELECT current_setting(''mason.user'', true))))', name);
  END LOOP;
END $$;
-- Switching recall off takes the turns of a business out.
GRANT SELECT (tenant, space), DELETE ON turns TO mason_admin;
CREATE POLICY admin ON turns TO mason_admin USING (true);
