import { type Config, type Environment, readConfig } from '../infra/config/config.ts'
import { masterKeyCommand } from '../infra/config/settings.ts'
import type { Database } from '../infra/database/database.ts'
import { openDatabase } from '../infra/database/open-database.ts'
import { type KeyRotation, rewrapRows } from '../infra/secrets/key-rotation.ts'
import {
  beginKeyRotation,
  endKeyRotation,
  openMasterKeys,
  syncDatabaseFiles,
} from '../infra/secrets/master-key-files.ts'
import type { Scrubber } from '../infra/secrets/scrubber.ts'
import { addSettingSecrets } from '../infra/secrets/setting-secrets.ts'
import { describeDatabase } from './banner.ts'
import { resolveCommandName } from './command-name.ts'
import { exitCodes } from './errors.ts'
import { listenForInterrupt } from './interrupts.ts'
import { createLog } from './log.ts'
import { formatPlural } from './terminal.ts'

/**
 * `mason keys rotate`: encrypts the stored secrets of vendors under the current master key; embedded, under a new one.
 * Prints what it did and the next steps. Exit code 1 while there are rows that it cannot read.
 */
export const rotateKeys = async (env: Environment, scrubber: Scrubber): Promise<number> => {
  const config = readConfig(env, { role: 'keys' })
  addSettingSecrets(config, scrubber)
  const database = await openDatabase(config, createLog(config.logLevel, process.stderr, scrubber))
  const interrupt = listenForInterrupt(new Error('stopped; run the command again to continue'))
  try {
    const report = await rotate(config, database, interrupt.signal)
    process.stdout.write(`${report.text.join('\n')}\n`)
    return report.ok ? exitCodes.done : exitCodes.failed
  } finally {
    interrupt.stop()
    await database.close()
  }
}

/** Embedded without a master key in the settings, the rotation begins with a new key in the data folder. */
const rotate = async (
  config: Config,
  database: Database,
  signal: AbortSignal,
): Promise<{ ok: boolean; text: string[] }> => {
  const dataDir =
    config.database.kind === 'embedded' && config.masterKey === null ? config.database.dataDir : null
  const begun = dataDir === null ? null : await beginKeyRotation(dataDir)
  const keys = await openMasterKeys(config)
  const rotation = await rewrapRows(database, keys, signal)
  const { name } = keys.current()
  const ok = rotation.unreadable.length === 0 && rotation.settled
  const report = (head: string, ...next: string[]) => ({
    ok,
    text: [head, ...formatRotation(config, rotation), ...next],
  })
  if (begun === null || dataDir === null)
    return report(`the master key of the settings is ${name}`, ...(ok ? listNextSteps(config) : []))
  const head = begun.resumed
    ? `continued an interrupted rotation; the master key is ${name}`
    : `created a new master key, ${name}`
  if (!ok)
    return report(
      head,
      `the previous master key stays in ${dataDir} until these rows are readable: fix them and rotate again`,
    )
  await syncDatabaseFiles(database, dataDir)
  await endKeyRotation(dataDir)
  return report(head, 'the previous master key was removed; keep it with backups that were made under it')
}

const listNextSteps = ({ previousMasterKeys }: Config): string[] =>
  previousMasterKeys.length > 0
    ? ['next: remove MASON_PREVIOUS_MASTER_KEYS from the settings of every process; it is no longer needed']
    : [
        'to change the master key:',
        `  1. create one (${masterKeyCommand}); for every process set MASON_MASTER_KEY to it and`,
        '     MASON_PREVIOUS_MASTER_KEYS to the old one; both can decrypt, only the first encrypts',
        `  2. run ${resolveCommandName()} keys rotate with the same settings`,
        '  3. remove MASON_PREVIOUS_MASTER_KEYS again',
      ]

const maxListedRows = 20

const formatRotation = (config: Config, { rewrapped, unreadable, settled }: KeyRotation): string[] => [
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
        'ERROR  another process still writes under another master key',
        '       -> restart all processes with the new settings, then rotate again',
      ]),
]
