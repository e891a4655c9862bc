import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { Redis } from 'ioredis'
import pg from 'pg'
import { createBinding } from '../../src/infra/database/named-parameters.ts'
import type { Sql, SqlValues } from '../../src/state/ports/sql.ts'

/** Looks for secrets in everything that a runtime leaves behind or tells. */

/** As it is and cut off, and as headers, dumps and addresses write it. */
const formsOf = (secret: string): string[] => {
  const bytes = Buffer.from(secret)
  // whatever stands before it, one of the three ways in which base64 may cut it shows
  const inBase64 = [0, 1, 2].map((skip) => bytes.subarray(skip).toString('base64').slice(0, -4))
  return [secret, secret.slice(0, 16), secret.slice(-12), bytes.toString('hex'), ...inBase64]
}

/** Where one of these stands in a text: the place, and what stands before it. One pass over megabytes for all forms of all. */
export const leaksOf = (place: string, text: string, secrets: readonly string[]): string[] => {
  const forms = secrets.flatMap(formsOf).map((form) => form.replaceAll(/\W/g, '\\$&'))
  return [...text.matchAll(new RegExp(forms.join('|'), 'g'))].map(
    ({ index }) => `a secret is in ${place}: …${text.slice(Math.max(0, index - 120), index)}`,
  )
}

/** A connection as the user of this address, past all roles and policies of the runtime. */
export const openSql = async (url: string): Promise<Sql & AsyncDisposable> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const bind = createBinding()
  return {
    async query<Row>(text: string, values?: SqlValues) {
      const { rows } = await client.query(bind(text, values))
      return { rows: rows as Row[] }
    },
    [Symbol.asyncDispose]: () => client.end(),
  }
}

/** Every row of every table. `sql` has to see all of them: a table that it may not read is an error. */
export const dumpDatabase = async (sql: Sql): Promise<string> => {
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
      return redis.zrange(key, '0', '-1', 'WITHSCORES')
    case 'stream':
      return redis.xrange(key, '-', '+')
    default:
      return null
  }
}

/** All keys of Redis, of every type. */
const dumpRedis = async (redis: Redis): Promise<string> => {
  const texts: string[] = []
  // others share this server, and their keys may change under our eyes
  for await (const keys of redis.scanStream({ count: 500 }))
    for (const key of keys as string[])
      texts.push(`${key} ${JSON.stringify(await readKey(redis, key).catch(() => null))}`)
  return texts.join('\n')
}

export type WatchedRedis = AsyncDisposable & {
  /** Every command that anyone sent since, scripts' own and messages too, and all that is stored now. */
  dump(): Promise<{ commands: string; keys: string }>
}

/** Jobs are gone from Redis once they are done, and messages at once: so all that is sent there is watched from now on. */
export const watchRedis = async (url: string, prefix: string): Promise<WatchedRedis> => {
  const redis = new Redis(url)
  const commands: string[] = []
  const socket = await watchCommands(url, (line) => {
    if (line.includes(prefix)) commands.push(line)
  })
  return {
    async dump() {
      const keys = await dumpRedis(redis)
      return { commands: commands.join('\n'), keys }
    },
    async [Symbol.asyncDispose]() {
      socket.destroy()
      await redis.quit()
    },
  }
}

/**
 * A line for each command that anyone sends. Without ioredis: its `monitor()` takes a command that comes in the same
 * packet as the OK for a reply to one of its own, and throws where it cannot be caught.
 */
const watchCommands = async (url: string, take: (line: string) => void): Promise<Socket> => {
  const { hostname, port, username, password } = new URL(url)
  const user = [username || 'default', password].map(decodeURIComponent).join(' ')
  const asks = [...(password === '' ? [] : [`AUTH ${user}`]), 'MONITOR']
  const socket = connect(Number(port || 6379), hostname)
  socket.write(asks.map((ask) => `${ask}\r\n`).join(''))
  await new Promise<void>((resolve, reject) => {
    let open = asks.length
    socket.once('error', reject)
    createInterface({ input: socket }).on('line', (line) => {
      if (open === 0) take(line)
      else if (line !== '+OK') reject(new Error(`Redis does not let this test watch it: ${line}`))
      else if (--open === 0) resolve()
    })
  })
  return socket
}
