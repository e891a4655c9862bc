import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Running, runCli, startCli } from '../support/cli.ts'
import { openOwnServers, serversMissing } from '../support/processes.ts'
import { inGate } from '../support/tier.ts'

let cwd: string
/** A server that takes connections and says nothing. */
const silent = async (): Promise<Server> => {
  const server = createServer((socket) => void socket.on('error', () => {}).resume())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return server
}
const addressOf = (server: Server): string => `127.0.0.1:${(server.address() as AddressInfo).port}`
const masterKey = randomBytes(32).toString('base64')

beforeAll(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'mason-signals-'))
})
afterAll(() => rm(cwd, { recursive: true, force: true }))

/** Starts a command with these settings, sends the signal once it waits for the silent server, and gives its end. */
const interrupted = async (
  args: string[],
  signal: NodeJS.Signals,
  toSettings: (address: string) => Record<string, string>,
) => {
  await using server = await silent()
  const waits = once(server, 'connection')
  const env = { MASON_MASTER_KEY: masterKey, MASON_AUTH: 'off', PORT: '0', ...toSettings(addressOf(server)) }
  const command = startCli(args, { cwd, env, group: true })
  await Promise.race([waits, command.ended])
  return { args, ...(await endWith(command, signal)) }
}

const endWith = async (command: Running, signal: NodeJS.Signals) => {
  command.kill(signal)
  const { code, stderr } = await command.ended
  return { code, stderr }
}

/** Resolves once the start of an embedded Mason has its data folder, and opens the database. */
const hasLock = async (folder: string): Promise<void> => {
  await expect.poll(() => readdir(folder).catch(() => []), { interval: 5 }).toContain('lock')
}

test('Ctrl-C while a start opens an embedded database ends it at once, and the next start works', async () => {
  const ends = await Promise.all(
    inGate(2, ['serve', 'dev', 'run hello']).map(async (line) => {
      const env = { DATA_DIR: await mkdtemp(join(cwd, 'data-')), PORT: '0' }
      const command = startCli(line.split(' '), { cwd, env, group: true })
      await hasLock(env.DATA_DIR)
      const { code } = await endWith(command, 'SIGINT')
      return { env, found: [line, code] }
    }),
  )
  const wanted: [string, number][] = [
    ['serve', 130],
    ['dev', 0],
    ['run hello', 130],
  ]
  expect(ends.map(({ found }) => found)).toEqual(inGate(2, wanted))
  const next = startCli(['serve'], { cwd, env: ends[0]?.env ?? {}, group: true })
  await next.says(/listens on/)
  expect(await endWith(next, 'SIGINT')).toMatchObject({ code: 0 })
})

describe('a start that waits', () => {
  const commands = inGate<[args: string[], signal: NodeJS.Signals]>(2, [
    [['serve'], 'SIGTERM'],
    [['dev'], 'SIGINT'],
    [['doctor'], 'SIGINT'],
    [['worker'], 'SIGTERM'],
    [['run', 'hello'], 'SIGINT'],
    [['migrate'], 'SIGTERM'],
    [['keys', 'rotate'], 'SIGTERM'],
  ])

  test('for a database that does not answer is ended by a signal at once', async () => {
    const ends = await Promise.all(
      commands.map(([args, signal]) =>
        interrupted(args, signal, (address) => ({
          DATABASE_URL: `postgres://mason:x@${address}/mason`,
          REDIS_URL: `redis://${address}`,
        })),
      ),
    )
    expect(ends).toEqual(
      commands.map(([args, signal]) => ({
        args,
        code: args[0] === 'dev' ? 0 : 130,
        stderr: `mason: cancelled by ${signal}\n`,
      })),
    )
  })

  test.skipIf(serversMissing !== null)(
    'for a queue that does not answer is ended by a signal at once',
    async () => {
      const backend = await openOwnServers()
      try {
        const { database } = backend.config
        const url = database.kind === 'postgres' ? database.url : ''
        const names = inGate(1, ['serve', 'worker'])
        const ends = await Promise.all(
          names.map((name) =>
            interrupted([name], 'SIGTERM', (address) => ({
              DATABASE_URL: url,
              REDIS_URL: `redis://${address}`,
            })),
          ),
        )
        expect(ends).toEqual(
          names.map((name) => ({ args: [name], code: 130, stderr: 'mason: cancelled by SIGTERM\n' })),
        )
      } finally {
        await backend.drop()
      }
    },
  )
})

test('a data folder that cannot be created ends the start with its reason', async () => {
  const env = { DATA_DIR: '/proc/nowhere/mason', PORT: '0' }
  const starts = inGate(2, [
    { args: ['serve'], env },
    { args: ['migrate'], env: { DATA_DIR: '/dev/null/mason' } },
    { args: ['run', 'hello'], env },
    { args: ['migrate'], env },
  ])
  const ends = await Promise.all(starts.map((start) => runCli(start.args, { cwd, env: start.env })))
  for (const { code, stderr } of ends) {
    expect(stderr).toMatch(/DATA_DIR.*\/(proc\/nowhere|dev\/null)/)
    expect(stderr).toContain('-> ')
    expect(code).toBe(2)
  }
})
