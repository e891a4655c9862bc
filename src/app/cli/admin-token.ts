import { randomBytes } from 'node:crypto'
import type { Config } from '../../infra/config/config.ts'
import { readOrCreateSecretFile, type SecretFile } from '../../infra/secrets/secret-file.ts'

/** A configuration with the admin token that Mason created. */
export type ConfigWithAdminToken = {
  config: Config
  /** Null when the settings have a token. `created` is true for the start that created it. */
  adminToken: { value: string; path: string; created: boolean } | null
}

/**
 * Adds the admin token that embedded mode creates in DATA_DIR, readable for its owner only. Several processes may call it
 * at once and get the same token. A token in the settings stays, and a served configuration is returned unchanged.
 */
export const addAdminToken = async (config: Config): Promise<ConfigWithAdminToken> => {
  if (config.database.kind !== 'embedded' || config.adminToken !== null) return { config, adminToken: null }
  const adminToken = await readOrCreateSecretFile(config.database.dataDir, adminTokenFile)
  return { config: { ...config, adminToken: adminToken.value }, adminToken }
}

const adminTokenFile: SecretFile = {
  name: 'admin-token',
  create: () => `mason_admin_${randomBytes(24).toString('base64url')}`,
  pattern: /^[\x21-\x7e]+$/,
  lossRemedy: 'remove it; the next start creates a new token',
}
