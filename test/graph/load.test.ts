import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { loadAllParts } from '../../src/app/load-all-parts.ts'
import { buildGraph } from '../../src/graph/build.ts'
import { type AnyTool, defineTool } from '../../src/graph/definitions.ts'
import { findPartErrors } from '../../src/graph/graph-parts.ts'
import { loadParts } from '../../src/graph/load.ts'
import { isMasonError } from '../../src/state/errors.ts'
import { listNeededServices } from '../support/services.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mason-load-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const toolText = (name: string, more = ''): string => `
export default { kind: 'tool', name: '${name}', description: '', kinds: ['call'], input: { _zod: {} }, reads: [], writes: [], run() {}, ${more} }
`

/** Writes these files into a folder of their own and gives the errors found in them. */
const errorsOf = async (files: Record<string, string>): Promise<string[]> => {
  const own = await mkdtemp(join(folder, 'case-'))
  await writeFile(join(own, 'package.json'), '{"type": "module"}')
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(own, name, '..'), { recursive: true })
    await writeFile(join(own, name), text)
  }
  try {
    await loadParts([own])
    return []
  } catch (error) {
    if (!isMasonError(error, 'invalid_graph')) throw error
    return (error.detail as { errors: string[] }).errors.map((error) => error.replace(`${own}/`, ''))
  }
}

describe('loading nodes and tools', () => {
  test("the project's own make a graph", async () => {
    const parts = await loadAllParts()
    const graph = buildGraph(parts, listNeededServices(parts))
    expect(graph.parts.nodes.map((node) => node.name).sort()).toEqual([
      'compaction',
      'end',
      'load-session',
      'planner',
      'reflection',
    ])
    expect(graph.tools.map((tool) => tool.name)).toContain('structured_answer')
  })

  test('a tool in a folder of its family is found, other files are left alone', async () => {
    expect(
      await errorsOf({
        'family/deep-look.tool.js': toolText('deep_look'),
        'family/helper.ts': 'throw new Error("never loaded")',
      }),
    ).toEqual([])
  })

  test('all errors are reported at once, each with its file or name and a remedy', async () => {
    const errors = await errorsOf({
      'wrong-name.tool.js': toolText('right_name'),
      'nothing.tool.js': 'export const x = 1',
      'node-in-tool.tool.js': `export default { kind: 'node' }`,
      'throws.tool.js': `throw new Error('boom')`,
      'read-result.tool.js': toolText('read_result'),
      'update-todos.tool.js': toolText('update_todos'),
      'kindless.tool.js': toolText('kindless', 'kinds: []'),
      'odd.tool.js': toolText('odd', `kinds: ['cal'], reads: ['nope'], writes: ['action_history']`),
      'lost.node.js': `export default { kind: 'node', name: 'lost', description: '', next: ['nowhere'], reads: [], writes: [], run() {} }`,
    })
    expect(errors).toEqual([
      'node-in-tool.tool.js: has no tool as its default export; write: export default defineTool({ … })',
      'nothing.tool.js: has no tool as its default export; write: export default defineTool({ … })',
      expect.stringMatching(/^throws\.tool\.js: cannot be loaded: boom \(.*throws\.tool\.js:1:7\)$/),
      'wrong-name.tool.js: defines "right_name"; name the file right-name.tool.ts, or the tool "wrong_name"',
      expect.stringMatching(
        /^"read_result" is defined twice, in .* and read-result\.tool\.js; rename one of them$/,
      ),
      'node "lost" leads to "nowhere", which is not there; correct its next',
      'tool "kindless" has no kind; name one of prepare, call, step, output',
      'tool "odd" has the unknown kind "cal"; the kinds are prepare, call, step, output',
      'tool "odd" reads "nope", which is not a field of the state',
      'tool "odd" writes "action_history", which no patch can change',
      'tool "update_todos" has a reserved name; choose another',
    ])
  })

  test('what a tool says of the dialogue is checked, each error with a remedy', () => {
    const tool = (name: string, more: Partial<AnyTool> = {}): AnyTool =>
      defineTool({
        ...{ name, description: '', kinds: ['call'], input: z.strictObject({ code: z.string() }) },
        ...{ reads: [], writes: [], run: () => Promise.reject(new Error('it never runs')), ...more },
      })
    const tools = [
      tool('fine', {
        server: 'own_server',
        exclusive: 'sandbox',
        raw: { field: 'code', language: 'python' },
      }),
      tool('odd', { server: 'result', exclusive: '', raw: { field: 'text', language: 'perl' as 'python' } }),
      tool('early', { kinds: ['prepare'], exclusive: 'page' }),
      tool('think'),
      tool('answer', { kinds: ['output'] }),
    ]
    expect(findPartErrors({ nodes: [], tools }).filter((error) => error.startsWith('tool'))).toEqual([
      'tool "odd" has the server "result"; name one of a-z, 0-9 and _ that starts with a letter and is not a tag of the dialogue',
      'tool "odd" is exclusive for nothing; name the resource, or remove exclusive',
      'tool "odd" has its raw body in "text"; name a field of its input: code',
      'tool "odd" has a raw body in the language "perl"; the only one is python',
      'tool "early" has exclusive and is not a call tool; give it the kind call, or remove its exclusive',
      'tool "think" has the name of a tag of the dialogue; choose another',
    ])
  })

  test('a node that visits nodes at once is refused where they do not lead to one node', async () => {
    const node = (name: string, next: unknown[]) =>
      `export default { kind: 'node', name: '${name}', description: '', next: ${JSON.stringify(next)}, reads: [], writes: [], run() {} }`
    const branches = {
      'left.node.js': node('left', ['planner']),
      'right.node.js': node('right', ['reflection']),
      'last.node.js': node('last', []),
    }
    expect(
      await errorsOf({
        ...branches,
        'fork.node.js': node('fork', ['left', 'right']),
        'stop.node.js': node('stop', ['left', 'last']),
        'lost.node.js': node('lost', [{ one: ['left', 'nowhere'] }]),
      }),
    ).toEqual([
      'node "fork" can visit several nodes at once that do not lead to one node: "left" to planner, "right" to reflection; ' +
        "give them the same single next, or write { one: ['left', 'right'] } where it visits one at a time",
      'node "lost" leads to "nowhere", which is not there; correct its next',
      expect.stringMatching(/^node "stop" can visit .*"last" to nowhere, "left" to planner/),
    ])
    expect(
      await errorsOf({
        ...branches,
        'joined.node.js': node('joined', ['left', 'middle']),
        'middle.node.js': node('middle', ['planner']),
        'choice.node.js': node('choice', [{ one: ['left', 'right', 'planner'] }]),
      }),
    ).toEqual([])
  })

  test('a missing folder is an error, not a crash', async () => {
    await expect(loadParts([join(folder, 'none')])).rejects.toMatchObject({
      code: 'invalid_graph',
      message: expect.stringContaining('none: cannot be read'),
    })
  })

  test("a tool may have a name that the router's own channels might have", async () => {
    const parts = await loadAllParts()
    const { tools, nodes } = parts
    const [one] = tools.filter((tool) => tool.name === 'read_result')
    if (!one) throw new Error('no read_result')
    const named = ['state', 'call'].map((name) => ({ ...one, name }))
    expect(() => buildGraph({ nodes, tools: [...tools, ...named] }, listNeededServices(parts))).not.toThrow()
  })
})
