-- Processes keep what they read of these with the version of the registry. A change of other settings does not raise it.
CREATE TRIGGER registry_changed AFTER UPDATE OF http_hosts ON businesses
  FOR EACH ROW WHEN (OLD.http_hosts::text IS DISTINCT FROM NEW.http_hosts::text) EXECUTE FUNCTION raise_registry_version();
