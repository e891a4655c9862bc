import { cp, mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { readConfig } from '../../src/app/read-config.ts'
import { loadParts } from '../../src/graph/load.ts'
import { loadOwnParts, loadProject } from '../../src/project/load-project.ts'
import { openOwnServices } from '../../src/project/own-services.ts'
import { isMasonError } from '../../src/state/errors.ts'
import { deferred } from '../support/deferred.ts'
import { openFolder } from '../support/file-samples.ts'

afterEach(() => {
  vi.useRealTimers()
})

/** A repository as `npm init -y` makes one, with these files. */
const openRepository = async (files: Record<string, string>) => {
  const folder = await openFolder()
  for (const [name, text] of Object.entries({ 'package.json': '{"type": "commonjs"}', ...files })) {
    await mkdir(dirname(join(folder.path, name)), { recursive: true })
    await writeFile(join(folder.path, name), text)
  }
  return folder
}

const toolText = (name: string, input = '(await import("zod")).z.object({})', more = ''): string => `
const name: string = '${name}'
await Promise.resolve()
export default { kind: 'tool', name, description: '', kinds: ['call'], input: ${input}, reads: [], writes: [], run() {}${more} }
`

const findConfigError = async (files: Record<string, string>): Promise<string> => {
  await using folder = await openRepository(files)
  const error: unknown = await loadProject({}, folder.path).then(
    () => null,
    (reason) => reason,
  )
  if (!isMasonError(error, 'invalid_settings')) throw new Error(`no such error: ${error}`)
  expect(error.remedy).toBeTruthy()
  return error.message.replaceAll(`${folder.path}/`, '')
}

const findToolErrors = async (files: Record<string, string>): Promise<string[]> => {
  await using folder = await openRepository(files)
  const error: unknown = await loadOwnParts([folder.path]).then(
    () => null,
    (reason) => reason,
  )
  if (!isMasonError(error, 'invalid_graph')) throw new Error(`no such error: ${error}`)
  return (error.detail as { errors: string[] }).errors.map((one) => one.replaceAll(`${folder.path}/`, ''))
}

describe('the config of a repository', () => {
  test('gives folders and packages with tools, and settings below those of the environment', async () => {
    await using folder = await openRepository({
      'mason.config.ts': `
        import { defineConfig, MasonError } from 'mason-runtime'
        const tools: string[] = ['tools', '@acme/tools', './tools']
        export default defineConfig({ tools, nodes: ['steps'], settings: { PORT: 9000, LOG_LEVEL: 'warn', HOST: 'localhost' } })`,
      'tools/first.tool.ts': `import { prefix } from '../lib/names'\n${toolText('first')}void prefix`,
      'lib/names.ts': 'export const prefix: string = "a"',
      'more/second.tool.js': toolText('second').replace(': string', ''),
      'node_modules/@acme/tools/dist/third.tool.js': toolText('third').replace(': string', ''),
      'node_modules/@acme/tools/src/third.tool.ts': 'throw new Error("the source of a package")',
      'node_modules/@acme/tools/package.json': '{"type": "module"}',
      'steps/fourth.node.ts':
        "export default { kind: 'node', name: 'fourth', description: '', next: ['planner'], reads: [], writes: [], run() {} }",
    })
    const given = { MASON_TOOLS: join(folder.path, 'more'), LOG_LEVEL: 'error', HOST: '' }
    const { environment, file } = await loadProject(given, folder.path)
    expect(file).toBe(join(folder.path, 'mason.config.ts'))
    const config = readConfig(environment, { role: 'serve' })
    expect([config.http, config.logLevel]).toEqual([{ port: 9000, host: 'localhost' }, 'error'])
    const { files } = await loadOwnParts(config.toolFolders)
    const own = [...files].filter(([, path]) => path.startsWith(folder.path)).map(([{ name }]) => name)
    expect(own).toEqual(['first', 'third', 'fourth', 'second'])
  })

  test('is not needed', async () => {
    await using folder = await openFolder()
    const environment = { PORT: '1' }
    expect(await loadProject(environment, folder.path)).toEqual({ file: null, environment })
  })

  test('that is wrong ends the start with what is wrong and where', async () => {
    expect(await findConfigError({ 'mason.config.ts': '\n\nthrow new Error("no vault")' })).toBe(
      'mason.config.ts: cannot be loaded: no vault (mason.config.ts:3:7)',
    )
    expect(await findConfigError({ 'mason.config.ts': 'const a: = 1' })).toMatch(
      /^mason\.config\.ts: cannot be loaded: ParseError: .*\n? ?mason\.config\.ts:1:9/,
    )
    expect(await findConfigError({ 'mason.config.mjs': 'export const tools = []' })).toBe(
      'mason.config.mjs has no default export',
    )
    expect(await findConfigError({ 'mason.config.js': 'export default { tools: ["./tool"] }' })).toBe(
      'mason.config.js: tools[0] is "./tool": there is no such folder',
    )
    expect(await findConfigError({ 'mason.config.js': 'export default { nodes: ["@acme/none"] }' })).toBe(
      'mason.config.js: nodes[0] is "@acme/none": there is no such folder or package',
    )
    const invalid = 'export default { tool: [], setup: 1, settings: { PROT: 1 } }'
    expect(await findConfigError({ 'mason.config.js': invalid })).toMatch(
      /tool[\s\S]*setup[\s\S]*PROT|PROT[\s\S]*/,
    )
    expect(await findConfigError({ 'mason.config.js': 'export default {}', 'mason.config.ts': '' })).toMatch(
      /has mason\.config\.ts and mason\.config\.js$/,
    )
  })

  test('has a setup whose errors name it, and whose services have names of their own', async () => {
    const log = { info() {}, warn() {}, error() {}, debug() {} } as never
    const fail = (setup: () => unknown) =>
      openOwnServices(setup as never, log, ['models']).then(
        () => 'no error',
        (error: Error) => error.message,
      )
    expect(await fail(() => Promise.reject(new Error('no route to host')))).toMatch(
      /^setup of mason\.config failed: no route to host/,
    )
    const close = vi.fn()
    expect(await fail(() => ({ services: { models: {} }, close }))).toMatch(/"models", which Mason has/)
    expect(close).toHaveBeenCalledOnce()
    expect(await fail(() => undefined)).toBe('no error')
  })
})

describe('tools of a repository', () => {
  test('that are wrong end the start, each with its file', async () => {
    const errors = await findToolErrors({
      'two.tool.ts': `${toolText('two')}export const second = { kind: 'tool', name: 'second' }`,
      'old-zod.tool.ts': toolText('old_zod', '{ _def: {}, safeParse() {} }'),
      'bare.tool.js': "export default { kind: 'tool', name: 'bare' }",
      'throws.tool.ts': "import { fail } from './lib.ts'\nfail()",
      'lib.ts': 'export const fail = (): never => {\n  throw new Error("no price")\n}',
    })
    expect(errors).toEqual([
      expect.stringMatching(
        /^bare\.tool\.js: the fields of its tool are wrong: description: is missing; reads: is missing; writes: is missing; run: must be a function; /,
      ),
      'old-zod.tool.ts: the fields of its tool are wrong: input: is not a schema of zod 4; install zod 4, and use z.strictObject({ … })',
      'throws.tool.ts: cannot be loaded: no price (lib.ts:2:9)',
      'two.tool.ts: also exports "second", a second part; give it a file of its own',
    ])
  })

  test('with the name of a built-in one are refused, and both files named', async () => {
    expect(await findToolErrors({ 'understand.tool.ts': toolText('understand') })).toEqual([
      expect.stringMatching(
        /^"understand" is defined twice, in \S+\/src\/tools\/understand\/understand\.tool\.[jt]s and understand\.tool\.ts; rename one of them$/,
      ),
    ])
  })

  test('gets the zod of Mason where it is in no package and finds none', async () => {
    await using folder = await openFolder()
    const text = `import { z } from 'zod'\nimport { input } from './input'\n${toolText('price', 'input.extend({ to: z.string() })')}`
    await writeFile(join(folder.path, 'price.tool.ts'), text)
    await writeFile(
      join(folder.path, 'input.ts'),
      "import { z } from 'zod'\nexport const input = z.strictObject({ of: z.string() })",
    )
    const { tools } = await loadOwnParts([folder.path])
    const price = tools.find(({ name }) => name === 'price')
    expect(price?.input).toBeInstanceOf((await import('zod')).ZodObject)
  })

  test('may use another copy of zod 4 than Mason', async () => {
    await using folder = await openRepository({
      'price.tool.ts': `import { z } from 'zod'\n${toolText('price', 'z.strictObject({ of: z.string() })')}`,
    })
    const copy = join(folder.path, 'node_modules', 'zod')
    await cp(dirname(new URL(import.meta.resolve('zod')).pathname), copy, { recursive: true })
    const { tools } = await loadOwnParts([folder.path])
    const input = tools.find(({ name }) => name === 'price')?.input
    const other = await import(/* @vite-ignore */ pathToFileURL(join(copy, 'index.js')).href)
    expect(input).toBeInstanceOf(other.ZodObject)
    expect(other.ZodObject).not.toBe((await import('zod')).ZodObject)
    expect(input.safeParse({ of: 1 }).success).toBe(false)
  })

  test('end the start when one takes more than 60 s to load', async () => {
    await using folder = await openRepository({ 'slow.tool.ts': '' })
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const started = deferred()
    const load = () => {
      started.resolve()
      return new Promise<never>(() => {})
    }
    const refused = expect(loadParts([{ folder: folder.path, load }])).rejects.toThrow(
      /slow\.tool\.ts: takes more than 60 s to load/,
    )
    await started.promise
    await vi.advanceTimersByTimeAsync(60_000)
    await refused
  })
})
