// backends: either

import { describe, expect } from 'vitest'
import type { Database } from '../../../src/infra/database/database.ts'
import { silentLog } from '../../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import { type Hints, openHints } from '../../../src/infra/queue/hints.ts'
import { sealText } from '../../../src/infra/secrets/envelope.ts'
import { createMasterKeys } from '../../../src/infra/secrets/master-keys.ts'
import type { Registry } from '../../../src/models/ports/model-ports.ts'
import { sealHeaders } from '../../../src/models/registry/endpoints.ts'
import type { Clock } from '../../../src/state/ports/clock.ts'
import type { Log } from '../../../src/state/ports/log.ts'
import { deferred } from '../../support/deferred.ts'
import { test } from '../../support/integration-test.ts'
import { newMasterKey, openaiSettings, openTestRegistry, registryOptions } from '../../support/registry.ts'
import { until } from '../../support/runs.ts'

/** Two registries stand for two processes: each with a database of its own, embedded with one that both share. */

const opened: Registry[] = []
const masterKeys = createMasterKeys(newMasterKey())

test.beforeAll(async ({ database }) => {
  await (await openTestRegistry(database))[Symbol.asyncDispose]()
})
test.afterEach(async ({ database }) => {
  for (const registry of opened.splice(0)) await registry[Symbol.asyncDispose]()
  for (const table of ['grants', 'routes', 'models', 'vendor_keys', 'endpoints', 'vendors'])
    await database.query(`DELETE FROM ${table}`)
})

const follow = async (
  database: Database,
  more: Parameters<typeof openTestRegistry>[1] = {},
  on = database,
) => {
  const registry = await openTestRegistry(on, { masterKeys, ...more })
  opened.push(registry)
  return registry
}

const deafHints: Hints = {
  publish() {},
  subscribe: async () => async () => {},
  close: async () => {},
}

const addKey = (database: Database, id: string, secret: string, keys = masterKeys) => {
  const { master_key, wrapped_key, sealed } = sealText(
    secret,
    { purpose: 'secret', vendor_id: 'ven_a', row_id: id },
    keys,
  )
  return database.query(
    `INSERT INTO vendor_keys (key_id, vendor_id, label, master_key, wrapped_key, sealed_secret, last_four, limits, status)
     VALUES ($1, 'ven_a', $1, $2, $3, $4, 'xxxx', '{"rpm": 60, "monthly_cost": 1.5}', 'active')`,
    [id, master_key, wrapped_key, sealed],
  )
}

const addVendor = async (database: Database) => {
  await database.query(`INSERT INTO vendors (vendor_id, name, status) VALUES ('ven_a', 'a', 'active')`)
  const headers = sealHeaders(
    { 'x-key': '{{key}}', 'x-account': 'canary-of-a-header' },
    'ven_a',
    'end_a',
    masterKeys,
  )
  await database.query(
    `INSERT INTO endpoints (endpoint_id, vendor_id, name, base_url, protocol, categories, master_key, wrapped_key, sealed_headers, timeouts, status)
     VALUES ('end_a', 'ven_a', 'main', 'https://a.example/v1', 'openai', '{text}', $1, $2, $3, '{"idle_ms": 5}', 'active')`,
    [headers.master_key, headers.wrapped_key, headers.sealed_headers],
  )
}

const addModel = (database: Database, name: string, category = 'text') =>
  database.query(
    `INSERT INTO models (model_id, vendor_id, endpoint_id, name, upstream_name, category, dialect, prices, capabilities, status)
     VALUES ('mod_' || $1, 'ven_a', 'end_a', $1, 'up', $2, 'xml', '{"input": 0.15, "output": 0.6, "currency": "USD"}', '{vision}', 'active')`,
    [name, category],
  )

describe('the view', () => {
  test('holds all that a call needs, money in millionths', async ({ database }) => {
    await addVendor(database)
    await addKey(database, 'key_a', 'sk-secret-of-a')
    await addModel(database, 'm')
    await database.query(
      `INSERT INTO routes (route_id, role, models, strategy) VALUES ('rou_1', 'planner', '[{"model":"m"},{"model":"n","weight":3}]', 'weighted')`,
    )
    await database.query(`INSERT INTO grants (grant_id, key_id, user_id) VALUES ('gra_1', 'key_a', 'u1')`)
    const secrets: string[] = []
    const { view } = await follow(database, { onSecret: (secret) => secrets.push(secret) })
    expect(view.models.get('m')).toMatchObject({
      id: 'mod_m',
      upstream_name: 'up',
      dialect: 'xml',
      capabilities: ['vision'],
      prices: { input: 150_000, output: 600_000, cached_input: 150_000, currency: 'USD' },
      vendor: { name: 'a', active: true },
      endpoint: {
        headers: { 'x-key': '{{key}}', 'x-account': 'canary-of-a-header' },
        timeouts: { firstByteMs: 60_000, idleMs: 5, totalMs: 600_000 },
        allow_private: false,
        error: null,
      },
      format: null,
    })
    expect(view.routesByRole.get('planner')).toEqual({
      models: [
        { model: 'm', weight: 1 },
        { model: 'n', weight: 3 },
      ],
      strategy: 'weighted',
    })
    const [key] = view.keysByVendor.get('ven_a') ?? []
    expect(key).toMatchObject({
      limits: { rpm: 60, tpm: null, daily_tokens: null, monthly_cost: 1_500_000 },
      grants: [{ business_id: null, user_id: 'u1' }],
      error: null,
    })
    expect(key?.secret?.reveal()).toBe('sk-secret-of-a')
    expect(secrets).toEqual(expect.arrayContaining(['sk-secret-of-a', 'canary-of-a-header']))
    expect(JSON.stringify([...view.keysByVendor])).not.toContain('sk-secret-of-a')
  })

  test('gives a model that paints the whole time to its first byte, unless its endpoint says how long', async ({
    database,
  }) => {
    await addVendor(database)
    await addModel(database, 'painter', 'text-to-image')
    const { view } = await follow(database)
    expect(view.models.get('painter')?.endpoint.timeouts).toMatchObject({
      firstByteMs: 600_000,
      totalMs: 600_000,
    })
    await database.query(`UPDATE endpoints SET timeouts = '{"first_byte_ms": 7}'`)
    const { view: set } = await follow(database)
    expect(set.models.get('painter')?.endpoint.timeouts.firstByteMs).toBe(7)
  })

  test('keeps what it cannot open, with the reason', async ({ database }) => {
    await addVendor(database)
    await addKey(database, 'key_a', 'sk-lost', createMasterKeys(newMasterKey()))
    await addKey(database, 'key_b', 'sk-swapped')
    await addKey(database, 'key_c', 'sk-whole')
    await database.query(
      `UPDATE vendor_keys SET sealed_secret = c.sealed_secret, wrapped_key = c.wrapped_key FROM vendor_keys c WHERE vendor_keys.key_id = 'key_b' AND c.key_id = 'key_c'`,
    )
    await database.query(
      `UPDATE endpoints SET sealed_headers = set_byte(sealed_headers, 20, 255 - get_byte(sealed_headers, 20))`,
    )
    await addModel(database, 'm')
    const { view } = await follow(database)
    const keys = Object.fromEntries((view.keysByVendor.get('ven_a') ?? []).map((key) => [key.id, key]))
    expect(keys.key_a).toMatchObject({ secret: null, error: expect.stringContaining('master key') })
    expect(keys.key_b).toMatchObject({ secret: null, error: expect.stringContaining('cannot be decrypted') })
    expect(keys.key_c?.secret?.reveal()).toBe('sk-whole')
    expect(view.models.get('m')?.endpoint.error).toContain('headers of endpoint end_a')
  })

  test('keeps what did not change as it was, and opens anew what did', async ({ database }) => {
    await addVendor(database)
    await addKey(database, 'key_a', 'sk-secret-of-a')
    await addKey(database, 'key_b', 'sk-secret-of-b')
    await addModel(database, 'm')
    const registry = await follow(database)
    const before = registry.view
    await database.query(
      `UPDATE vendor_keys SET wrapped_key = set_byte(wrapped_key, 20, 255 - get_byte(wrapped_key, 20)) WHERE key_id = 'key_b'`,
    )
    await registry.refresh()
    const secretsOf = (view: Registry['view']) =>
      (view.keysByVendor.get('ven_a') ?? []).map(({ secret }) => secret)
    expect(registry.view).not.toBe(before)
    expect(registry.view.models.get('m')?.endpoint).toBe(before.models.get('m')?.endpoint)
    expect(secretsOf(registry.view)[0]).toBe(secretsOf(before)[0])
    expect(secretsOf(registry.view)[1]).toBeNull()
  })
})

describe('the models of the settings', () => {
  test('are in the view, by the settings of this process', async ({ database, elsewhere: other }) => {
    const openai = openaiSettings({ baseUrl: 'http://127.0.0.1:9/v1' })
    const mine = await follow(database, { openai })
    const theirs = await follow(
      database,
      { openai: { ...openai, apiKey: 'sk-another', model: 'gpt-y' } },
      other,
    )
    const none = await follow(database, {}, other)
    await mine.refresh()
    const shown = ({ view }: Registry) =>
      [...view.models.values()].map(({ id, name, vendor }) => [id, name, vendor.active])
    expect(shown(mine)).toEqual([
      ['mod_settings', 'gpt-x', true],
      ['mod_settings_embedding', 'embed-x', true],
    ])
    expect(shown(theirs)[0]).toEqual(['mod_settings', 'gpt-y', true])
    expect(shown(none)).toEqual([['mod_offline', 'mason-offline', true]])
    const keyOf = ({ view }: Registry) => view.keysByVendor.get('ven_settings')?.[0]
    expect(keyOf(mine)?.secret?.reveal()).toBe('sk-of-the-settings')
    expect(keyOf(theirs)?.secret?.reveal()).toBe('sk-another')
    expect(keyOf(none)).toBeUndefined()
    expect(none.view.models.get('mason-offline')).toMatchObject({
      endpoint: { base_url: 'http://offline.invalid/v1', protocol: 'openai' },
    })
  })

  test('take on what an admin set', async ({ database }) => {
    const registry = await follow(database, { openai: openaiSettings() })
    await database.query(
      `UPDATE models SET prices = '{"input":1,"output":2,"currency":"USD"}', name = 'renamed' WHERE model_id = 'mod_settings'`,
    )
    await database.query(`UPDATE vendor_keys SET limits = '{"rpm": 3}'`)
    await registry.refresh()
    expect(registry.view.models.get('gpt-x')?.prices?.input).toBe(1_000_000)
    expect(registry.view.keysByVendor.get('ven_settings')?.[0]?.limits.rpm).toBe(3)
  })
})

describe('following', () => {
  test('a change shows at once where it was made, and by the hint elsewhere', async ({
    backend,
    database,
    elsewhere: other,
  }) => {
    await addVendor(database)
    const { redisUrl } = backend.config
    const open = () =>
      openHints(
        redisUrl
          ? { kind: 'redis', url: redisUrl, prefix: backend.config.queuePrefix, log: silentLog }
          : { kind: 'embedded', log: silentLog },
      )
    const hints = await open()
    const theirHints = redisUrl ? await open() : hints
    // were it not for the hint, it would be seen after an hour
    const mine = await follow(database, { hints, pollEveryMs: 3_600_000 })
    const theirs = await follow(database, { hints: theirHints, pollEveryMs: 3_600_000 }, other)
    let n = 0
    // the first hints may come before it hears
    await until('a hint to be heard', async () => {
      await addModel(database, `m${++n}`)
      await mine.refresh()
      expect(mine.view.models.has(`m${n}`)).toBe(true)
      return theirs.view.models.size > 0
    })
    for (const registry of opened.splice(0)) await registry[Symbol.asyncDispose]()
    await hints.close()
    if (theirHints !== hints) await theirHints.close()
  })

  test('a change shows on every process without any hint', async ({ database, elsewhere: other }) => {
    await addVendor(database)
    const mine = await follow(database, { hints: deafHints })
    const theirs = await follow(database, { hints: deafHints }, other)
    await addModel(database, 'm')
    await until('both see it', () => [mine, theirs].every(({ view }) => view.models.has('m')))
    await database.query('DELETE FROM models')
    await until('it is gone', () => !theirs.view.models.has('m'))
  })

  test('opening does not wait until hints arrive', async ({ database }) => {
    await addVendor(database)
    const heard = deferred<() => Promise<void>>()
    const registry = await follow(database, { hints: { ...deafHints, subscribe: () => heard.promise } })
    await addModel(database, 'm')
    await until('a look sees it', () => registry.view.models.has('m'))
    let hasLeft = false
    heard.resolve(async () => {
      hasLeft = true
    })
    await registry[Symbol.asyncDispose]()
    opened.pop()
    expect(hasLeft).toBe(true)
  })

  test('concurrent refreshes share the loads, and each sees all earlier changes', async ({ database }) => {
    await addVendor(database)
    const loads = { now: 0, most: 0, all: 0 }
    const watched: Database = {
      ...database,
      async query(text, values) {
        const isLoad = text.includes('response_formats')
        if (isLoad) loads.most = Math.max(loads.most, ++loads.now)
        if (isLoad) loads.all++
        try {
          return await database.query(text, values)
        } finally {
          if (isLoad) loads.now--
        }
      },
    }
    const registry = await follow(database, { hints: deafHints, pollEveryMs: 60_000 }, watched)
    loads.all = 0
    await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        await addModel(database, `m${index}`)
        await registry.refresh()
        expect(registry.view.models.has(`m${index}`)).toBe(true)
      }),
    )
    expect(loads.most).toBe(1)
    expect(loads.all).toBeLessThanOrEqual(20)
    loads.all = 0
    await Promise.all(Array.from({ length: 50 }, () => registry.refresh()))
    expect(loads.all).toBe(1)
  })

  test('hints that come together make one look', async ({ database }) => {
    let hear = (_: string): void => {}
    const hints: Hints = {
      ...deafHints,
      subscribe: async (_, handler) => {
        hear = handler
        return async () => {}
      },
    }
    let looks = 0
    const counted: Database = {
      ...database,
      query: (text, values) => {
        if (text === 'SELECT version FROM registry_version') looks++
        return database.query(text, values)
      },
    }
    const gathered = deferred<void>()
    const sleep: Clock['sleep'] = (ms, signal) =>
      ms < 1000 ? gathered.promise : systemClock.sleep(ms, signal)
    await follow(database, { hints, clock: { ...systemClock, sleep }, pollEveryMs: 3_600_000 }, counted)
    await until('the first look', () => looks === 1)
    for (let n = 0; n < 50; n++) hear('')
    gathered.resolve()
    await until('the look after the hints', () => looks === 2)
    hear('')
    await until('the look after a later hint', () => looks > 2)
    expect(looks).toBe(3)
  })

  test('a load that fails keeps the view, says so, and is tried again', async ({ database }) => {
    await addVendor(database)
    let isBroken = false
    const unsteady: Database = {
      ...database,
      query: (text, values) =>
        isBroken && text.includes('response_formats')
          ? Promise.reject(new Error('gone'))
          : database.query(text, values),
    }
    const said: string[] = []
    const log: Log = { ...silentLog, warn: (_, message) => said.push(message) }
    const registry = await follow(database, { hints: deafHints, log, pollEveryMs: 10 }, unsteady)
    const { view } = registry
    isBroken = true
    await addModel(database, 'm')
    await until('it is tried again', () => said.length > 1)
    expect(registry.view).toBe(view)
    expect(said[0]).toContain('stays in use')
    isBroken = false
    await until('it is read again', () => registry.view.models.has('m'))
  })

  test('a closed registry reads nothing more', async ({ database }) => {
    let asked = 0
    const counted: Database = {
      ...database,
      query: (text, values) => {
        asked++
        return database.query(text, values)
      },
    }
    const hints = (await registryOptions(database)).hints
    const registry = await follow(database, { hints, pollEveryMs: 5 }, counted)
    await registry[Symbol.asyncDispose]()
    opened.pop()
    const before = asked
    hints.publish('registry', '')
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    expect(asked).toBe(before)
  })
})
