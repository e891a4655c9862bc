import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { MasonError, toErrorMessage } from '../state/errors.ts'
import type { AnyNode, AnyTool } from './definitions.ts'
import { findNeedErrors, findPartErrors, type GraphParts } from './graph-parts.ts'

const resolveSource = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/**
 * Finds every `*.node.ts` and `*.tool.ts` by its suffix (`.js` once built) under src/nodes, src/tools and `folders`,
 * and checks each: the file is named after what it defines. Throws one `invalid_graph` with every error of every file.
 */
export const loadParts = async (folders: readonly string[] = []): Promise<GraphParts> => {
  const errors: string[] = []
  const nodes: AnyNode[] = []
  const tools: AnyTool[] = []
  for (const folder of [resolveSource('../nodes'), resolveSource('../tools'), ...folders])
    for (const path of await listPartFiles(folder, errors)) {
      const part = await loadPart(path, errors)
      if (part?.kind === 'node') nodes.push(part)
      else if (part) tools.push(part)
    }
  throwOnErrors([...errors, ...findPartErrors({ nodes, tools })])
  return { nodes, tools }
}

/** Throws `invalid_graph` with every error of the parts, and of the services that they need. */
export const checkParts = (parts: GraphParts, serviceNames: readonly string[]): void =>
  throwOnErrors([...findPartErrors(parts), ...findNeedErrors(parts, serviceNames)])

const throwOnErrors = (errors: readonly string[]): void => {
  if (errors.length > 0)
    throw new MasonError('invalid_graph', `the graph cannot be built:\n- ${errors.join('\n- ')}`, {
      remedy: 'fix what is named above',
      detail: { faults: errors },
    })
}

const suffix = /\.(node|tool)\.[jt]s$/

const listPartFiles = async (folder: string, errors: string[]): Promise<string[]> => {
  try {
    const files = await readdir(folder, { recursive: true })
    return (
      files
        .filter((file) => suffix.test(file))
        // by name: a file that moves to another folder leaves prompts, and so the caches of vendors, as they are
        .sort((a, b) => (basename(a) < basename(b) ? -1 : 1))
        .map((file) => join(folder, file))
    )
  } catch (error) {
    errors.push(`${folder}: cannot be read: ${toErrorMessage(error)}`)
    return []
  }
}

/** What a file defines; null, with the error added to `errors`, when that is nothing of its kind. */
const loadPart = async (path: string, errors: string[]): Promise<AnyNode | AnyTool | null> => {
  const kind = suffix.exec(path)?.[1] as 'node' | 'tool'
  const maker = kind === 'node' ? 'defineNode' : 'defineTool'
  let defined: AnyNode | AnyTool | undefined
  try {
    defined = (await import(pathToFileURL(path).href)).default
  } catch (error) {
    errors.push(`${path}: cannot be loaded: ${toErrorMessage(error)}`)
    return null
  }
  if (defined?.kind !== kind) {
    errors.push(`${path}: has no ${kind} as its default export; write: export default ${maker}({ … })`)
    return null
  }
  const { name } = defined
  const expected = name.replaceAll('_', '-')
  const found = basename(path).replace(suffix, '')
  if (found !== expected)
    errors.push(
      `${path}: defines "${name}"; name the file ${expected}.${kind}.ts, or the ${kind} "${found.replaceAll('-', '_')}"`,
    )
  return defined
}
