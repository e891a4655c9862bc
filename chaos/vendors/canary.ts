import { dumpDatabase, leaksOf } from '../../test/support/registry-canary.ts'
import type { Stage } from './stage.ts'

export type SecretSearch = { characters: Record<string, number>; failures: string[] }

/** Looks for every secret of the stage in what was logged and shown, in the database and in all that went to Redis. */
export const findSecrets = async (stage: Stage): Promise<SecretSearch> => {
  const { commands, keys } = await stage.redis.dump()
  const places = {
    output: stage.output.join('\n'),
    database: await dumpDatabase(stage.sql),
    'Redis, commands': commands,
    'Redis, keys': keys,
  }
  const failures = Object.entries(places).flatMap(([place, text]) => [
    ...leaksOf(place, text, stage.secrets),
    ...(landmarks[place as keyof typeof places](stage).every((mark) => text.includes(mark))
      ? []
      : [`the dump of ${place} is not whole`]),
  ])
  const characters = Object.fromEntries(Object.entries(places).map(([place, text]) => [place, text.length]))
  return { characters, failures }
}

/** What has to be found, or the search has looked in the wrong place. */
const landmarks = {
  output: () => ['not now, ', 'model_rate_limited'],
  database: ({ secrets }: Stage) => [
    'usage_ledger',
    'unread_answers',
    ...secrets.slice(0, 1).map((one) => one.slice(-4)),
  ],
  'Redis, commands': ({ backend }: Stage) => [backend.config.queuePrefix, 'publish'],
  'Redis, keys': ({ backend }: Stage) => [backend.config.queuePrefix],
}
