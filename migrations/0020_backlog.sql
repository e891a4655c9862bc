-- How much work waits and since when, for the metrics of an API process with a login of its own.
GRANT SELECT (lease_until, ended_at) ON runs TO mason_admin;
GRANT SELECT (created_at) ON distillations TO mason_admin;
