-- What operators and the console read: the questions of a business by time, and across businesses the workers, the side effects
-- whose outcome is unknown, and how many runs there are.
CREATE INDEX input_requests_by_time ON input_requests (tenant, created_at, request_id);
CREATE INDEX effects_unknown ON effects (created_at, effect_id) WHERE status = 'unknown';
GRANT SELECT (started_at, seen_at, running) ON workers TO mason_admin;
GRANT SELECT (tenant, effect_id, run_id, class, status, sends, created_at, first_sent_at) ON effects TO mason_admin;
CREATE POLICY admin ON effects FOR SELECT TO mason_admin USING (true);
GRANT SELECT (created_at) ON runs TO mason_admin;
