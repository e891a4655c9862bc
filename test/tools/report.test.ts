import { describe, expect, test } from 'vitest'
import { addSources } from '../../src/tools/output/citations.ts'
import { answer, body, plan, stateOf } from '../support/actions.ts'
import { checkInvariants } from '../support/invariants.ts'
import { memoryRun, modelsOf, type Said, workOn } from '../support/memory-run.ts'
import { callTool, graphWith } from '../support/parts.ts'

const state = stateOf([
  body('load-session'),
  plan([
    { tool: 'look', args: { q: 1 } },
    { tool: 'look', args: { q: 2 } },
  ]),
  { ...answer('look', 0, { text: 'a' }), summary: 'Saw a' },
  { ...answer('look', 1, { text: 'Error: none', is_error: true }), summary: 'Saw nothing' },
])
const source = '[^a3]: action 3, look {"q":1}: Saw a'

describe('the citations of a report', () => {
  test('become footnotes of the actions they point at', () => {
    expect(addSources('There is an a.[^a3]', state)).toEqual({
      text: `There is an a.[^a3]\n\n${source}`,
      cited: [3],
      unknown: [],
    })
  })

  test('of missing actions, or of actions without results, are removed with a note', () => {
    const { text, unknown } = addSources('One[^a3] two [^a99] three[^a1].', state)
    expect(text).toBe(`One[^a3] two three.\n\n${source}`)
    expect(unknown).toEqual([1, 99])
  })

  test('are understood in other forms too, and lists of sources that the model wrote give way', () => {
    const written = 'One [action 3]. Two [actions 3 and 4] and [^3].\n\n[^a3]: I made this up\n[^4]: and this'
    const { text, cited } = addSources(written, state)
    expect(cited).toEqual([3, 4])
    expect(text).toMatch(/^One \[\^a3\]\. Two \[\^a3\]\[\^a4\] and \[\^a3\]\.\n\n\[\^a3\]: action 3/)
    expect(text).not.toContain('made this up')
  })

  test('are added where there are none: all that was found without error', () => {
    expect(addSources('Plain.', state).text).toBe(`Plain.\n\nSources: [^a3]\n\n${source}`)
    expect(addSources('Plain.', stateOf([body('load-session')])).text).toBe('Plain.')
  })
})

describe('output tools', () => {
  const finish = async (tool: string, said: Said, output: object = {}) => {
    const memory = memoryRun({ prompt: 'Report', output: { tool, ...output } })
    const models = modelsOf(({ role }, nth) => {
      if (role === 'output') return said
      if (role !== 'planner') return { text: '' }
      return nth === 1 ? { tool_calls: [{ name: 'look', arguments: { q: 1 } }] } : { text: 'The draft.' }
    })
    const { state: after } = await workOn(await graphWith([callTool('look', () => 'seen')]), memory, {
      models,
    })
    checkInvariants(after)
    return { memory, requests: models.requests.filter(({ role }) => role === 'output') }
  }

  test('a report cites, and streams its text as it is written', async () => {
    const { memory, requests } = await finish('report', {
      text: '{"answer":"# Seen\\n\\nIt is \\"seen\\" [^a4][^a7]."}',
    })
    expect(memory.ended?.result.answer).toMatch(
      /^# Seen\n\nIt is "seen" \[\^a4\]\.\n\n\[\^a4\]: action 4, look/,
    )
    expect(memory.rows.find(({ body: one }) => one.node === 'report')?.body.result).toMatchObject({
      cited: [4],
      unknown_citations: [7],
    })
    expect(requests[0]?.messages[1]?.content).toMatch(/## Action 4\n<data-\w+ tool>\nlook/)
    expect(memory.texts.filter(({ node }) => node === 'report')).toEqual([
      { node: 'report', attempt: 1, text: '# Seen\n\nIt is "seen" [^a4][^a7].' },
    ])
  })

  test('a report that cannot be read is the draft with its sources', async () => {
    const { memory } = await finish('report', { text: 'no JSON' })
    expect(memory.ended?.result.answer).toMatch(/^The draft\.\n\nSources: \[\^a4\]/)
  })

  test('an answer in a style streams its text, a structured one its JSON', async () => {
    const styled = await finish('answer', { text: '{"answer":"In style"}' }, { style: 'grand' })
    expect(styled.memory.texts.filter(({ node }) => node === 'answer')).toMatchObject([{ text: 'In style' }])
    const structure = [{ id: 'count', expected: 'how many', type: 'number' as const }]
    const filled = await finish('structured_answer', { text: '{"count":1}' }, { structure })
    expect(filled.memory.texts.filter(({ node }) => node === 'structured_answer')).toMatchObject([
      { attempt: 1, text: '{"count":1}' },
    ])
  })

  test('an answer that is the draft was streamed by the planner', async () => {
    const { memory } = await finish('answer', { text: '' })
    expect(memory.texts.map(({ node, text }) => [node, text])).toEqual([['planner', 'The draft.']])
  })
})
