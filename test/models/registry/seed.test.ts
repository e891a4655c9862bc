// backends: both

import { describe, expect } from 'vitest'
import { builtInFormats } from '../../../src/features/response-formats/built-in/built-in-formats.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import { openSealedText } from '../../../src/infra/secrets/envelope.ts'
import { createMasterKeys } from '../../../src/infra/secrets/master-keys.ts'
import { type RegistryRows, readRegistryRows, toSealed } from '../../../src/models/registry/registry-rows.ts'
import { seedRegistry } from '../../../src/models/registry/registry-seed.ts'
import { builtInCategories } from '../../../src/models/schemas/catalog.ts'
import type { FormatInput } from '../../../src/models/schemas/response-format.ts'
import { test as integrationTest } from '../../support/integration-test.ts'
import { newMasterKey, openaiSettings } from '../../support/registry.ts'

let statements = 0

const test = integrationTest.extend('database', { scope: 'file' }, async ({ backend }, { onCleanup }) => {
  const opened = await backend.openDatabase()
  onCleanup(() => opened.close())
  return {
    ...opened,
    query: (text, values) => {
      statements++
      return opened.query(text, values)
    },
    transaction: (work) => {
      statements++
      return opened.transaction(work)
    },
  }
})
test.beforeEach(async ({ database }) => {
  for (const table of [
    'grants',
    'routes',
    'models',
    'vendor_keys',
    'endpoints',
    'vendors',
    'response_formats',
    'categories',
  ])
    await database.query(`DELETE FROM ${table}`)
})

const masterKeys = createMasterKeys(newMasterKey())
const format = (name: string, more: Partial<FormatInput> = {}): FormatInput => ({
  name,
  category: 'text',
  paths: { text: 'output.text' },
  samples: [{ raw: { output: { text: 'hi' } }, expected: { text: 'hi' } }],
  ...more,
})
const base = { masterKeys, openai: null, formats: [] }
const seed = (database: Database, more: Partial<Parameters<typeof seedRegistry>[0]> = {}) =>
  seedRegistry({ ...base, ...more, database })
const cost = async (work: () => Promise<unknown>): Promise<number> => {
  statements = 0
  await work()
  return statements
}
const versionOf = async (database: Database) => Number((await readRegistryRows(database)).version)

describe('the built-in rows', () => {
  test('contain the categories', async ({ database }) => {
    const { categories } = await seed(database)
    expect(categories.map(({ name }) => name).sort()).toEqual([...builtInCategories].sort())
    expect(categories.every(({ built_in }) => built_in)).toBe(true)
  })

  test('are seeded again with one statement and no new version', async ({ database }) => {
    const formats = [format('a'), format('b', { stream: undefined })]
    await seed(database, { openai: openaiSettings(), formats })
    const before = await versionOf(database)
    expect(await cost(() => seed(database, { openai: openaiSettings(), formats }))).toBe(1)
    expect(await versionOf(database)).toBe(before)
  })

  test('are seeded into an empty registry by many processes at once without a conflict', async ({
    database,
  }) => {
    const formats = [format('a'), format('b')]
    const all = await Promise.all(
      Array.from({ length: 8 }, () => seed(database, { openai: openaiSettings(), formats })),
    )
    for (const rows of all) expect(rows).toEqual(all[0])
    expect(all[0]?.models.map(({ name }) => name)).toEqual(['gpt-x', 'embed-x'])
    expect(all[0]?.formats.map(({ name }) => name).sort()).toEqual(['a', 'b'])
  })

  test('are written only where they changed', async ({ database }) => {
    const marks = (rows: RegistryRows) =>
      Object.fromEntries(rows.formats.map(({ name, mark }) => [name, mark]))
    const before = marks(await seed(database, { formats: [format('a'), format('b')] }))
    const changed = format('b', { paths: { text: 'output.said' } })
    const rows = await seed(database, { formats: [format('a'), changed] })
    expect(marks(rows)).toEqual({ a: before.a, b: expect.not.stringMatching(`^${before.b}$`) })
    expect(
      Object.fromEntries(rows.formats.map(({ name, definition }) => [name, definition.paths.text])),
    ).toEqual({
      a: 'output.text',
      b: 'output.said',
    })
  })

  test("are those of the new version after an upgrade, and an admin's copy stays as it is", async ({
    database,
  }) => {
    const [current] = builtInFormats().filter(({ name }) => name === 'anthropic-messages')
    if (current === undefined) throw new Error('no such format')
    const old = { ...current, stream: undefined, paths: { text: 'content[0].text' } }
    const [stored] = (await seed(database, { formats: [old] })).formats
    await database.query(
      `INSERT INTO response_formats (format_id, name, category, definition, status)
       SELECT 'fmt_copy', 'mine', category, definition, 'active' FROM response_formats`,
    )
    const { formats } = await seed(database, { formats: [current] })
    const find = (id: string | undefined) => formats.find((row) => row.id === id)
    expect(find(stored?.id)).toMatchObject({ definition: { paths: current.paths } })
    expect(find('fmt_copy')).toMatchObject({ name: 'mine', definition: stored?.definition })
  })

  test('of a version that stored samples, or found one that failed, are stored anew', async ({
    database,
  }) => {
    const formats = builtInFormats()
    await seed(database, { formats })
    await database.query(
      `UPDATE response_formats SET status = 'inactive', faults = '[{"pointer":"/samples/0","detail":"no text"}]',
         definition = json_build_object('paths', '{"text":"a"}'::json, 'samples', '[{"raw":{"a":"hi"},"expected":{"text":"hi"}}]'::json)`,
    )
    await seed(database, { formats })
    const { rows } = await database.query(
      `SELECT DISTINCT status, faults::text AS faults, definition->>'samples' AS samples FROM response_formats`,
    )
    expect(rows).toEqual([{ status: 'active', faults: '[]', samples: '[]' }])
  })

  test('contain the formats, which are unchanged at the next start', async ({ database }) => {
    const formats = builtInFormats()
    const { formats: rows } = await seed(database, { formats })
    expect(rows).toHaveLength(formats.length)
    expect(await cost(() => seed(database, { formats }))).toBe(1)
  })

  test("give way to an admin's format and category of the same name", async ({ database }) => {
    await database.query(
      `INSERT INTO categories (category_id, name, description) VALUES ('cat_own', 'text', 'mine')`,
    )
    await database.query(
      `INSERT INTO response_formats (format_id, name, category, definition, status) VALUES ('fmt_own', 'a', 'text', '{"paths": {}, "samples": []}', 'active')`,
    )
    const options = { formats: [format('a')] }
    const { formats, categories } = await seed(database, options)
    expect(Object.fromEntries(formats.map(({ name, built_in }) => [name, built_in]))).toEqual({
      a: false,
      'a (built in)': true,
    })
    expect(categories.filter(({ name }) => name === 'text')).toEqual([{ name: 'text', built_in: true }])
    expect(await cost(() => seed(database, options))).toBe(1)
  })
})

describe('the rows of the settings', () => {
  test('hold what the settings say, the secret sealed', async ({ database }) => {
    const rows = await seed(database, { openai: openaiSettings({ baseUrl: 'http://127.0.0.1:9/v1' }) })
    expect(rows.vendors).toMatchObject([{ id: 'ven_settings', status: 'active' }])
    expect(rows.endpoints).toMatchObject([
      { id: 'end_settings', base_url: 'http://127.0.0.1:9/v1', protocol: 'openai', allow_private: true },
    ])
    expect(rows.models).toMatchObject([
      { id: 'mod_settings', name: 'gpt-x', upstream_name: 'gpt-x', category: 'text' },
      { id: 'mod_settings_embedding', name: 'embed-x', category: 'embedding' },
    ])
    const [key] = rows.keys
    if (!key) throw new Error('there is no key')
    const place = { purpose: 'secret' as const, vendor_id: 'ven_settings', row_id: 'key_settings' }
    expect(openSealedText(toSealed(key), place, masterKeys).reveal()).toBe('sk-of-the-settings')
    const { rows: shown } = await database.query('SELECT to_json(k)::text AS text FROM vendor_keys k')
    expect(JSON.stringify(shown)).not.toContain('sk-of-the-settings')
  })

  test('follow a change, and keep what an admin set', async ({ database }) => {
    await seed(database, { openai: openaiSettings() })
    await database.query(
      `UPDATE models SET prices = '{"input":1,"output":2,"currency":"USD"}', context_window = 9000`,
    )
    await database.query(`UPDATE vendor_keys SET limits = '{"rpm":60}'`)
    const openai = openaiSettings({
      apiKey: 'sk-another',
      model: 'gpt-y',
      baseUrl: 'https://other.example/v1',
    })
    const rows = await seed(database, { openai })
    expect(rows.models[0]).toMatchObject({ name: 'gpt-y', context_window: 9000, prices: { input: 1 } })
    expect(rows.keys[0]).toMatchObject({ limits: { rpm: 60 } })
    expect(rows.endpoints[0]).toMatchObject({ base_url: 'https://other.example/v1' })
    const { rows: keys } = await database.query('SELECT last_four FROM vendor_keys')
    expect(keys).toEqual([{ last_four: 'ther' }])
    expect(await cost(() => seed(database, { openai }))).toBe(1)
  })

  test('are disabled when the settings are gone, and come back with them', async ({ database }) => {
    await seed(database, { openai: openaiSettings() })
    const gone = await seed(database)
    for (const list of [gone.vendors, gone.keys, gone.endpoints, gone.models])
      expect(list.map(({ status }) => status)).toEqual(list.map(() => 'disabled'))
    expect(gone.models).toHaveLength(2)
    expect(await cost(() => seed(database))).toBe(1)
    const back = await seed(database, { openai: openaiSettings() })
    for (const list of [back.vendors, back.keys, back.endpoints, back.models])
      expect(list.map(({ status }) => status)).toEqual(list.map(() => 'active'))
  })

  test('have no active key where only an address is set', async ({ database }) => {
    await seed(database, { openai: openaiSettings() })
    const openai = openaiSettings({ apiKey: null, baseUrl: 'http://127.0.0.1:9/v1' })
    const rows = await seed(database, { openai })
    expect(rows.keys.map(({ status }) => status)).toEqual(['disabled'])
    expect(await cost(() => seed(database, { openai }))).toBe(1)
  })

  test('give way where an admin has the alias, and to each other', async ({ database }) => {
    await seed(database)
    await database.query(
      `INSERT INTO vendors (vendor_id, name, status) VALUES ('ven_1', 'settings', 'active')`,
    )
    await database.query(
      `INSERT INTO endpoints (endpoint_id, vendor_id, name, base_url, protocol, status) VALUES ('end_1', 'ven_1', 'e', 'https://a.example', 'openai', 'active')`,
    )
    await database.query(
      `INSERT INTO models (model_id, vendor_id, endpoint_id, name, upstream_name, category, dialect, status)
       VALUES ('mod_1', 'ven_1', 'end_1', 'gpt-x', 'own', 'text', 'tools', 'active')`,
    )
    const openai = openaiSettings({ embeddingModel: 'gpt-x' })
    const names = (await seed(database, { openai })).models.map(({ name }) => name)
    expect(names).toEqual(['gpt-x', 'settings/gpt-x', 'mod_settings_embedding'])
    expect(await cost(() => seed(database, { openai }))).toBe(1)
  })

  test('may swap their aliases', async ({ database }) => {
    await seed(database, { openai: openaiSettings({ model: 'a', embeddingModel: 'b' }) })
    const { models } = await seed(database, { openai: openaiSettings({ model: 'b', embeddingModel: 'a' }) })
    expect(models.map(({ id, name }) => [id, name])).toEqual([
      ['mod_settings', 'b'],
      ['mod_settings_embedding', 'a'],
    ])
  })

  test('have a valid alias, whatever the vendor calls its model', async ({ database }) => {
    const { models } = await seed(database, {
      openai: openaiSettings({ model: '@cf/meta llama*3', embeddingModel: '***' }),
    })
    expect(models.map(({ name, upstream_name }) => [name, upstream_name])).toEqual([
      ['cf/meta-llama-3', '@cf/meta llama*3'],
      ['model', '***'],
    ])
  })

  test('are written without the secret where there is no master key', async ({ database }) => {
    const rows = await seed(database, { openai: openaiSettings(), masterKeys: createMasterKeys(null) })
    expect(rows.keys).toEqual([])
    expect(rows.models).toHaveLength(2)
  })
})
