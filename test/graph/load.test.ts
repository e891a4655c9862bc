import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { loadAllParts } from '../../src/app/load-all-parts.ts'
import { buildGraph } from '../../src/graph/build.ts'
import { loadParts } from '../../src/graph/load.ts'
import { loadOwnParts } from '../../src/project/load-project.ts'
import { findShapeError } from '../../src/project/part-shapes.ts'
import { isMasonError } from '../../src/state/errors.ts'
import { listNeededServices } from '../support/services.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mason-load-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const toolText = (name: string, more = ''): string => `import { z } from '${import.meta.resolve('zod')}'
export default { kind: 'tool', name: '${name}', description: '', kinds: ['call'], input: z.object({}), reads: [], writes: [], run() {}, ${more} }
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
    await loadOwnParts([], [own])
    return []
  } catch (error) {
    if (!isMasonError(error, 'invalid_graph')) throw error
    return (error.detail as { errors: string[] }).errors.map((error) => error.replace(`${own}/`, ''))
  }
}

describe('loading nodes and tools', () => {
  test("the project's own make a graph", async () => {
    const parts = await loadAllParts()
    expect([...parts.nodes, ...parts.tools].map(findShapeError).filter(Boolean)).toEqual([])
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

  test('a file of CommonJS is loaded, and one whose suffix is nearly right is refused', async () => {
    const cjs = toolText('common')
      .replace(/^import .*\n/, "const { z } = require('zod')\n")
      .replace('export default', 'module.exports =')
    expect(
      await errorsOf({
        'common.tool.cjs': cjs.replace("'zod'", `'${fileURLToPath(import.meta.resolve('zod'))}'`),
        'count.tools.ts': 'throw new Error("never loaded")',
        'words.Tool.js': 'throw new Error("never loaded")',
      }),
    ).toEqual([
      'count.tools.ts: is not loaded by this name; end it in .tool.ts or .node.ts',
      'words.Tool.js: is not loaded by this name; end it in .tool.ts or .node.ts',
    ])
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
      'lost.node.js': `export default { kind: 'node', name: 'lost', description: '', next: ['nowhere'], reads: [], writes: [], run() {} }`,
    })
    expect(errors).toEqual([
      'kindless.tool.js: the fields of its tool are wrong: kinds: must name at least one kind',
      'node-in-tool.tool.js: has no tool as its default export; write: export default defineTool({ … })',
      'nothing.tool.js: has no tool as its default export; write: export default defineTool({ … })',
      expect.stringMatching(/^throws\.tool\.js: cannot be loaded: boom \(.*throws\.tool\.js:1:7\)$/),
      'update-todos.tool.js: the fields of its tool are wrong: name: is reserved, or not of a-z, 0-9, _ and - after a letter; choose another',
      'wrong-name.tool.js: defines "right_name"; name the file right-name.tool.ts, or the tool "wrong_name"',
      expect.stringMatching(
        /^"read_result" is defined twice, in .* and read-result\.tool\.js; rename one of them$/,
      ),
      'node "lost" leads to "nowhere", which is not there; correct its next',
    ])
  })

  const input = z.object({ text: z.string() })
  const tool = {
    kind: 'tool',
    name: 'odd',
    description: '',
    kinds: ['call'],
    input,
    reads: [],
    writes: [],
    run() {},
  }
  const node = {
    kind: 'node',
    name: 'odd',
    description: '',
    next: ['planner'],
    reads: [],
    writes: [],
    run() {},
  }

  test.each<[Record<string, unknown>, string | RegExp]>([
    [{}, ''],
    [{ kinds: 'call' }, 'kinds: Invalid input: expected array, received string'],
    [{ kinds: ['cal'] }, /^kinds\[0\]: .*"prepare"\|"call"\|"step"\|"output"$/],
    [{ reads: ['promts'] }, /^reads\[0\]: .*"prompts"\|.*"action_history"/],
    [{ writes: ['action_history'] }, /^writes\[0\]: .*"output_structure"(?!.*"action_history")/],
    [{ reads: undefined }, 'reads: is missing'],
    [{ run: 'now' }, 'run: must be a function'],
    [{ needs: 'files' }, 'needs: Invalid input: expected array, received string'],
    [{ effects: 'writes' }, 'effects: must be none, read, write or a function of the arguments'],
    [{ effects: null }, 'effects: must be none, read, write or a function of the arguments'],
    [{ effects: 'write', pure: true }, 'pure: remove it, or its other effects'],
    [{ pure: 'yes' }, 'pure: Invalid input: expected boolean, received string'],
    [{ provenance: 'internet' }, /^provenance: .*"web"/],
    [{ exclusive: '' }, 'exclusive: must name the resource'],
    [{ kinds: ['prepare'], exclusive: 'page' }, 'exclusive: give it the kind call, or remove it'],
    [{ server: 'own_server', exclusive: 'sandbox', raw: { field: 'text', language: 'python' } }, ''],
    [{ server: 'result' }, /^server: is a tag of the dialogue/],
    [{ server: 'Search Server' }, /^server: .*not of a-z/],
    [{ raw: 'code' }, 'raw: Invalid input: expected object, received string'],
    [{ raw: { field: 'text', language: 'perl' } }, 'raw.language: Invalid input: expected "python"'],
    [{ raw: { field: 'code' } }, 'input: has no field "code" for the raw body'],
    [{ isAvailable: false }, 'isAvailable: must be a function'],
    [{ effect: 'read', seconds: 5 }, 'Unrecognized keys: "effect", "seconds"'],
    [{ name: 'Odd' }, /^name: .*not of a-z/],
    [{ name: 'think' }, 'name: is a tag of the dialogue; choose another'],
    [{ name: 'think', kinds: ['step'] }, ''],
    [
      { input: { text: z.string() } },
      'input: is not a schema of zod 4; install zod 4, and use z.strictObject({ … })',
    ],
    [{ input: z.string() }, 'input: is not one object; write: input: z.strictObject({ … })'],
    [{ input: z.union([input, z.object({ b: z.string() })]) }, /^input: is not one object/],
    [{ input: z.object({ at: z.date() }) }, /^input: Date cannot be represented in JSON Schema: take a text/],
    [{ input: z.object({ n: z.bigint() }) }, /^input: BigInt cannot be represented/],
    [{ input: z.object({ at: z.date() }), kinds: ['step'] }, ''],
  ])('a tool with %o is checked field by field: %s', (more, problem) => {
    expect(findShapeError({ ...tool, ...more } as never)).toEqual(
      typeof problem === 'string' ? problem : expect.stringMatching(problem),
    )
  })

  test.each([null, 5, { tools: 'cal' }, { one: 'planner' }, { nodes: ['planner'] }])(
    'a node that leads to %o is refused, and the entry named',
    (next) => {
      expect(findShapeError(node as never)).toBe('')
      expect(findShapeError({ ...node, next: [next] } as never)).toBe(
        'next[0]: must be the name of a node, { tools: kind } or { one: [names of nodes] }',
      )
    },
  )

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
