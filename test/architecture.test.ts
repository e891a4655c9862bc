import { dirname, join, normalize } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  fileGraph,
  findCycles,
  findPrivateWords,
  findSharedNames,
  folderGraph,
  listExports,
  listImports,
  readSources,
  type Source,
} from '../scripts/source-tree.ts'

const sources = readSources()

/** Which folders a folder may import, beside itself and its subfolders. The longest prefix counts. */
const arrows: Record<string, readonly string[]> = {
  state: [],
  context: ['state'],
  dialogue: ['state', 'context'],
  client: ['state', 'memory'],
  'offline-model': ['state', 'context', 'dialogue'],
  'payments/trust': ['state', 'infra', 'payments/mandates'],
  'payments/mandates': ['state'],
  'payments/providers': [
    'state',
    'infra',
    'payments/mandates',
    'payments/keys',
    'payments/ledger',
    'payments/trust',
  ],
  'payments/ledger': ['state', 'infra'],
  'payments/executor': [
    'state',
    'infra',
    'payments/mandates',
    'payments/trust',
    'payments/providers',
    'payments/ledger',
  ],
  'payments/runs': [
    'state',
    'infra',
    'payments/consent',
    'payments/keys',
    'payments/ledger',
    'payments/mandates',
  ],
  'payments/keys': ['state', 'infra', 'payments/mandates'],
  'payments/consent': [
    'state',
    'infra',
    'accounts',
    'payments/mandates',
    'payments/ledger',
    'payments/keys',
    'payments/trust',
  ],
  graph: ['state', 'context'],
  nodes: ['state', 'context', 'graph', 'dialogue'],
  tools: ['state', 'context', 'graph', 'dialogue'],
  infra: ['state'],
  accounts: ['state', 'infra'],
  models: ['state', 'context', 'infra', 'accounts'],
  files: ['state', 'infra', 'accounts'],
  toolservers: ['state', 'infra', 'accounts'],
  memory: ['state', 'context', 'infra', 'accounts', 'models', 'files'],
  engine: ['state', 'context', 'graph', 'infra', 'accounts', 'models', 'files', 'memory', 'payments/keys'],
  producer: ['state', 'client', 'infra'],
  project: ['state', 'graph', 'infra'],
  runtime: [
    'state',
    'context',
    'dialogue',
    'a2a/client',
    'graph',
    'infra',
    'accounts',
    'models',
    'files',
    'memory',
    'engine',
    'toolservers',
    'offline-model',
    'project',
    'payments/trust',
    'payments/providers',
    'payments/keys',
    'payments/ledger',
    'payments/executor',
    'payments/consent',
    'payments/runs',
  ],
  testing: ['state', 'infra', 'project', 'runtime'],
  'a2a/client': ['state', 'infra', 'accounts'],
  a2a: ['state', 'infra', 'accounts', 'payments/mandates', 'runtime'],
  server: [
    'state',
    'context',
    'graph',
    'infra',
    'accounts',
    'models',
    'memory',
    'payments/trust',
    'payments/keys',
    'payments/providers',
    'payments/ledger',
    'payments/consent',
    'runtime',
    'a2a',
  ],
  cli: [
    'testing',
    'state',
    'client',
    'graph',
    'infra',
    'accounts',
    'models',
    'files',
    'engine',
    'project',
    'payments/mandates',
    'payments/keys',
    'payments/ledger',
    'payments/executor',
    'runtime',
    'server',
  ],
  'cli.ts': ['cli', 'state', 'infra', 'project'],
  'index.ts': ['state', 'graph', 'infra', 'producer', 'project', 'runtime', 'server'],
}
const rows = Object.keys(arrows).sort((a, b) => b.length - a.length)
const rowOf = (path: string): string =>
  rows.find((row) => path === row || path.startsWith(`${row}/`)) ?? dirname(path)

const findViolations = (source: Pick<Source, 'path' | 'code'>): string[] => {
  const from = rowOf(source.path)
  return listImports(source)
    .filter((name) => name.endsWith('.ts'))
    .filter((name) => rowOf(name) !== from && !arrows[from]?.includes(rowOf(name)))
    .map((name) => `${source.path} -> ${name}: ${from} may import ${arrows[from]?.join(', ') || 'nothing'}`)
}

/** Imports of values; those of types alone leave nothing behind at run time. */
const valueImports = /^(?:import|export)(?!\s+type\b)[^'"]*\bfrom\s*['"]([^'"]+)['"]/gm

describe('the architecture', () => {
  test('has imports that point one way between folders', () => {
    expect(sources.flatMap(findViolations)).toEqual([])
  })

  test('has a check that sees an import however it is written', () => {
    for (const code of [
      `import { a } from '../infra/b.ts'`,
      `import type {\n  A,\n} from "../infra/b.ts"`,
      `export { a } from '../infra/b.ts'`,
      `import '../infra/b.ts'`,
      `const b = await import('../infra/b.ts')`,
    ])
      expect(findViolations({ path: 'state/x.ts', code })).toEqual([
        'state/x.ts -> infra/b.ts: state may import nothing',
      ])
  })

  test('has no import cycle between files', () => {
    expect(findCycles(fileGraph(sources))).toEqual([])
  })

  test('has no import cycle between folders, where a folder and its subfolder are two', () => {
    expect(findCycles(folderGraph(fileGraph(sources)))).toEqual([])
  })

  test('has a check that finds a cycle of files and of folders', () => {
    const source = (path: string, to: string): Source => ({ path, text: '', code: `import '${to}'` })
    const files = fileGraph([
      source('a/one.ts', './b/two.ts'),
      source('a/b/two.ts', '../three.ts'),
      source('a/three.ts', 'zod'),
    ])
    expect(findCycles(files)).toEqual([])
    expect(findCycles(folderGraph(files))).toEqual([['a', 'a/b']])
    expect(findCycles(fileGraph([source('a.ts', './b.ts'), source('b.ts', './a.ts')]))).toEqual([
      ['a.ts', 'b.ts'],
    ])
  })

  test('has no loose file beside index.ts and cli.ts, and no file beside a folder of its name', () => {
    const paths = sources.map(({ path }) => path)
    expect(paths.filter((path) => !path.includes('/'))).toEqual(['cli.ts', 'index.ts'])
    const folders = new Set(paths.map(dirname))
    expect(paths.filter((path) => path !== 'cli.ts' && folders.has(path.replace(/\.ts$/, '')))).toEqual([])
  })

  test('has exported names that one file alone declares', () => {
    expect(findSharedNames(sources)).toEqual([])
  })

  test('has a doc comment on at least 95 of 100 exports', () => {
    const exports = listExports(sources)
    const bare = exports.filter(({ documented }) => !documented)
    expect(
      bare.map(({ name, path }) => `${path}: ${name}`).slice(0, bare.length * 20 > exports.length ? 50 : 0),
    ).toEqual([])
  })

  test('has ports of at most 100 lines', () => {
    const long = sources
      .map(({ path, text }) => ({ path, lines: text.split('\n').length - 1 }))
      .filter(({ path, lines }) => path.startsWith('state/ports/') && lines > 100)
    expect(long).toEqual([])
  })

  test('has code, docs and tests that use the words of the glossary', () => {
    const lines = findPrivateWords()
    expect(lines.length <= 25 ? [] : lines.slice(0, 50)).toEqual([])
  })

  test('has a state that knows nothing but zod and Node itself', () => {
    const packages = sources
      .filter(({ path }) => rowOf(path) === 'state')
      .flatMap((source) => listImports(source).map((name) => `${source.path}: ${name}`))
      .filter((line) => !/: (zod|node:|state\/)/.test(line))
    expect(packages).toEqual([])
  })

  test('has a server that knows the graph and the runtime by their types only', () => {
    const used = sources
      .filter(({ path }) => path.startsWith('server/'))
      .flatMap(({ path, code }) =>
        [...code.matchAll(valueImports)].map(
          ([, name = '']) => `${path} -> ${normalize(join(dirname(path), name))}`,
        ),
      )
      .filter((line) => /-> (graph|runtime)\//.test(line))
    expect(used).toEqual([])
  })

  test('has one folder that reads the environment, infra/config', () => {
    const readers = sources.filter(({ code }) => /process\s*\.\s*env\b/.test(code)).map(({ path }) => path)
    expect(readers.filter((path) => !path.startsWith('infra/config/'))).toEqual([])
  })

  test('has no file of more than 400 lines', () => {
    const long = sources
      .map(({ path, text }) => ({ path, lines: text.split('\n').length - 1 }))
      .filter(({ lines }) => lines > 400)
    expect(long).toEqual([])
  })

  test('has default exports in nodes and tools alone', () => {
    const others = sources
      .filter(({ path, code }) => /^export default\b/m.test(code) && !/\.(node|tool)\.ts$/.test(path))
      .map(({ path }) => path)
    expect(others).toEqual([])
  })
})
