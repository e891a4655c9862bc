import type { Config } from '../infra/config/config.ts'
import type { ProcessRole } from '../infra/config/role-settings.ts'
import type { Database, ProcessDatabases } from '../infra/database/database.ts'
import type { SealBinding } from '../infra/secrets/envelope.ts'
import type { KeyFiles } from '../infra/secrets/master-key-files.ts'
import type { MasterKeys } from '../infra/secrets/master-keys.ts'

/** A table with sealed rows. `owner` selects the columns that its binding needs beside the id. */
export type SealedTable = { name: string; id: string; owner: string; purpose: SealBinding['purpose'] }

/** `*.keys.ts`: private keys that are sealed under a key of their own, which `mason keys rotate --<option>` replaces. */
export type KeysDefinition = {
  kind: 'keys'
  option: string
  description: string
  /** As in `the payment key`. */
  name: string
  /** Whose the key pairs are, and which processes have the settings. */
  owner: string
  processes: string
  /** That has the settings, on a database server. */
  role: ProcessRole
  settings: { current: string; previous: string }
  readSettings(config: Config): { current: string | null; previous: readonly string[] }
  database(databases: ProcessDatabases): Database | null
  openKeys(config: Config): Promise<MasterKeys>
  /** In DATA_DIR, embedded without the setting. */
  files: KeyFiles
  tables: readonly SealedTable[]
  /** Ends the pairs that are under another key than the current one, for new ones; returns how many. */
  replacePairs(database: Database, keys: MasterKeys): Promise<number>
}

/** See `KeysDefinition`. */
export const defineKeys = (keys: Omit<KeysDefinition, 'kind'>): KeysDefinition => ({ kind: 'keys', ...keys })
