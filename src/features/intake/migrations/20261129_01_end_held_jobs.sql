-- What a session has held ends with it, and its data goes with it.
CREATE FUNCTION end_held_jobs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE held_jobs SET data = 'null', look_at = clock_timestamp(),
    outcome = '{"errors":[{"pointer":"","detail":"its session was deleted while it waited"}]}'
  WHERE tenant = OLD.tenant AND session_id = OLD.session_id AND outcome IS NULL;
  RETURN NULL;
END $$;
CREATE TRIGGER end_held_jobs AFTER DELETE ON sessions FOR EACH ROW EXECUTE FUNCTION end_held_jobs();
