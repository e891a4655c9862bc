import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Expression, parseSync, Visitor } from 'oxc-parser'

/** Facts about the source: who imports whom, which cycles there are, what is exported, which words are used. */

export const root = fileURLToPath(new URL('..', import.meta.url))
export const featuresFolder = join(root, 'src/features')
/** The feature that a file of `src` is of; undefined for the core. */
export const featureOf = (path: string): string | undefined => /^features\/([^/]+)\//.exec(path)?.[1]

/** One source file: `path` from `src/` on, `text` as it is, `code` without comments. */
export type Source = { path: string; text: string; code: string }

const withoutComments = (text: string): string => text.replaceAll(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*$/gm, '')

/** All files under `src/`. */
export const readSources = (): Source[] =>
  readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .sort()
    .map((path) => {
      const text = readFileSync(join(root, 'src', path), 'utf8')
      return { path, text, code: withoutComments(text) }
    })

const importStatement = /(?:\bfrom\s*|\bimport\s*\(?\s*)['"]([^'"]+)['"]/g

/** What a file imports or re-exports: files as paths from `src/` on, packages by name. */
export const listImports = ({ path, code }: Pick<Source, 'path' | 'code'>): string[] =>
  [...code.matchAll(importStatement)].map(([, name = '']) =>
    name.startsWith('.') ? normalize(join(dirname(path), name)) : name,
  )

type Graph = ReadonlyMap<string, ReadonlySet<string>>

/** Which file imports which, both as paths from `src/` on. */
export const fileGraph = (sources: readonly Source[]): Graph =>
  new Map(
    sources.map((source) => [
      source.path,
      new Set(listImports(source).filter((name) => name.endsWith('.ts') && name !== source.path)),
    ]),
  )

/** Which folder imports which. A folder and its subfolder are two; loose files stand for themselves. */
export const folderGraph = (files: Graph): Graph => {
  const folders = new Map<string, Set<string>>()
  const folderOf = (path: string): string => (path.includes('/') ? dirname(path) : path)
  for (const [path, imports] of files) {
    const from = folderOf(path)
    const to = folders.get(from) ?? new Set()
    for (const name of imports) if (folderOf(name) !== from) to.add(folderOf(name))
    folders.set(from, to)
  }
  return folders
}

/** The groups of nodes that reach each other (Tarjan's strongly connected components of two or more). */
export const findCycles = (graph: Graph): string[][] => {
  const index = new Map<string, number>()
  const low = new Map<string, number>()
  const stack: string[] = []
  const cycles: string[][] = []
  const visit = (node: string): void => {
    index.set(node, index.size)
    low.set(node, index.size - 1)
    stack.push(node)
    for (const next of graph.get(node) ?? []) {
      if (!index.has(next)) visit(next)
      if (stack.includes(next)) low.set(node, Math.min(low.get(node) ?? 0, low.get(next) ?? 0))
    }
    if (low.get(node) !== index.get(node)) return
    const cycle = stack.splice(stack.indexOf(node))
    if (cycle.length > 1) cycles.push(cycle.sort())
  }
  for (const node of graph.keys()) if (!index.has(node)) visit(node)
  return cycles
}

const exportStatement =
  /(\*\/\n)?^export (?:default )?(?:declare )?(?:async )?(?:abstract )?(?:const|let|function\*?|class|type|interface) (\w+)/gm

/** Every exported declaration with its file, and whether a doc comment stands above it. */
export const listExports = (
  sources: readonly Source[],
): { name: string; path: string; documented: boolean }[] =>
  sources.flatMap(({ path, text }) =>
    [...text.matchAll(exportStatement)].map(([, comment, name = '']) => ({
      name,
      path,
      documented: comment !== undefined,
    })),
  )

/** Exported names that two or more files declare. */
export const findSharedNames = (sources: readonly Source[]): string[] => {
  const paths = new Map<string, Set<string>>()
  for (const { name, path } of listExports(sources)) paths.set(name, (paths.get(name) ?? new Set()).add(path))
  return [...paths]
    .filter(([, files]) => files.size > 1)
    .map(([name, files]) => `${name}: ${[...files].join(', ')}`)
}

/** The words of the private vocabulary that this project once had (docs/glossary.md has the terms in their place). */
const privateWords = /\b(?:whoever|nobody|somebody|told|mend|lay|laid|bell)\b/gi

const textFolders = ['src', 'docs', 'test', 'chaos', 'workers', 'examples']
const textFiles = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md']
/** Data that models, users and vendors speak is not ours to word; nor is the list of words itself. */
const isData = (path: string): boolean => /\.(?:json|csv|svg)$/.test(path)

/** Lines that use a word of the private vocabulary, as `path:line: text`. */
export const findPrivateWords = (): string[] => {
  const paths = textFolders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length)),
  )
  return [...paths, ...textFiles]
    .filter((path) => /\.(?:ts|mjs|md)$/.test(path) && !isData(path) && !path.includes('/node_modules/'))
    .flatMap((path) =>
      readFileSync(join(root, path), 'utf8')
        .split('\n')
        .flatMap((line, i) => {
          const words = line.match(privateWords)
          return words ? words.map(() => `${path}:${i + 1}: ${line.trim()}`) : []
        }),
    )
}

const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length

/** Parameters of statements above `$9`, as `path:line: $12`: who counts them? */
export const findHighParameters = (sources: readonly Pick<Source, 'path' | 'text'>[]): string[] =>
  sources.flatMap(({ path, text }) =>
    [...text.matchAll(/\$[1-9]\d+\b/g)].map(
      ({ 0: place, index }) => `${path}:${lineAt(text, index)}: ${place}`,
    ),
  )

const withoutTypes = (node: Expression): Expression =>
  node.type === 'ParenthesizedExpression' ||
  node.type === 'TSAsExpression' ||
  node.type === 'TSSatisfiesExpression'
    ? withoutTypes(node.expression)
    : node

/** Literals that are spread into a literal or a call, as `path:line`: their members could stand there. */
export const findLiteralSpreads = (sources: readonly Pick<Source, 'path' | 'text'>[]): string[] =>
  sources.flatMap(({ path, text }) => {
    const found: string[] = []
    new Visitor({
      SpreadElement: ({ argument, start }) => {
        if (/^(Object|Array)Expression$/.test(withoutTypes(argument).type))
          found.push(`${path}:${lineAt(text, start)}`)
      },
    }).visit(parseSync(path, text).program)
    return found
  })

/** The tables of `migrations/schema.sql`. */
export const listCreatedTables = (schema: string): string[] =>
  [...schema.matchAll(/^CREATE TABLE ([a-z_0-9]+) /gm)].map(([, table = '']) => table)

/** Who does the work of a role in the embedded database, and where API and workers share a login. */
const deputies = { mason_admin: 'mason_worker', mason_business: 'mason_api' }

/** The grants on a table that a role has and its deputy has not. A grant on columns is covered by one on the table. */
const listMissingGrants = (schema: string, table: string): string[] => {
  const listOf = (role: string): string[] =>
    [...schema.matchAll(new RegExp(`^GRANT (.*) ON TABLE ${table} TO ${role};`, 'gm'))].flatMap(
      ([, privileges = '']) => privileges.split(/, (?![^(]*\))/),
    )
  return Object.entries(deputies).flatMap(([role, deputy]) => {
    const granted = listOf(deputy)
    return listOf(role)
      .filter((one) => !granted.includes(one) && !granted.includes(one.split(' ', 1)[0] ?? ''))
      .map((one) => `GRANT ${one} TO ${deputy}, as ${role} has`)
  })
}

/** A table that the roles of the processes cannot use, or can use across businesses, by `migrations/schema.sql`. */
export const listOpenTables = (schema: string): string[] =>
  listCreatedTables(schema).flatMap((table) => {
    const has = (statement: string): boolean => new RegExp(`^${statement}`, 'm').test(schema)
    const missing = [
      !has(`ALTER TABLE ${table} ENABLE ROW LEVEL SECURITY;`) && 'ENABLE ROW LEVEL SECURITY',
      !has(`ALTER TABLE ${table} FORCE ROW LEVEL SECURITY;`) && 'FORCE ROW LEVEL SECURITY',
      !has(`CREATE POLICY \\w+ ON ${table} `) && 'policy',
      !has(`GRANT [^;]* ON TABLE ${table} TO `) && 'grant',
      ...listMissingGrants(schema, table),
    ].filter((one) => one !== false)
    return missing.length === 0
      ? []
      : [`${table} has no ${missing.join(', no ')}; add it to the migration: docs/features.md#migrations`]
  })

/** Lines that are neither blank nor comments. */
export const countCode = ({ code }: Source): number => code.split('\n').filter((line) => line.trim()).length
