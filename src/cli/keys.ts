import { makeMasterKey } from '../infra/config/settings.ts'
import { type Config, type Environment, readConfig } from '../infra/config.ts'
import type { Database } from '../infra/database/database.ts'
import { openDatabase } from '../infra/database/open.ts'
import {
  beginRotation,
  endRotation,
  keepDatabaseFiles,
  openMasterKeys,
} from '../infra/secrets/master-key-files.ts'
import { type Rotation, rewrapRows } from '../infra/secrets/rotate.ts'
import type { Scrubber } from '../infra/secrets/scrubber.ts'
import { scrubSettings } from '../infra/secrets/setting-secrets.ts'
import { databaseText } from './banner.ts'
import { exitCodes } from './failure.ts'
import { createLog } from './log.ts'
import { plural } from './terminal.ts'

/**
 * `mason keys rotate`: puts what is stored of vendors' secrets under the current master key; embedded, under a new one.
 * Says what it did and what is to be done next. Exit code 1 while rows are left that it cannot read.
 */
export const rotateKeys = async (env: Environment, scrubber: Scrubber): Promise<number> => {
  const config = readConfig(env, { role: 'keys' })
  scrubSettings(config, scrubber)
  const database = await openDatabase(config, createLog(config.logLevel, process.stderr, scrubber))
  const stop = new AbortController()
  const onInterrupt = (): void => stop.abort(new Error('stopped; call it again to go on'))
  process.once('SIGINT', onInterrupt)
  try {
    const lines =
      config.database.kind === 'embedded' && config.masterKey === null
        ? await rotateEmbedded(config, config.database.dataDir, database, stop.signal)
        : await rotateBySettings(config, database, stop.signal)
    process.stdout.write(`${lines.text.join('\n')}\n`)
    return lines.ok ? exitCodes.done : exitCodes.failed
  } finally {
    process.off('SIGINT', onInterrupt)
    await database.close()
  }
}

type Told = { ok: boolean; text: string[] }

const rotateEmbedded = async (
  config: Config,
  dataDir: string,
  database: Database,
  signal: AbortSignal,
): Promise<Told> => {
  const { resumed } = await beginRotation(dataDir)
  const keys = await openMasterKeys(config)
  const rotation = await rewrapRows(database, keys, signal)
  const head = resumed
    ? `went on with an earlier rotation that was cut off; the master key is ${keys.current().name}`
    : `made a new master key, ${keys.current().name}`
  if (!isDone(rotation))
    return {
      ok: false,
      text: [
        head,
        ...told(config, rotation),
        `the master key before is kept in ${dataDir} until these can be read: mend them and rotate again`,
      ],
    }
  await keepDatabaseFiles(database, dataDir)
  await endRotation(dataDir)
  return {
    ok: true,
    text: [head, ...told(config, rotation), 'the master key before was removed; backups need their own'],
  }
}

const rotateBySettings = async (config: Config, database: Database, signal: AbortSignal): Promise<Told> => {
  const keys = await openMasterKeys(config)
  const rotation = await rewrapRows(database, keys, signal)
  const text = [`the master key of the settings is ${keys.current().name}`, ...told(config, rotation)]
  if (!isDone(rotation)) return { ok: false, text }
  return {
    ok: true,
    text: [
      ...text,
      ...(config.previousMasterKeys.length > 0
        ? [
            'next: take MASON_PREVIOUS_MASTER_KEYS out of the settings of every process; nothing needs it any more',
          ]
        : steps),
    ],
  }
}

const steps = [
  'to change the master key:',
  `  1. make one (${makeMasterKey}) and set, for every process, MASON_MASTER_KEY to it and`,
  '     MASON_PREVIOUS_MASTER_KEYS to the one before; both are read, the first one writes',
  '  2. mason keys rotate, with the same settings',
  '  3. take MASON_PREVIOUS_MASTER_KEYS out again',
]

const isDone = ({ unreadable, settled }: Rotation): boolean => unreadable.length === 0 && settled

const mostShown = 20

const told = (config: Config, { rewrapped, unreadable, settled }: Rotation): string[] => [
  `${databaseText(config)}: ${rewrapped === 0 ? 'no row had to be rewrapped' : `${plural(rewrapped, 'row')} rewrapped`}`,
  ...unreadable
    .slice(0, mostShown)
    .flatMap(({ reason, remedy }) => [`FAULT  ${reason}`, `       -> ${remedy}`]),
  ...(unreadable.length > mostShown ? [`FAULT  ${plural(unreadable.length - mostShown, 'row')} more`] : []),
  ...(settled
    ? []
    : [
        'FAULT  somebody goes on writing under another master key',
        '       -> start all processes anew with the new settings, then rotate again',
      ]),
]
