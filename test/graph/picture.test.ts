import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { loadParts } from '../../src/graph/load.ts'
import { between, fieldsTableOf, mermaidOf, withPicture } from '../../src/graph/picture.ts'

describe('the picture of the graph', () => {
  test('in the README is what the code builds; `npm run graph` brings it up to date', async () => {
    const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8')
    expect(readme).toBe(withPicture(readme, await loadParts()))
  })

  test('holds every node and tool, and leads where the definitions lead', async () => {
    const parts = await loadParts()
    const picture = mermaidOf(parts)
    for (const { name } of [...parts.nodes, ...parts.tools])
      expect(picture).toMatch(new RegExp(`[("]${name}[")]`))
    for (const line of [
      'load_session_ -- those with work --> prepare_tools',
      'prepare_tools --> understand_',
      'understand_ --> planner_',
      'planner_ -- calls --> call_tool',
      'call_tool --> reflection_',
      'reflection_ --> planner_',
      'planner_ -- finishes --> output_tools',
      'output_tools --> end_',
    ])
      expect(picture).toContain(`  ${line}\n`.trimEnd())
  })

  test('shows a new tool in the group of each of its kinds', async () => {
    const { nodes, tools } = await loadParts()
    const [one] = tools.filter((tool) => tool.name === 'calculate')
    if (!one) throw new Error('no calculate')
    const both = { ...one, name: 'new_one', kinds: ['call', 'output'] as const, writes: ['todos'] }
    const picture = mermaidOf({ nodes, tools: [...tools, both] })
    expect(picture).toContain('call_new_one_(["new_one"])')
    expect(picture).toContain('output_new_one_(["new_one"])')
    expect(fieldsTableOf({ nodes, tools: [both] })).toContain(
      '| `new_one` | call, output tool | – | `todos` |',
    )
  })

  test('leaves the rest of a text alone, and refuses one without its marks', () => {
    expect(between('a <!-- x:begin -->old<!-- x:end --> b', 'x', 'new')).toBe(
      'a <!-- x:begin -->\nnew\n<!-- x:end --> b',
    )
    expect(() => between('a', 'x', 'new')).toThrow(/x:begin/)
  })
})
