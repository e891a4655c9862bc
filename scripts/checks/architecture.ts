import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { listTouchedTables, toStatements } from '../../src/infra/database/own-migrations.ts'
import type { Check } from '../check-repository.ts'
import { featureListPath, renderFeatureList } from '../feature-list.ts'
import {
  featureOf,
  featuresFolder,
  listExports,
  listImports,
  listOpenTables,
  readSources,
  root,
  type Source,
} from '../source-tree.ts'

/** Which folders a folder may import, beside itself and its subfolders. The longest prefix counts. A row may be that of several. */
export const arrows: Record<string, readonly string[]> = {
  state: [],
  'context client infra': ['state'],
  'dialogue graph': ['state', 'context'],
  'nodes tools': ['state', 'context', 'graph', 'dialogue'],
  'accounts files': ['state', 'infra'],
  'models routes': ['state', 'infra', 'accounts'],
  engine: ['state', 'context', 'graph', 'infra', 'accounts', 'models', 'files', 'engine'],
  // of the core; `listFeatureImports` has the rest
  features: [
    'state',
    'context',
    'dialogue',
    'graph',
    'infra',
    'accounts',
    'models',
    'routes',
    'files',
    'engine',
  ],
  'producer project': ['state', 'client', 'graph', 'infra'],
  app: ['state', 'graph', 'infra', 'accounts', 'models', 'files', 'engine', 'features', 'project'],
  'app/http': ['state', 'infra', 'accounts', 'models', 'routes', 'app'],
  // what is started or imported from outside
  'app/cli testing cli.ts index.ts': [
    'state',
    'client',
    'graph',
    'infra',
    'accounts',
    'models',
    'files',
    'engine',
    'features',
    'producer',
    'project',
    'app',
    'app/http',
    'app/cli',
    'testing',
  ],
}
const allowed = Object.fromEntries(
  Object.entries(arrows).flatMap(([folders, to]) => folders.split(' ').map((folder) => [folder, to])),
)
const rows = Object.keys(allowed).sort((a, b) => b.length - a.length)
const rowOf = (path: string): string =>
  rows.find((row) => path === row || path.startsWith(`${row}/`)) ?? dirname(path)

const findViolations = (source: Source): string[] => {
  const from = rowOf(source.path)
  return listImports(source)
    .filter((name) => name.endsWith('.ts'))
    .filter((name) => rowOf(name) !== from && !allowed[from]?.includes(rowOf(name)))
    .map((name) => `${source.path} -> ${name}: ${from} may import ${allowed[from]?.join(', ') || 'nothing'}`)
}

const valueImports = /^(?:import|export)(?!\s+type\b)[^'"]*\bfrom\s*['"]([^'"]+)['"]/gm
/** The files from which a file imports values; imports of types alone leave nothing behind at run time. */
const listValueImports = ({ path, code }: Source): string[] =>
  [...code.matchAll(valueImports)]
    .filter(([, name = '']) => name.startsWith('.'))
    .map(([, name = '']) => normalize(join(dirname(path), name)))

/** The files of `src`. */
export const sources = readSources()
const paths = sources.map(({ path }) => path)
const pathsOf = (isFound: (source: Source) => boolean): string[] =>
  sources.filter(isFound).map(({ path }) => path)
const isLonger = ({ text }: Source, lines: number): boolean => text.split('\n').length - 1 > lines
const listBareExports = (): string[] => {
  const exports = listExports(sources)
  const bare = exports.filter(({ documented }) => !documented).map(({ name, path }) => `${path}: ${name}`)
  return bare.length * 20 > exports.length ? bare.slice(0, 50) : []
}

/** What is loaded with a file, by imports of values. */
const listLoaded = (entry: string): string[] => {
  const loaded = new Set([entry])
  for (const path of loaded) {
    const source = sources.find((one) => one.path === path)
    for (const name of source ? listValueImports(source) : []) loaded.add(name)
  }
  return [...loaded]
}

/** A feature can be removed: the core imports none of its files, and another feature only its handles. */
const listFeatureImports = (): string[] =>
  sources
    .filter(({ path }) => path !== 'app/features.generated.ts')
    .flatMap((source) =>
      listImports(source)
        .filter((name) => featureOf(name) !== undefined && featureOf(name) !== featureOf(source.path))
        .filter((name) => featureOf(source.path) === undefined || !name.endsWith('.ref.ts'))
        .map((name) => `${source.path} -> ${name}`),
    )

const listNames = (code: string, pattern: RegExp): string[] =>
  [...code.matchAll(pattern)].flatMap(([, text = '']) =>
    [...text.matchAll(/'([\w-]+)'/g)].map(([, name = '']) => name),
  )

/** A feature whose tools use the service of another says so in feature.ts, so that it is removed with it. */
const listHiddenNeeds = (): string[] => {
  const owners = new Map(
    sources
      .filter(({ path }) => path.endsWith('.run-service.ts'))
      .flatMap(({ path, code }) =>
        listNames(code, /\bname: ('\w+')/g).map((name) => [name, featureOf(path)]),
      ),
  )
  const needsOf = (id: string): string[] =>
    sources
      .filter(({ path }) => path === `features/${id}/feature.ts`)
      .flatMap(({ code }) => listNames(code, /\bneeds: \[([^\]]*)\]/g))
  const users = sources.filter(
    ({ path }) => featureOf(path) !== undefined && /\.(?:tool|node)\.ts$/.test(path),
  )
  const hidden = users.flatMap(({ path, code }) => {
    const id = featureOf(path) ?? ''
    return listNames(code, /\bneeds: \[([^\]]*)\]/g)
      .map((service) => owners.get(service))
      .filter((owner) => owner !== undefined && owner !== id && !needsOf(id).includes(owner))
      .map((owner) => `${path} uses a service of "${owner}"; name it in needs of features/${id}/feature.ts`)
  })
  const ids = new Set(sources.map(({ path }) => featureOf(path)))
  const missing = [...ids].flatMap((id = '') =>
    needsOf(id)
      .filter((need) => !ids.has(need))
      .map((need) => `features/${id} needs "${need}", which is not there; remove both, or none`),
  )
  return [...new Set([...hidden, ...missing])]
}

/** A migration of a feature keeps to the tables that its feature.ts names. */
const listForeignTables = (): string[] =>
  readdirSync(featuresFolder).flatMap((id) => {
    const folder = join(featuresFolder, id, 'migrations')
    if (!existsSync(folder)) return []
    const own =
      /tables: \[([^\]]*)\]/.exec(readFileSync(join(featuresFolder, id, 'feature.ts'), 'utf8'))?.[1] ?? ''
    return readdirSync(folder).flatMap((file) =>
      listTouchedTables(toStatements(readFileSync(join(folder, file), 'utf8')))
        .filter((table) => !own.includes(`'${table}'`))
        .map(
          (table) =>
            `features/${id}/migrations/${file}: ${table} is not a table of "${id}"; name it in feature.ts or move the statement`,
        ),
    )
  })

/** What the folders of `src` keep to. */
export const architecture: readonly Check[] = [
  ['an import goes against the arrows between folders', () => sources.flatMap(findViolations)],
  ['the core imports a feature, or a feature more than the handles of another', listFeatureImports],
  ['a feature needs another that it does not name, or that is not there', listHiddenNeeds],
  ['a migration of a feature touches a table of another', listForeignTables],
  [
    'a table is not open to the right roles alone',
    () => listOpenTables(readFileSync(join(root, 'migrations/schema.sql'), 'utf8')),
  ],
  [
    'src/app/features.generated.ts is not that of the folders of src/features: run npm run features',
    () => (readFileSync(featureListPath, 'utf8') === renderFeatureList() ? [] : [featureListPath]),
  ],
  [
    'a process with a vendor loads the rules of the offline model',
    () =>
      listLoaded('features/offline-model/in-process-model.service.ts').filter((path) =>
        path.endsWith('/offline-model.ts'),
      ),
  ],
  [
    'the executor of payments loads code of the runtime',
    () =>
      listLoaded('features/payments/executor/executor-process.ts').filter(
        (path) => !/^(?:state|infra|accounts|features\/payments)\/|^features\/[^/]+$/.test(path),
      ),
  ],
  [
    'a file lies loose beside index.ts and cli.ts',
    () => paths.filter((path) => !path.includes('/') && !['cli.ts', 'index.ts'].includes(path)),
  ],
  [
    'a file lies beside a folder of its name',
    () => {
      const folders = new Set(paths.map(dirname))
      return paths.filter((path) => path !== 'cli.ts' && folders.has(path.replace(/\.ts$/, '')))
    },
  ],
  ['more than 5 of 100 exports have no doc comment', listBareExports],
  [
    'a port has more than 100 lines',
    () => pathsOf((one) => one.path.startsWith('state/ports/') && isLonger(one, 100)),
  ],
  ['a file has more than 400 lines', () => pathsOf((one) => isLonger(one, 400))],
  [
    'src/state knows more than zod and Node itself',
    () =>
      sources
        .filter(({ path }) => rowOf(path) === 'state')
        .flatMap((source) => listImports(source).map((name) => `${source.path}: ${name}`))
        .filter((line) => !/: (zod|node:|state\/)/.test(line)),
  ],
  [
    'src/app/http imports more than types of the graph and the runtime',
    () =>
      sources
        .filter(({ path }) => path.startsWith('app/http/'))
        .flatMap((source) => listValueImports(source).map((name) => `${source.path} -> ${name}`))
        .filter((line) => /-> (?:graph\/|app\/[^/]+$)/.test(line)),
  ],
  [
    'the environment is read outside of infra/config',
    () => pathsOf(({ path, code }) => /process\s*\.\s*env\b/.test(code) && !path.startsWith('infra/config/')),
  ],
  [
    'a default export is outside of nodes, tools and features',
    () =>
      pathsOf(
        ({ path, code }) =>
          /^export default\b/m.test(code) && !/\.(node|tool)\.ts$|^features\/[^/]+\//.test(path),
      ),
  ],
]
