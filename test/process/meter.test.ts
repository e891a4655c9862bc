// asserts: invariants

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Database } from '../../src/infra/database/database.ts'
import type { KeyEntry } from '../../src/models/ports/model-ports.ts'
import type { Backend } from '../support/backend.ts'
import { addKey, addVendor, openMeter, spentOf } from '../support/meter.ts'
import { openOwnServers, serversMissing } from '../support/processes.ts'
import { count, until } from '../support/runs.ts'
import { scriptFlags } from '../support/script-flags.ts'
import { runAsAdmin, urlOf } from '../support/setup-served.ts'
import { onServers } from './servers.ts'

const script = fileURLToPath(new URL('../support/meter-process.ts', import.meta.url))

describe.skipIf(serversMissing !== null)(onServers('processes that meter and are killed'), () => {
  let backend: Backend
  let database: Database
  const children = new Set<ChildProcess>()

  beforeAll(async () => {
    backend = await openOwnServers()
    database = await backend.openDatabase()
  })
  afterAll(async () => {
    for (const child of children) child.kill('SIGKILL')
    await database?.close()
    await backend?.drop()
  })

  const clients = (more: string) => `pg_stat_activity WHERE backend_type = 'client backend' AND ${more}`
  const cutConnections = () =>
    runAsAdmin(
      `SELECT pg_terminate_backend(pid) FROM ${clients(`datname = '${backend.config.queuePrefix}'`)}`,
    )
  const others = clients('datname = current_database() AND pid <> pg_backend_pid()')

  /** `reported` are the requests that it knows to be in the ledger. */
  const start = (keys: readonly KeyEntry[]) => {
    const task = JSON.stringify({ url: urlOf(backend.config.queuePrefix), keys })
    const child = spawn(process.execPath, [...scriptFlags(), script, task], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    children.add(child)
    const reported: string[] = []
    createInterface({ input: child.stdout }).on('line', (line) => void reported.push(line))
    const kill = async (): Promise<void> => {
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
      children.delete(child)
    }
    return { reported, kill }
  }

  test('lose no reported usage, enter nothing twice and keep to limits together', async () => {
    const vendor = await addVendor(database)
    const limited = await addKey(database, vendor, { daily_tokens: 100_000 })
    const free = await addKey(database, vendor)
    const processes = [start([limited, free]), start([free, limited])]
    for (let cut = 0; cut < 3; cut++) {
      const before = processes.map(({ reported }) => reported.length)
      await until(
        'both are at work',
        () => processes.every(({ reported }, at) => reported.length > (before[at] ?? 0) + 50),
        90_000,
      )
      // with statements under way
      await cutConnections()
    }
    const before = processes.map(({ reported }) => reported.length)
    await until(
      'both are at work again',
      () => processes.every(({ reported }, at) => reported.length > (before[at] ?? 0)),
      90_000,
    )
    await Promise.all(processes.map(({ kill }) => kill()))
    // the server may still be at work on what they asked for
    await cutConnections()
    await until('they have left the server', async () => (await count(database, others)) === 0, 90_000)
    const reported = processes.flatMap((one) => one.reported)

    const entered = await database.query<{ request_id: string }>('SELECT request_id FROM usage_ledger')
    const ids = new Set(entered.rows.map((row) => row.request_id))
    expect(ids.size).toBe(entered.rows.length)
    expect(reported.filter((id) => !ids.has(id))).toEqual([])

    const orphans = await count(database, 'usage_reservations')
    await database.query(`UPDATE usage_reservations SET expires_at = clock_timestamp() - interval '1 hour'`)
    await using _one = openMeter(database)
    await using _two = openMeter(database)
    await until(
      'nothing is left under way',
      async () => (await count(database, 'usage_reservations')) === 0,
      90_000,
    )
    expect(await count(database, `usage_ledger WHERE status = 'lost'`)).toBe(orphans)
    for (const key of [limited, free]) {
      const { rows } = await database.query(
        `SELECT count(*)::int AS requests, sum(total_tokens)::int8 AS tokens, sum(cost_micro)::int8 AS cost_micro
         FROM usage_ledger WHERE key_id = $1`,
        [key.id],
      )
      expect((await spentOf(database, key)).day).toEqual({ span: 'day', ...rows[0] })
    }
    expect((await spentOf(database, limited)).day?.tokens).toBeLessThanOrEqual(100_000)
  })
})
