import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { MasonError } from '../state/errors.ts'
import type { AnyNode } from './node.ts'
import type { AnyTool } from './tool.ts'

/** The nodes and tools a graph is built from. */
export type Parts = { nodes: readonly AnyNode[]; tools: readonly AnyTool[] }

const source = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/**
 * Finds every `*.node.ts` and `*.tool.ts` by its suffix (`.js` once built) under src/nodes, src/tools and `folders`,
 * and checks each: the file is named after what it defines. Throws `invalid_graph` naming the file and the fault.
 */
export const loadParts = async (folders: readonly string[] = []): Promise<Parts> => {
  const parts: { nodes: AnyNode[]; tools: AnyTool[] } = { nodes: [], tools: [] }
  for (const folder of [source('../nodes'), source('../tools'), ...folders]) {
    const files = (await readdir(folder, { recursive: true })).sort()
    for (const file of files) {
      const kind = /\.(node|tool)\.[jt]s$/.exec(file)?.[1]
      if (!kind) continue
      const part = await loadPart(join(folder, file), kind as 'node' | 'tool')
      if (part.kind === 'node') parts.nodes.push(part)
      else parts.tools.push(part)
    }
  }
  return parts
}

const loadPart = async (path: string, kind: 'node' | 'tool'): Promise<AnyNode | AnyTool> => {
  const refuse = (fault: string, remedy: string): never => {
    throw new MasonError('invalid_graph', `${path}: ${fault}`, { remedy })
  }
  const module = (await import(pathToFileURL(path).href)) as { default?: AnyNode | AnyTool }
  const part = module.default
  const maker = kind === 'node' ? 'defineNode' : 'defineTool'
  if (part?.kind !== kind)
    return refuse(`has no ${kind} as its default export`, `export default ${maker}({ … })`)
  const expected = part.name.replaceAll('_', '-')
  const found = basename(path).replace(/\.(node|tool)\.[jt]s$/, '')
  if (found !== expected)
    return refuse(`defines "${part.name}"`, `name the file ${expected}.${kind}.ts, or the ${kind} "${found}"`)
  return part
}

/** Names that stand twice, unknown ones in `next`, parts that are missing: all faults at once. */
export const checkParts = ({ nodes, tools }: Parts): void => {
  const faults: string[] = []
  const names = new Set<string>()
  for (const { name } of [...nodes, ...tools]) {
    if (names.has(name)) faults.push(`"${name}" is defined twice`)
    names.add(name)
  }
  for (const required of ['load-session', 'planner', 'reflection', 'end'])
    if (!names.has(required)) faults.push(`the node "${required}" is missing`)
  for (const node of nodes)
    for (const next of node.next)
      if (typeof next === 'string' && !names.has(next))
        faults.push(`"${node.name}" leads to "${next}", which is not there`)
  for (const tool of tools) {
    if (tool.kinds.length === 0) faults.push(`tool "${tool.name}" has no kind`)
    if (!/^[a-z][a-z0-9_-]{0,63}$/.test(tool.name))
      faults.push(`tool "${tool.name}" needs a name of a-z, 0-9, _ and -`)
  }
  if (faults.length > 0)
    throw new MasonError('invalid_graph', `the graph cannot be built:\n- ${faults.join('\n- ')}`, {
      remedy: 'mend the files named above',
    })
}
