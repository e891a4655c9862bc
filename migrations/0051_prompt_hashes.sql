-- The hash of the messages with which a visit first called a model; null where it called none, and in rows of earlier versions.
ALTER TABLE actions ADD COLUMN prompt_sha256 bytea;

-- A prompt that is rebuilt by the API depends on which tools there are: whose providers they may pay with, it sees anyway.
GRANT EXECUTE ON FUNCTION list_payment_providers TO mason_admin;
