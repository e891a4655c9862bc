import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { listFeatures } from '../../src/app/cli/features/list-features.ts'
import { loadFeatureSources, readFeatureMigrations } from '../../src/app/load-feature-sources.ts'
import { loadProject } from '../../src/project/load-project.ts'
import { isMasonError } from '../../src/state/errors.ts'
import { openFolder } from '../support/file-samples.ts'

const feature = (id: string, tables: readonly string[] = []): string =>
  `export default { kind: 'feature', id: '${id}', tables: ${JSON.stringify(tables)} }`

/** The features of a repository with these files, and all migrations with theirs. */
const load = async (path: string, files: Record<string, string>) => {
  for (const [name, text] of Object.entries({
    'mason.config.js': "export default { features: ['./features/*'] }",
    ...files,
  })) {
    await mkdir(dirname(join(path, name)), { recursive: true })
    await writeFile(join(path, name), text)
  }
  const { environment } = await loadProject({}, path)
  const sources = await loadFeatureSources(environment.MASON_FEATURES?.split(',') ?? [])
  return { sources, features: await listFeatures(sources), migrations: await readFeatureMigrations(sources) }
}

const findError = async (files: Record<string, string>): Promise<string> => {
  await using folder = await openFolder()
  const error: unknown = await load(folder.path, files).then(
    () => null,
    (reason) => reason,
  )
  if (!isMasonError(error, 'invalid_settings')) throw new Error(`no such error: ${error}`)
  return `${error.message} -> ${error.remedy}`.replaceAll(`${folder.path}/`, '')
}

describe('the features of a product', () => {
  test('come from folders and packages beside those of the build, with their migrations after all others', async () => {
    await using folder = await openFolder()
    const { features, migrations } = await load(folder.path, {
      'mason.config.js': "export default { features: ['./features/*', 'mason-feature-signs'] }",
      'features/notes/feature.ts': `const id: string = 'notes'\n${feature('notes', ['notes']).replace("'notes'", 'id')}`,
      'features/notes/notes.loop.ts':
        "export default { kind: 'loop', name: 'sorting notes', everyMs: 1, needs: {}, run() {} }",
      'features/notes/notes.test.ts': 'throw new Error("a test")',
      'features/notes/migrations/20200101_01_notes.sql': 'CREATE TABLE notes ()',
      'node_modules/mason-feature-signs/src/feature.ts': 'throw new Error("the source of a package")',
      'node_modules/mason-feature-signs/dist/feature.js': feature('signs', ['signs']),
      'node_modules/mason-feature-signs/migrations/29991231_01_signs.sql': 'CREATE TABLE signs ()',
    })
    expect(features.find(({ id }) => id === 'notes')).toMatchObject({ loops: ['sorting notes'] })
    const ids = features.map(({ id }) => id)
    expect(ids).toEqual(expect.arrayContaining(['notes', 'schedules', 'signs']))
    const names = migrations.map(({ name }) => name)
    expect(names.slice(-2)).toEqual(['notes/20200101_01_notes.sql', 'signs/29991231_01_signs.sql'])
  })

  test('are refused with both sides and the remedy', async () => {
    expect(await findError({ 'features/a/a.tool.ts': '' })).toBe(
      'features/a has no feature.ts -> add it: export default defineFeature({ id, tables: [] }), or remove the folder from features',
    )
    expect(await findError({ 'features/media/feature.ts': feature('media') })).toMatch(
      /media\/feature\.ts.* and .*media\/feature\.ts both define the feature "media" -> give one of them another id/,
    )
    expect(await findError({ 'features/a/feature.ts': feature('a'), 'features/a/a.cron.ts': '' })).toMatch(
      /^features\/a\/a\.cron\.ts has the unknown suffix \.cron\.ts -> use one of/,
    )
    expect(await findError({ 'features/a/feature.ts': feature('a'), 'features/a/a.keys.ts': '' })).toBe(
      "features/a/a.keys.ts is a keys file, which only a feature of Mason's own repository has -> remove it",
    )
    expect(await findError({ 'features/a/feature.ts': feature('A note') })).toMatch(
      /has the id "A note" -> use lower-case letters/,
    )
    const broken = {
      'features/a/feature.ts': feature('a'),
      'features/a/a.loop.ts': '\nthrow new Error("no key")',
    }
    expect(await findError(broken)).toBe(
      'features/a/a.loop.ts cannot be loaded: no key (features/a/a.loop.ts:2:7) -> correct the file',
    )
  })

  test('keep to tables of their own', async () => {
    const withMigration = (sql: string, ...tables: string[]) => ({
      'features/a/feature.ts': feature('a', tables),
      'features/a/migrations/20990101_01_a.sql': sql,
    })
    expect(await findError(withMigration('alter table runs add column mine int', 'a'))).toBe(
      'features/a/migrations/20990101_01_a.sql of the feature "a" touches the table "runs" of the core -> name the table in feature.ts if it is its own, or remove the statement',
    )
    expect(await findError(withMigration('GRANT SELECT ON schedules TO mason_business'))).toContain(
      'touches the table "schedules" of the feature "schedules"',
    )
    expect(await findError(withMigration('', 'runs'))).toBe(
      'the feature "a" and the core both have the table "runs" -> give the table of "a" another name',
    )
    for (const sql of [
      'CREATE TABLE a (); COMMIT',
      "SELECT ';'; start  transaction",
      'CREATE TABLE a (); -- x\nEND;',
    ])
      expect(await findError(withMigration(sql, 'a'))).toMatch(
        /20990101_01_a\.sql has the statement (COMMIT|START +TRANSACTION|END) -> remove it: a migration is one transaction/,
      )
    expect(await findError(withMigration('DO $$ BEGIN DROP TABLE runs; END $$', 'a'))).toContain(
      'has the statement DO -> remove it: a migration is one transaction of plain statements',
    )
    const unnamed = { 'features/a/feature.ts': feature('a'), 'features/a/migrations/1.sql': '' }
    expect(await findError(unnamed)).toMatch(/1\.sql is not named as a migration -> name it <date>_<number>/)
  })
})
