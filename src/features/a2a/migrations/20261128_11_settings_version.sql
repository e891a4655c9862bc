-- Processes keep what they read of these with the version of the registry.
CREATE TRIGGER registry_changed AFTER INSERT OR UPDATE OR DELETE ON remote_agents
  FOR EACH STATEMENT EXECUTE FUNCTION raise_registry_version();
