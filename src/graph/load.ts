import { readdir } from 'node:fs/promises'
import { basename, join, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { openDeadline, unlessAborted } from '../state/deadline.ts'
import { MasonError, toErrorMessage } from '../state/errors.ts'
import type { AnyNode, AnyTool } from './definitions.ts'
import { findNeedErrors, findPartErrors, type GraphParts } from './graph-parts.ts'

const resolveSource = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** A folder with nodes and tools of a product, and how its files are loaded. */
export type PartSource = { folder: string; load(path: string): Promise<PartModule> }

/** A file with a node or tool. */
export type PartFile = { path: string; load(): Promise<PartModule> }

/** What a file of a node or tool exports. */
type PartModule = Record<string, unknown>

/** The nodes and tools, each with the file that defines it. */
export type LoadedParts = GraphParts & { files: ReadonlyMap<AnyNode | AnyTool, string> }

/** How long one file may take to load, which on a starved machine is long. */
export const loadTimeoutMs = 60_000

/** What is wrong with a file that takes too long. */
export const describeSlowFile = `takes more than ${loadTimeoutMs / 1000} s to load; open connections in \`setup\` of mason.config.ts, or in \`run\``

class SlowFileError extends Error {}

/** Loads a file of a product, which may take `loadTimeoutMs`. */
export const loadInTime = async (path: string, load: PartSource['load']): Promise<PartModule> => {
  using deadline = openDeadline(loadTimeoutMs, new AbortController().signal)
  return await unlessAborted(load(path), deadline.signal).catch((error: unknown) => {
    throw deadline.signal.aborted ? new SlowFileError(describeSlowFile) : error
  })
}

const importNatively = (path: string): Promise<PartModule> => import(pathToFileURL(path).href)

/**
 * Finds every `*.node.ts` and `*.tool.ts` by its suffix (`.js` once built) under src/nodes, src/tools and `sources`, takes
 * those of features, and checks each: the file is named after what it defines. Throws one `invalid_graph` with every error of every file.
 */
export const loadParts = async (
  sources: readonly (string | PartSource)[] = [],
  ofFeatures: readonly PartFile[] = [],
  findShapeError: (part: AnyNode | AnyTool) => string = () => '',
): Promise<LoadedParts> => {
  const errors: string[] = []
  const files = new Map<AnyNode | AnyTool, string>()
  const listBuiltIn = async (kind: 'node' | 'tool'): Promise<PartFile[]> =>
    [
      ...(await findPartFiles(resolveSource(`../${kind}s`), importNatively, errors)),
      ...ofFeatures.filter(({ path }) => suffix.exec(path)?.[1] === kind),
    ].sort(byName)
  const listed = [await listBuiltIn('node'), await listBuiltIn('tool')]
  for (const source of sources) {
    const isFolder = typeof source === 'string'
    const load: PartSource['load'] = isFolder ? importNatively : (path) => loadInTime(path, source.load)
    listed.push((await findPartFiles(isFolder ? source : source.folder, load, errors)).sort(byName))
  }
  for (const file of listed.flat()) {
    const part = await loadPart(file, findShapeError, errors).catch((error: unknown) => {
      errors.push(`${file.path}: ${describeLoadError(error)}`)
      // the others would be waited for as long
      if (error instanceof SlowFileError) throwOnErrors(errors)
      return null
    })
    if (part) files.set(part, file.path)
  }
  const parts = [...files.keys()]
  const nodes = parts.filter((part) => part.kind === 'node')
  const tools = parts.filter((part) => part.kind === 'tool')
  throwOnErrors([...errors, ...findPartErrors({ nodes, tools }, files)])
  return { nodes, tools, files }
}

/** Throws `invalid_graph` with every error of the parts, and of the services that they need. */
export const checkParts = (parts: GraphParts, serviceNames: readonly string[]): void =>
  throwOnErrors([...findPartErrors(parts), ...findNeedErrors(parts, serviceNames)])

const throwOnErrors = (errors: readonly string[]): void => {
  if (errors.length > 0)
    throw new MasonError('invalid_graph', `the graph cannot be built:\n- ${errors.join('\n- ')}`, {
      remedy: 'fix what is named above',
      detail: { errors },
    })
}

const suffix = /\.(node|tool)\.[cm]?[jt]sx?$/
const odd = /\.(?:node|tool)s?\.[cm]?[jt]sx?$/i

/** By name: a file that moves to another folder leaves prompts, and so the caches of vendors, as they are. */
const byName = (a: PartFile, b: PartFile): number => (basename(a.path) < basename(b.path) ? -1 : 1)

/** Whether it is a package, or in one: it may ship its sources beside the `.js` files that were built from them, which count alone. */
export const isOfPackage = (path: string): boolean => path.split(sep).includes('node_modules')

/** The files with code in a folder and below, relative to it, without those of packages in it. */
export const listCodeFiles = async (folder: string): Promise<string[]> => {
  const code = isOfPackage(folder) ? /\.[cm]?js$/ : /\.(?:[cm]?js|(?<!\.d\.)[cm]?ts|[jt]sx)$/
  return (await readdir(folder, { recursive: true })).filter((file) => code.test(file) && !isOfPackage(file))
}

const findPartFiles = async (
  folder: string,
  load: PartSource['load'],
  errors: string[],
): Promise<PartFile[]> => {
  try {
    const found = (await listCodeFiles(folder)).filter((file) => odd.test(file))
    for (const file of found.filter((one) => !suffix.test(one)))
      errors.push(`${join(folder, file)}: is not loaded by this name; end it in .tool.ts or .node.ts`)
    return found
      .filter((file) => suffix.test(file))
      .map((file) => ({ path: join(folder, file), load: () => load(join(folder, file)) }))
  } catch (error) {
    errors.push(`${folder}: cannot be read: ${toErrorMessage(error)}`)
    return []
  }
}

const isPart = (value: unknown): value is AnyNode | AnyTool =>
  typeof value === 'object' && value !== null && 'kind' in value && ['node', 'tool'].includes(`${value.kind}`)

/** What a file defines; null, with the error added to `errors`, when that is nothing of its kind. */
const loadPart = async (
  { path, load }: PartFile,
  findShapeError: (part: AnyNode | AnyTool) => string,
  errors: string[],
): Promise<AnyNode | AnyTool | null> => {
  const kind = suffix.exec(path)?.[1] as 'node' | 'tool'
  const maker = kind === 'node' ? 'defineNode' : 'defineTool'
  const reject = (problem: string): null => {
    errors.push(`${path}: ${problem}`)
    return null
  }
  const { default: defined, ...others } = await load()
  if (!isPart(defined) || defined.kind !== kind)
    return reject(`has no ${kind} as its default export; write: export default ${maker}({ … })`)
  const other = Object.entries(others).find(([, value]) => value !== defined && isPart(value))
  if (other) return reject(`also exports "${other[0]}", a second part; give it a file of its own`)
  // a compiler has checked those of the build
  const shapeError = path.startsWith(resolveSource('..')) ? '' : findShapeError(defined)
  if (shapeError) return reject(`the fields of its ${kind} are wrong: ${shapeError}`)
  const { name } = defined
  const expected = name.replaceAll('_', '-')
  const found = basename(path).replace(suffix, '')
  if (found !== expected)
    reject(
      `defines "${name}"; name the file ${expected}.${kind}.ts, or the ${kind} "${found.replaceAll('-', '_')}"`,
    )
  return defined
}

/** What is wrong with a file that was not loaded. */
export const describeLoadError = (error: unknown): string =>
  error instanceof SlowFileError ? error.message : `cannot be loaded: ${describeError(error)}`

/** The message of an error, and the first line of a file that it comes from. */
export const describeError = (error: unknown): string => {
  const message = toErrorMessage(error)
  const stack = error instanceof Error ? (error.stack ?? '') : ''
  const place = stack
    .split('\n')
    .map((line) => /^\s+at (?:.*\()?(?:file:\/\/)?(\/[^()]+:\d+:\d+)\)?$/.exec(line)?.[1])
    .find((one) => one !== undefined && !one.includes('/node_modules/'))
  return place === undefined || message.includes(place) ? message : `${message} (${place})`
}
