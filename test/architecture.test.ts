import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
type Source = { path: string; text: string; code: string }

/** Without comments, so that a word in one is not taken for code. */
const codeOf = (text: string): string => text.replaceAll(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*$/gm, '')
const sources: Source[] = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => {
    const text = readFileSync(join(root, 'src', path), 'utf8')
    return { path, text, code: codeOf(text) }
  })

const statement = /(?:\bfrom\s*|\bimport\s*\(?\s*)['"]([^'"]+)['"]/g
/** What a file imports or exports on: other files as paths under src, packages as they are named. */
const importsOf = ({ path, code }: Pick<Source, 'path' | 'code'>): string[] =>
  [...code.matchAll(statement)].map(([, name = '']) =>
    name.startsWith('.') ? normalize(join(dirname(path), name)) : name,
  )

/** Layers by the beginning of a path, the longest first. The parts that join everything are `runtime`. */
const layers: [prefix: string, layer: string][] = [
  ['runtime-api.ts', 'runtime-api'],
  ['infra/worker/', 'worker'],
  ['infra/config', 'config'],
  ['state/', 'state'],
  ['graph/', 'graph'],
  ['dialogue/', 'dialogue'],
  ['nodes/', 'nodes'],
  ['tools/', 'tools'],
  ['payments/', 'payments'],
  ['infra/', 'infra'],
  ['server/', 'server'],
  ['cli/', 'cli'],
  ['cli.ts', 'cli'],
]
const layerOf = (path: string): string => layers.find(([prefix]) => path.startsWith(prefix))?.[1] ?? 'runtime'

/** Which way the arrows of DESIGN section 2 point. A layer may always use itself. */
const arrows: Record<string, readonly string[]> = {
  state: [],
  graph: ['state'],
  dialogue: ['state'],
  nodes: ['state', 'graph', 'dialogue'],
  tools: ['state', 'graph', 'dialogue'],
  payments: ['state'],
  config: ['state'],
  infra: ['state', 'config'],
  // works on claimed runs: where the durable protocol meets the graph
  worker: ['state', 'graph', 'infra', 'config'],
  'runtime-api': ['state', 'graph', 'infra'],
  server: ['state', 'graph', 'runtime-api'],
  runtime: ['state', 'graph', 'infra', 'config', 'worker', 'runtime-api', 'dialogue', 'payments'],
  cli: ['state', 'infra', 'config', 'server', 'runtime', 'runtime-api'],
}

const violationsOf = (source: Pick<Source, 'path' | 'code'>): string[] => {
  const from = layerOf(source.path)
  return importsOf(source)
    .filter((name) => name.endsWith('.ts'))
    .filter((name) => layerOf(name) !== from && !arrows[from]?.includes(layerOf(name)))
    .map((name) => `${source.path} -> ${name}: ${from} may use ${arrows[from]?.join(', ') || 'nothing'}`)
}

/** Imports of values; those of types alone leave nothing behind at run time. */
const valueImports = /^(?:import|export)(?!\s+type\b)[^'"]*\bfrom\s*['"]([^'"]+)['"]/gm

describe('the architecture', () => {
  test('arrows between the layers point one way', () => {
    expect(sources.flatMap(violationsOf)).toEqual([])
  })

  test('an arrow that points the other way is found, however it is written', () => {
    for (const code of [
      `import { a } from '../infra/b.ts'`,
      `import type {\n  A,\n} from "../infra/b.ts"`,
      `export { a } from '../infra/b.ts'`,
      `import '../infra/b.ts'`,
      `const b = await import('../infra/b.ts')`,
    ])
      expect(violationsOf({ path: 'state/x.ts', code })).toEqual([
        'state/x.ts -> infra/b.ts: state may use nothing',
      ])
  })

  test('the state knows nothing but zod and Node itself', () => {
    const packages = sources
      .filter(({ path }) => layerOf(path) === 'state')
      .flatMap((source) => importsOf(source).map((name) => `${source.path}: ${name}`))
      .filter((line) => !/: (zod|node:|state\/)/.test(line))
    expect(packages).toEqual([])
  })

  test('the server knows the graph and the rest of the runtime by their types only', () => {
    const used = sources
      .filter(({ path }) => path.startsWith('server/'))
      .flatMap(({ path, code }) =>
        [...code.matchAll(valueImports)].map(
          ([, name = '']) => `${path} -> ${normalize(join(dirname(path), name))}`,
        ),
      )
      .filter((line) => /-> (graph|runtime-api)/.test(line))
    expect(used).toEqual([])
  })

  test('only the configuration reads the environment', () => {
    const readers = sources.filter(({ code }) => /process\s*\.\s*env\b/.test(code)).map(({ path }) => path)
    expect(readers.filter((path) => !path.startsWith('infra/config'))).toEqual([])
  })

  test('no file is longer than 250 lines', () => {
    const long = sources
      .map(({ path, text }) => ({ path, lines: text.split('\n').length - 1 }))
      .filter(({ lines }) => lines > 250)
    expect(long).toEqual([])
  })

  test('only nodes and tools have a default export', () => {
    const others = sources
      .filter(({ path, code }) => /^export default\b/m.test(code) && !/\.(node|tool)\.ts$/.test(path))
      .map(({ path }) => path)
    expect(others).toEqual([])
  })
})
