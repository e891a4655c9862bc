import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { openFolder } from '../support/file-samples.ts'

const root = join(import.meta.dirname, '..', '..')
const bin = join(root, 'dist', 'src', 'cli.js')

/** A repository of a product with these files, and Mason as its dependency. */
const openProduct = async (files: Record<string, string>) => {
  const folder = await openFolder()
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder.path, name)), { recursive: true })
    await writeFile(join(folder.path, name), text)
  }
  await mkdir(join(folder.path, 'node_modules'))
  await symlink(root, join(folder.path, 'node_modules', 'mason-runtime'))
  const run = (args: readonly string[], env: Record<string, string> = {}, input?: string) =>
    runCli(args, { cwd: folder.path, bin, env, ...(input !== undefined && { input }) })
  return { path: folder.path, run, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

const service = (id: string, needs: string) =>
  `import { defineRef, defineService } from 'mason-runtime/features'
  export default defineService({ provides: defineRef('a.${id}'), needs: { of: defineRef('${needs}') }, start: () => 1 })`
const feature = {
  'mason.config.ts': `export default { features: ['./a'] }`,
  'a/feature.ts': `import { defineFeature } from 'mason-runtime/features'
    export default defineFeature({ id: 'a', tables: [] })`,
}
const tool = (body: string) => `import { defineTool } from 'mason-runtime'
  import { z } from 'zod'
  ${body}
  export default defineTool({ name: 'greet', description: 'Greets.', kinds: ['call'], input: z.strictObject({}), reads: [], writes: [],
    run: (_state, { checkpoint }) => checkpoint({ summary: 'Greets', result: { text: 'Hello' } }) })`

test('`mason doctor` says that services need each other in a circle, and starts none', async () => {
  await using product = await openProduct({
    ...feature,
    'a/one.service.ts': service('one', 'a.two'),
    'a/two.service.ts': service('two', 'a.one'),
  })
  const { code, stdout } = await product.run(['doctor'])
  expect([code, stdout]).toEqual([1, expect.stringContaining('services need each other in a circle')])
})

test('`mason doctor` names a migration that fails, before there is a database', async () => {
  await using product = await openProduct({
    ...feature,
    'a/migrations/20261231_01_a.sql': 'CREATE TABEL a ();',
  })
  const { code, stdout } = await product.run(['doctor'])
  expect(stdout).toMatch(/ERROR {2}features .*20261231_01_a\.sql failed: .*"TABEL".*\n +-> correct the file/)
  expect(stdout).toContain('a of mason.config loads')
  expect(code).toBe(1)
})

test('`mason doctor` names a handle that nothing provides, a setting that nothing reads, and a check that returns nothing', async () => {
  await using product = await openProduct({ ...feature, 'a/one.service.ts': service('one', 'b.two') })
  const { code, stdout } = await product.run(['doctor'])
  expect([code, stdout]).toEqual([
    1,
    expect.stringMatching(/one\.service\.ts needs "b\.two", which no feature/),
  ])
  await writeFile(join(product.path, 'a/one.service.ts'), service('one', 'core.database'))
  await writeFile(
    join(product.path, 'a/silent.doctor.ts'),
    `import { defineDoctor } from 'mason-runtime/features'
    export default defineDoctor({ name: 'silent', settings: [], async check() {} })`,
  )
  const typo = await product.run(['doctor'], { MASON_LEARNIG: 'off' })
  expect(typo.stdout).toMatch(/warn .*nothing reads the setting MASON_LEARNIG\n +-> correct its name/)
  expect(typo.stdout).toMatch(
    /ERROR {2}silent .*a\/silent\.doctor\.ts returned no list of lines\n +-> return/,
  )
  expect(typo.code).toBe(1)
})

test('a rejection that a file of a product does not handle is printed with its line', async () => {
  await using product = await openProduct({
    'tools/greet.tool.ts': tool(`Promise.reject(new Error('lost'))`),
    'mason.config.ts': `export default { tools: ['tools'] }`,
  })
  const { code, stderr } = await product.run(['tools'])
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/mason: lost \(.*tools\/greet\.tool\.ts:\d+:\d+\)/),
  ])
})

test('what a file of a product prints is not among the objects of --json', async () => {
  await using product = await openProduct({
    'tools/greet.tool.ts': tool(`console.log('loading')`),
    'mason.config.ts': `export default { tools: ['tools'] }`,
  })
  const { stdout, stderr } = await product.run(['tools', '--json'])
  const names = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).name)
  expect([names, stderr]).toEqual([expect.arrayContaining(['greet']), 'loading\n'])
})

test('a file that ends the process while it is loaded is named', async () => {
  await using product = await openProduct({
    'tools/greet.tool.ts': tool('process.exit(0)'),
    'mason.config.ts': `export default { tools: ['tools'] }`,
  })
  const { code, stderr } = await product.run(['tools'])
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(
      /tools\/greet\.tool\.ts ended the process while it was loaded; remove process\.exit/,
    ),
  ])
})

test('a command says what is wrong with an empty input, and with a folder that cannot be', async () => {
  await using product = await openProduct({})
  const verified = await product.run(['ap2', 'verify'], {}, '\n')
  expect([verified.code, verified.stderr]).toEqual([2, expect.stringContaining('- has no line to verify')])
  const begun = await product.run(['init', '/proc/nope'])
  expect([begun.code, begun.stderr]).toEqual([
    2,
    expect.stringMatching(/\/proc\/nope cannot be created: ENOENT/),
  ])
})
