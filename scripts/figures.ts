import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { listTouchedTables } from '../src/infra/database/own-migrations.ts'
import type { Check } from './check-repository.ts'
import { arrows, sources } from './checks/architecture.ts'
import {
  countCode,
  featureOf,
  featuresFolder,
  fileGraph,
  findCycles,
  findHighParameters,
  findLiteralSpreads,
  findPrivateWords,
  findSharedNames,
  folderGraph,
  listCreatedTables,
  listExports,
  listImports,
  root,
  type Source,
} from './source-tree.ts'

/** `npm run figures`: prints the size and shape of the source. `npm run check` holds those that have a limit. */

const under = (folder: string) => sources.filter(({ path }) => path.startsWith(folder))
const sum = (numbers: readonly number[]): number => numbers.reduce((total, n) => total + n, 0)
const countLines = ({ text }: { text: string }): number => text.split('\n').length - 1
const percent = (part: number, whole: number): string => `${((100 * part) / whole).toFixed(0)} %`

/** How many exports have a doc comment, of all. */
const shareOfDocumented = (): string => {
  const exports = listExports(sources)
  return percent(exports.filter(({ documented }) => documented).length, exports.length)
}

/** How many names of `src/index.ts` have an `@example`, of all. */
const shareOfExamples = (): string => {
  const index = readFileSync(join(root, 'src/index.ts'), 'utf8')
  const names = [...index.matchAll(/^export (?:type )?\{([^}]*)\}/gm)]
    .flatMap(([, list = '']) => list.split(',').map((name) => name.replace(/\btype\b/, '').trim()))
    .filter(Boolean)
  const hasExample = (name: string): boolean => {
    const pattern = new RegExp(`@example(?:(?!\\*/)[\\s\\S])*\\*/\\nexport (?:\\w+ )*?${name}\\b`)
    return sources.some(({ text }) => pattern.test(text))
  }
  return percent(names.filter(hasExample).length, names.length)
}

/** Who owns a file: a feature, or a folder of the core. */
const ownerOf = (path: string): string => featureOf(path) ?? path.split('/', 1)[0] ?? path

/** The tables that two folders write, with these folders. */
const findSharedTables = (): string[] => {
  const tables = new Set(listCreatedTables(readFileSync(join(root, 'migrations/schema.sql'), 'utf8')))
  const writers = new Map<string, Set<string>>()
  for (const { path, code } of sources)
    for (const table of [
      ...listTouchedTables(code),
      ...[...code.matchAll(/\btable: '(\w+)'/g)].map(([, name = '']) => name),
    ])
      if (tables.has(table)) writers.set(table, (writers.get(table) ?? new Set()).add(ownerOf(path)))
  return [...writers]
    .filter(([, owners]) => owners.size > 1)
    .map(([table, owners]) => `${table}: ${[...owners].join(', ')}`)
}

const read = (texts: readonly Source[], pattern: RegExp): string[] =>
  texts.flatMap(({ code }) => [...code.matchAll(pattern)].map(([, name = '']) => name))
const routePattern = /'(\/[a-z.][^'\s]*)'/g
const isRoutes = ({ path }: Source): boolean => /\.(?:routes|resource)\.ts$/.test(path)
const coreRoutes = new Set(
  read(
    sources.filter((one) => isRoutes(one) && !featureOf(one.path)),
    routePattern,
  ),
)

/** What another file must not have of a feature: an import, or the name of a table, tool, route or setting. */
const toMentions = (id: string): RegExp => {
  const own = sources.filter(({ path }) => featureOf(path) === id)
  const names = [
    ...read(own, /\btables: \[([^\]]*)\]/g)
      .flatMap((text) => [...text.matchAll(/'(\w+)'/g)])
      .map(([, table]) => `(?:FROM|JOIN|INTO|UPDATE|TABLE|table:)\\s+'?(?:mason\\.)?${table}\\b`),
    ...read(
      own.filter(({ path }) => path.endsWith('.tool.ts')),
      /defineTool\(\{(?:\s*server: '\w+',)?\s*name: '(\w+)'/g,
    ).map((tool) => `['"\`]${tool}['"\`]`),
    ...read(own.filter(isRoutes), routePattern)
      .filter((path) => path.includes('/', 1) && !coreRoutes.has(path))
      .map(
        (path) => `['"\`\\s]${path.replaceAll('.', '\\.').replaceAll(/:\w+/g, '[^\\s\\x27/]+')}(?![\\w./-])`,
      ),
    `\\bMASON_(?:[A-Z]+_)?${id.replaceAll('-', '_').replace(/s$/, '').toUpperCase()}`,
  ]
  return new RegExp(names.join('|'))
}

/** Files that name what is in the folder of a feature, with the feature. Its line in the list of features counts for nothing. */
const findFeatureMentions = (): string[] =>
  readdirSync(featuresFolder)
    .filter((id) => existsSync(join(featuresFolder, id, 'feature.ts')))
    .flatMap((id) => {
      const mentions = toMentions(id)
      // the offline model names tools as a model does, where a request offers them
      const isElsewhere = (path: string): boolean =>
        ![id, 'offline-model'].some((one) => one === featureOf(path)) && path !== 'app/features.generated.ts'
      return sources
        .filter(({ path }) => isElsewhere(path))
        .filter(
          (source) =>
            mentions.test(source.code) || listImports(source).some((name) => featureOf(name) === id),
        )
        .map(({ path }) => `${path}: ${id}`)
    })

/** Formats with samples of responses, which are test data. */
const findSamples = (): string[] =>
  under('features/response-formats/')
    .filter(({ code }) => /\bsamples: \[\s*[^\]\s]/.test(code))
    .map(({ path }) => path)

const toLines = (cycles: string[][]): string[] => cycles.map((cycle) => cycle.join(' -> '))
const isCore = ({ path }: Source): boolean =>
  path.includes('/') && !/^(?:features|app|client|producer|testing|project)\//.test(path)
const compositionRoot = sources.filter(({ path }) => path === 'app/open-runtime.ts')

/** `find`: a number, or the lines that it counts. `most`: what it may be; without one it is only printed. */
type Figure = readonly [
  figure: string,
  find: () => number | string | string[],
  most?: number,
  remedy?: string,
]

const raise = 'delete as many, or for a new feature raise the limit in scripts/figures.ts by its lines'

const figures: readonly Figure[] = [
  ['files in src', () => sources.length],
  ['lines in src without comments and blanks', () => sum(sources.map(countCode)), 71_491, raise],
  [
    'lines in the core without comments and blanks',
    () => sum(sources.filter(isCore).map(countCode)),
    30_434,
    raise,
  ],
  ['lines in src/infra without comments and blanks', () => sum(under('infra/').map(countCode))],
  ['lines in src/features/offline-model', () => sum(under('features/offline-model/').map(countLines))],
  ['files with sample data in src', findSamples, 0, 'move the samples to the fixtures of tests'],
  [
    'files that name a feature from outside',
    findFeatureMentions,
    0,
    'use a handle: docs/features.md#handles',
  ],
  ['imports of the composition root', () => compositionRoot.flatMap(listImports), 25],
  ['rows of the architecture check', () => Object.keys(arrows), 12],
  ['tables that two folders write', findSharedTables, 0, 'call what the owner of the table exports'],
  ['import cycles between files', () => toLines(findCycles(fileGraph(sources))), 0],
  ['import cycles between folders', () => toLines(findCycles(folderGraph(fileGraph(sources)))), 0],
  ['exported names in two files', () => findSharedNames(sources), 0],
  [
    'parameters of statements above $9',
    () => findHighParameters(sources),
    0,
    'write $name and pass an object',
  ],
  ['literals spread into a literal', () => findLiteralSpreads(sources), 0, 'write its members in its place'],
  ['words of the private vocabulary', findPrivateWords, 3, 'take the word of docs/glossary.md'],
  ['exports with a doc comment', shareOfDocumented],
  ['exports of index.ts with an @example', shareOfExamples],
  ['longest port file', () => Math.max(...under('state/ports/').map(countLines))],
]
const toValue = (found: number | string | string[]): number | string =>
  typeof found === 'object' ? found.length : found

/** Figures that are above their limit. The limits are the last values: only lower ones take their place. */
export const limits: readonly Check[] = figures.flatMap(([figure, find, most, remedy = 'make it less']) => {
  if (most === undefined) return []
  const found = find()
  const value = toValue(found)
  if (Number(value) <= most) return []
  return [
    [
      `${figure}: ${value}, and ${most} is the most; ${remedy}`,
      () => (typeof found === 'object' ? found : ['src']),
    ],
  ]
})

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const word = process.argv[2]
  const width = Math.max(...figures.map(([figure]) => figure.length))
  for (const [figure, find, most] of figures.filter(([figure]) => figure.includes(word ?? ''))) {
    const found = find()
    console.log(`${figure.padEnd(width)}  ${toValue(found)}${most === undefined ? '' : ` (${most} at most)`}`)
    if (word && typeof found === 'object') for (const line of found) console.log(`  ${line}`)
  }
}
