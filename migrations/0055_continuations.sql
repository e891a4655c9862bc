-- How the model goes on with a reply that was cut at its output limit: asked to in words, after the reply as a prefill, or with a flag on it.
ALTER TABLE models ADD COLUMN continuation text NOT NULL DEFAULT 'none' CHECK (continuation IN ('none', 'prefill', 'flag'));
