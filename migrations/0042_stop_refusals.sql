-- Whether the vendor refuses the field `stop`: the requests to this model go without it, and its replies are cut as they are read.
ALTER TABLE models ADD COLUMN refuses_stop boolean NOT NULL DEFAULT false;
