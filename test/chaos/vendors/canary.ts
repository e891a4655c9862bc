import { Redis } from 'ioredis'
import type { Stage } from './stage.ts'

/** Every row of every table, as the superuser sees it. */
const dumpDatabase = async ({ sql }: Stage): Promise<string> => {
  const { rows } = await sql.query<{ name: string }>(
    `SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables
     WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')`,
  )
  const texts: string[] = []
  for (const { name } of rows) {
    const found = await sql.query<{ text: string }>(`SELECT t::text AS text FROM ${name} t`)
    texts.push(name, ...found.rows.map(({ text }) => text))
  }
  return texts.join('\n')
}

const readKey = async (redis: Redis, key: string): Promise<unknown> => {
  switch (await redis.type(key)) {
    case 'string':
      return redis.get(key)
    case 'hash':
      return redis.hgetall(key)
    case 'list':
      return redis.lrange(key, 0, -1)
    case 'set':
      return redis.smembers(key)
    case 'zset':
      return redis.zrange(key, '0', '-1')
    case 'stream':
      return redis.xrange(key, '-', '+')
    default:
      return null
  }
}

const dumpRedis = async ({ backend }: Stage): Promise<string> => {
  const redis = new Redis(backend.config.redisUrl ?? '')
  const texts: string[] = []
  // others share this server, and their keys may change under our eyes
  for await (const keys of redis.scanStream({ count: 500 }))
    for (const key of keys as string[])
      texts.push(`${key} ${JSON.stringify(await readKey(redis, key).catch(() => null))}`)
  await redis.quit()
  return texts.join('\n')
}

/** As it is, and as headers, dumps and addresses write it. */
const formsOf = (secret: string): string[] => {
  const bytes = Buffer.from(secret)
  // whatever stands before it, one of the three ways in which base64 may cut it shows
  const inBase64 = [0, 1, 2].map((skip) => bytes.subarray(skip).toString('base64').slice(0, -4))
  return [secret, bytes.toString('hex'), ...inBase64]
}

export type Searched = { characters: Record<string, number>; failures: string[] }

/** Looks for every secret of the stage in what was logged and shown, in the database and in Redis. */
export const findSecrets = async (stage: Stage): Promise<Searched> => {
  const places = {
    output: stage.output.join('\n'),
    database: await dumpDatabase(stage),
    redis: await dumpRedis(stage),
  }
  const failures = Object.entries(places).flatMap(([place, text]) => [
    ...stage.secrets.flatMap((secret) =>
      formsOf(secret).flatMap((form) => {
        const at = text.indexOf(form)
        return at === -1 ? [] : [`a secret is in ${place}: …${text.slice(Math.max(0, at - 100), at)}`]
      }),
    ),
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
  redis: ({ backend }: Stage) => [backend.queuePrefix],
}
