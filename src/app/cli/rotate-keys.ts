import { loadKind } from '../../features/definition-files.ts'
import type { KeysDefinition, SealedTable } from '../../features/keys-definition.ts'
import { loadFeatures } from '../../features/load-features.ts'
import type { Config, Environment } from '../../infra/config/config.ts'
import { masterKeyCommand } from '../../infra/config/settings.ts'
import type { Database } from '../../infra/database/database.ts'
import type { AppliedMigration, Migration } from '../../infra/database/migration.ts'
import { findRemovedFeatures } from '../../infra/database/migrations.ts'
import { openDatabases } from '../../infra/database/open-database.ts'
import { openMasterKeys } from '../../infra/secrets/master-key-files.ts'
import type { MasterKeys } from '../../infra/secrets/master-keys.ts'
import type { Scrubber } from '../../infra/secrets/scrubber.ts'
import { toSettingsError } from '../../state/errors.ts'
import { featureSources } from '../features.generated.ts'
import { loadFeatureSources, readFeatureMigrations } from '../load-feature-sources.ts'
import { inspectConfig, readConfig } from '../read-config.ts'
import { addSettingSecrets } from '../setting-secrets.ts'
import { describeDatabase } from './banner.ts'
import { resolveCommandName } from './command-name.ts'
import { exitCodes } from './errors.ts'
import { listenForInterrupt } from './interrupts.ts'
import { coreSealedTables, type KeyRotation, rewrapRows } from './key-rotation.ts'
import { createLog } from './log.ts'
import { beginKeyRotation, endKeyRotation, syncDatabaseFiles } from './rotated-key-files.ts'
import { formatPlural } from './terminal.ts'

/** The options of `mason keys rotate`: those of features, by their names. */
export type RotateFlags = Readonly<Record<string, true | undefined>>

/** A key that others are sealed under, and what is under it. */
type SealingScope = Pick<KeysDefinition, 'name' | 'processes' | 'settings'> & {
  database: Database
  /** Of the settings. Embedded without one, it is in a file of DATA_DIR. */
  keys: { current: string | null; previous: readonly string[] }
  openKeys(): Promise<MasterKeys>
  tables: readonly SealedTable[]
  /** Of a feature. */
  own?: KeysDefinition
}

/**
 * `mason keys rotate`: encrypts the stored secrets of vendors under the current master key; embedded, under a new one. With the
 * option of a feature it does so with the feature's private keys and the key that they are under, and replaces those key pairs.
 * Prints what it did and the next steps. Exit code 1 while there are rows that it cannot read.
 */
export const rotateKeys = async (
  flags: RotateFlags,
  env: Environment,
  scrubber: Scrubber,
): Promise<number> => {
  const ofFeatures = (await loadKind(featureSources, 'keys')).map(({ definition }) => definition)
  const own = ofFeatures.find(({ option }) => flags[option])
  const served = inspectConfig(env, { role: 'migrate' }).config.database.kind === 'postgres'
  const config = readConfig(env, { role: own && served ? own.role : 'keys' })
  addSettingSecrets(config, scrubber)
  // before there is a new key: what a feature has sealed is lost where it is not rewrapped with the rest
  const sources = await loadFeatureSources(config.featureFolders)
  const migrations = await readFeatureMigrations(sources)
  const features = await loadFeatures(sources)
  const log = createLog(config.logLevel, process.stderr, scrubber)
  const databases = await openDatabases(config, log, { migrations })
  const ownDatabase = own?.database(databases)
  const scope: SealingScope =
    own && ownDatabase
      ? {
          ...own,
          database: ownDatabase,
          keys: own.readSettings(config),
          openKeys: () => own.openKeys(config),
          own,
        }
      : {
          name: 'master',
          processes: 'every process',
          settings: { current: 'MASON_MASTER_KEY', previous: 'MASON_PREVIOUS_MASTER_KEYS' },
          database: databases.api,
          keys: { current: config.masterKey, previous: config.previousMasterKeys },
          openKeys: () => openMasterKeys(config),
          tables: [...coreSealedTables, ...features.flatMap(({ definition }) => definition.sealed ?? [])],
        }
  const interrupt = listenForInterrupt(new Error('stopped; run the command again to continue'))
  try {
    if (!scope.own) await checkFeaturesAreThere(databases.api, migrations)
    const report = await rotate(config, scope, databases.api, interrupt.signal)
    process.stdout.write(`${report.text.join('\n')}\n`)
    return report.ok ? exitCodes.done : exitCodes.failed
  } finally {
    interrupt.stop()
    await databases.close()
  }
}

/** Embedded without a key in the settings, the rotation begins with a new key in the data folder. */
const rotate = async (
  config: Config,
  scope: SealingScope,
  whole: Database,
  signal: AbortSignal,
): Promise<{ ok: boolean; text: string[] }> => {
  const { name: what, database, own } = scope
  const dataDir =
    config.database.kind === 'embedded' && scope.keys.current === null ? config.database.dataDir : null
  const begun = dataDir === null ? null : await beginKeyRotation(dataDir, own?.files)
  const keys = await scope.openKeys()
  const replaced = own ? await own.replacePairs(database, keys) : 0
  const rotation = await rewrapRows(database, keys, signal, scope.tables)
  const { name } = keys.current()
  const ok = rotation.unreadable.length === 0 && rotation.settled
  const report = (head: string, ...next: string[]) => ({
    ok,
    text: [
      head,
      ...formatRotation(config, rotation, what),
      ...(replaced > 0
        ? [`${formatPlural(replaced, 'key pair')} of ${own?.owner} replaced by new ones`]
        : []),
      ...next,
    ],
  })
  if (begun === null || dataDir === null)
    return report(`the ${what} key of the settings is ${name}`, ...(ok ? listNextSteps(scope) : []))
  const head = begun.resumed
    ? `continued an interrupted rotation; the ${what} key is ${name}`
    : `created a new ${what} key, ${name}`
  if (!ok)
    return report(
      head,
      `the previous ${what} key stays in ${dataDir} until these rows are readable: fix them and rotate again`,
    )
  await syncDatabaseFiles(whole, dataDir)
  await endKeyRotation(dataDir, own?.files)
  return report(head, `the previous ${what} key was removed; keep it with backups that were made under it`)
}

/** Throws `invalid_settings` where the database has tables of features that are not loaded: what they sealed would not be rewrapped. */
const checkFeaturesAreThere = async (database: Database, migrations: readonly Migration[]): Promise<void> => {
  const { rows } = await database.query<AppliedMigration>('SELECT name, checksum FROM migrations')
  const removed = await findRemovedFeatures(rows, migrations)
  if (removed.length > 0)
    throw toSettingsError(
      `the database has tables of features that are not loaded: ${removed.join(', ')}`,
      'put the features back, or drop their triggers, functions and tables, and then their rows of migrations',
    )
}

const listNextSteps = ({ name, processes, settings, keys, own }: SealingScope): string[] =>
  keys.previous.length > 0
    ? [`next: remove ${settings.previous} from the settings of ${processes}; it is no longer needed`]
    : [
        `to change the ${name} key:`,
        `  1. create one (${masterKeyCommand}); for ${processes} set ${settings.current} to it and`,
        `     ${settings.previous} to the old one; both can decrypt, only the first encrypts`,
        `  2. run ${resolveCommandName()} keys rotate${own ? ` --${own.option}` : ''} with the same settings`,
        `  3. remove ${settings.previous} again`,
      ]

const maxListedRows = 20

const formatRotation = (
  config: Config,
  { rewrapped, unreadable, settled }: KeyRotation,
  what: string,
): string[] => [
  `${describeDatabase(config)}: ${rewrapped === 0 ? 'no row needed rewrapping' : `${formatPlural(rewrapped, 'row')} rewrapped`}`,
  ...unreadable
    .slice(0, maxListedRows)
    .flatMap(({ reason, remedy }) => [`ERROR  ${reason}`, `       -> ${remedy}`]),
  ...(unreadable.length > maxListedRows
    ? [`ERROR  ${formatPlural(unreadable.length - maxListedRows, 'row')} more`]
    : []),
  ...(settled
    ? []
    : [
        `ERROR  another process still writes under another ${what} key`,
        '       -> restart all processes with the new settings, then rotate again',
      ]),
]
