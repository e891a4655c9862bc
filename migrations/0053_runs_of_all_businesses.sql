-- An API process lists the runs of all businesses for the admin: which business has runs of when. What is in them it reads for one
-- business after the other, each under its own row-level security.
GRANT SELECT (created_at) ON runs TO mason_admin;
