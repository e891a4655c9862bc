import { randomBytes } from 'node:crypto'
import type { Config } from './config.ts'
import { type SecretFile, secretIn } from './secrets/secret-file.ts'

export type LocalSecrets = {
  config: Config
  /** Null when the settings bring their own. `made` once, on the day it was. */
  adminToken: { value: string; path: string; made: boolean } | null
}

/**
 * Fills in the admin token that embedded mode makes for itself in DATA_DIR, readable by its owner only. Safe to call
 * from several processes at once: all get the same. A token that is set stays, and a served configuration is left as it
 * is. For servers only: nobody else has use for one. The master key is read later, under the lock of the folder
 * (`openMasterKeys`).
 */
export const withAdminToken = async (config: Config): Promise<LocalSecrets> => {
  if (config.database.kind !== 'embedded' || config.adminToken !== null) return { config, adminToken: null }
  const adminToken = await secretIn(config.database.dataDir, adminTokenFile)
  return { config: { ...config, adminToken: adminToken.value }, adminToken }
}

const adminTokenFile: SecretFile = {
  name: 'admin-token',
  make: () => `mason_admin_${randomBytes(24).toString('base64url')}`,
  fits: /^[\x21-\x7e]+$/,
  lost: 'remove it, and the next start makes a new token',
}
