-- Processes keep what they read of these with the version of the registry.
CREATE TRIGGER registry_changed AFTER UPDATE OF http_hosts ON businesses FOR EACH STATEMENT EXECUTE FUNCTION raise_registry_version();
