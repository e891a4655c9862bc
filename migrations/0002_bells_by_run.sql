-- A claim takes away the bells of its run: without this it would walk over all that wait, and over those that were rung.
CREATE INDEX outbox_by_run ON outbox (tenant, run_id);
