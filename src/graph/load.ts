import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { MasonError } from '../state/errors.ts'
import { type Parts, partFaults } from './check-parts.ts'
import type { AnyNode } from './node.ts'
import type { AnyTool } from './tool.ts'

const source = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/**
 * Finds every `*.node.ts` and `*.tool.ts` by its suffix (`.js` once built) under src/nodes, src/tools and `folders`,
 * and checks each: the file is named after what it defines. Throws one `invalid_graph` with every fault of every file.
 */
export const loadParts = async (folders: readonly string[] = []): Promise<Parts> => {
  const faults: string[] = []
  const nodes: AnyNode[] = []
  const tools: AnyTool[] = []
  for (const folder of [source('../nodes'), source('../tools'), ...folders])
    for (const path of await filesIn(folder, faults)) {
      const part = await loadPart(path, faults)
      if (part?.kind === 'node') nodes.push(part)
      else if (part) tools.push(part)
    }
  refuse([...faults, ...partFaults({ nodes, tools })])
  return { nodes, tools }
}

/** Throws `invalid_graph` with every fault of the parts; for parts that come from no file. */
export const checkParts = (parts: Parts): void => refuse(partFaults(parts))

const refuse = (faults: readonly string[]): void => {
  if (faults.length > 0)
    throw new MasonError('invalid_graph', `the graph cannot be built:\n- ${faults.join('\n- ')}`, {
      remedy: 'mend what is named above',
      detail: { faults },
    })
}

const suffix = /\.(node|tool)\.[jt]s$/

const filesIn = async (folder: string, faults: string[]): Promise<string[]> => {
  try {
    const files = await readdir(folder, { recursive: true })
    return files
      .filter((file) => suffix.test(file))
      .sort()
      .map((file) => join(folder, file))
  } catch (error) {
    faults.push(`${folder}: cannot be read: ${messageOf(error)}`)
    return []
  }
}

/** What a file defines; null, with the fault noted, when that is nothing of its kind. */
const loadPart = async (path: string, faults: string[]): Promise<AnyNode | AnyTool | null> => {
  const kind = suffix.exec(path)?.[1] as 'node' | 'tool'
  const maker = kind === 'node' ? 'defineNode' : 'defineTool'
  const part = await importPart(path, faults)
  if (!part) return null
  const defined = part.default
  if (defined?.kind !== kind) {
    faults.push(`${path}: has no ${kind} as its default export; write: export default ${maker}({ … })`)
    return null
  }
  const { name } = defined
  const expected = name.replaceAll('_', '-')
  const found = basename(path).replace(suffix, '')
  if (found !== expected)
    faults.push(
      `${path}: defines "${name}"; name the file ${expected}.${kind}.ts, or the ${kind} "${found.replaceAll('-', '_')}"`,
    )
  return defined
}

const importPart = async (
  path: string,
  faults: string[],
): Promise<{ default?: AnyNode | AnyTool } | null> => {
  try {
    return (await import(pathToFileURL(path).href)) as { default?: AnyNode | AnyTool }
  } catch (error) {
    faults.push(`${path}: cannot be loaded: ${messageOf(error)}`)
    return null
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
