/** A connection that migrations are applied to: whole scripts and single statements. The caller holds the lock. */
export type MigrationTarget = {
  run(script: string): Promise<void>
  query(text: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>
}

/** A migration script with the SHA-256 checksum that is stored when it is applied. One of a feature is named `<id>/<file>`. */
export type Migration = {
  name: string
  text: string
  checksum: string
  /** Of a feature of a product: where it is, the tables and functions of the feature, and whether a later file may add grants. */
  own?: { path: string; tables: readonly string[]; functions: readonly string[]; isFollowed: boolean }
}

/** A migration as the database has it. */
export type AppliedMigration = Pick<Migration, 'name' | 'checksum'>
