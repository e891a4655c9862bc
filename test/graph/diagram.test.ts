import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import {
  describeAccess,
  drawGraph,
  replaceBetween,
  withAccess,
  withPicture,
} from '../../scripts/draw-graph.ts'
import { loadAllParts } from '../../src/app/load-all-parts.ts'

const readPage = (name: string): Promise<string> =>
  readFile(new URL(`../../${name}`, import.meta.url), 'utf8')

describe('the picture of the graph', () => {
  test.each(['README.md', 'README.zh-CN.md'])(
    'in %s is what the code builds; `npm run graph` updates it',
    async (name) => {
      const page = await readPage(name)
      expect(page).toBe(await withPicture(page, await loadAllParts()))
    },
  )

  test('has every node and every kind of tools, and leads where the definitions lead', async () => {
    const parts = await loadAllParts()
    const picture = await drawGraph(parts)
    for (const { name } of parts.nodes) expect(picture).toContain(name)
    for (const line of [
      '__start__ --> load-session',
      'load-session -.-> prepare_tools',
      'prepare_tools -.-> planner',
      'prepare_tools -.-> output_tools',
      'planner -.-> call_tools',
      'call_tools -.-> reflection',
      'reflection -.-> planner',
      'planner -.-> output_tools',
      'output_tools -.-> end_of_run',
      'end_of_run -.-> __end__',
    ])
      expect(picture.split('\n')).toContain(`\t${line};`)
  })

  test('stays the same when a tool is added, whose fields go into the table', async () => {
    const { nodes, tools } = await loadAllParts()
    const [one] = tools.filter((tool) => tool.name === 'read_result')
    if (!one) throw new Error('no read_result')
    const both = { ...one, name: 'new_one', reads: [], kinds: ['call', 'output'] as const, writes: ['todos'] }
    expect(await drawGraph({ nodes, tools: [...tools, both] })).toBe(await drawGraph({ nodes, tools }))
    expect(withAccess('<!-- fields:begin --><!-- fields:end -->', { nodes, tools: [both] })).toContain(
      '\n| `new_one` | call, output tool | – | `todos` |\n',
    )
  })

  test('leaves the rest of a text unchanged, and refuses one without its markers', () => {
    expect(replaceBetween('a <!-- x:begin -->old<!-- x:end --> b', 'x', 'new')).toBe(
      'a <!-- x:begin -->\nnew\n<!-- x:end --> b',
    )
    expect(() => replaceBetween('a', 'x', 'new')).toThrow(/x:begin/)
  })
})

describe('the table of fields', () => {
  test('in docs/state-access.md has no wrong row; `npm run graph` adds the missing ones', async () => {
    const page = await readPage('docs/state-access.md')
    const written = page.split('\n').filter((line) => line.startsWith('| `'))
    expect(written.length).toBeGreaterThan(0)
    const built = new Set(describeAccess(await loadAllParts()))
    expect(written.filter((row) => !built.has(row))).toEqual([])
  })
})
