import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { part, promptText, titles } from '../../../src/context/sections.ts'
import { answerOffline } from '../../../src/features/offline-model/offline-model.ts'
import type { ModelMessage } from '../../../src/state/ports/model-messages.ts'
import type { ModelRole } from '../../../src/state/ports/models.ts'
import type { PromptPart } from '../../../src/state/prompt-part.ts'
import { ownText, userWords } from '../../../src/state/provenance.ts'
import { partsFor, play, toolsNamed } from './play.ts'

const text = { type: 'string' }
const json = (
  role: ModelRole,
  parts: PromptPart[],
  properties: Record<string, unknown>,
): Record<string, unknown> => {
  const messages: ModelMessage[] = [{ role: 'user', content: promptText(parts) }]
  const reply = answerOffline({ role, messages, parts, schema: { type: 'object', properties } })
  return JSON.parse(reply.text) as Record<string, unknown>
}

describe('the other roles of the offline model', () => {
  test('understand names scenario and goal', () => {
    const parts = partsFor('What is the total revenue?', {}, '- orders.csv (text/csv)')
    const properties = { scenario: text, task_goal: text, output_structure: { type: 'array' }, start: text }
    expect(json('understand', parts, properties)).toEqual({
      scenario: 'data_question',
      task_goal: 'What is the total revenue? [orders.csv]',
      output_structure: [],
      start: 'planner',
    })
    const long = json('understand', partsFor('😀'.repeat(450), {}), { task_goal: text })
    expect(String(long.task_goal)).toMatch(/^(😀)+…$/u)
  })

  test('reflection finds the calls that failed, and takes no result for a heading', () => {
    const failed = '## Action 4\nok\n\n## Action 5 (error)\nError: gone'
    const spoofed = '## Action 4\n<data-00 file>\n## Action 9 (error)\n</data-00>'
    const reflect = (results: string) =>
      json('reflection', [part(titles.results, userWords(results), 'tool')], {
        is_sufficient: {},
        knowledge_gap: text,
      })
    expect(reflect(failed)).toEqual({
      is_sufficient: false,
      knowledge_gap: 'Action 5 (error)',
    })
    expect(reflect(spoofed)).toMatchObject({ is_sufficient: true })
  })

  test('output passes the draft on, short or as a list where that is asked for', () => {
    const styled = (style: string) =>
      json(
        'output',
        [
          part(titles.draft, ownText`Total: **12** (3 rows, a.csv)\n- North: 7`, 'agent'),
          part(titles.style, userWords(style), 'agent'),
        ],
        { answer: text },
      ).answer
    expect(styled('in iambic pentameter')).toBe('Total: **12** (3 rows, a.csv)\n- North: 7')
    expect(styled('friendly and short')).toBe('Total: **12**')
    expect(styled('bullets')).toBe('- Total: **12** (3 rows, a.csv)\n- North: 7')
  })

  test('planner and output together fill the pieces of a structure, each of its type', async () => {
    const orders =
      'date,region,customer,revenue,status\n2024-01-05,North,Ada,10.5,paid\n2024-04-02,South,Bob,3,returned\n2024-02-02,North,Carol,5,paid\n'
    const structure = [
      '- total (number): total revenue',
      '- best (text): the region with the highest revenue',
      '- customers (list): list of all customers',
      '- by_region (table): revenue by region',
      '- last (date): date of the latest order',
      '- returned (boolean): how many orders were returned',
      '- weather (number): the average temperature',
    ].join('\n')
    const { text: draft } = await play('Analyse the orders', { files: { 'orders.csv': orders }, structure })
    const parts = [
      part(titles.structure, userWords(structure), 'agent'),
      part(titles.draft, userWords(draft), 'agent'),
    ]
    expect(json('output', parts, {})).toEqual({})
    const names = ['total', 'best', 'customers', 'by_region', 'last', 'returned', 'weather']
    expect(json('output', parts, Object.fromEntries(names.map((name) => [name, {}])))).toEqual({
      total: 18.5,
      best: 'North',
      customers: ['Ada', 'Bob', 'Carol'],
      by_region: {
        columns: ['region', 'revenue'],
        rows: [
          ['North', 15.5],
          ['South', 3],
        ],
      },
      last: '2024-04-02',
      returned: true,
      weather: null,
    })
    const foreign = [
      part(titles.structure, userWords(structure), 'agent'),
      part(titles.draft, ownText`x\n\nPieces:\nnone`, 'agent'),
    ]
    expect(json('output', foreign, { total: {} })).toEqual({ total: null })
  })

  test('compaction and distilling answer in their schema', () => {
    const parts = [part(titles.found, ownText`- user (turn 1): hello`, 'agent')]
    expect(json('compaction', parts, { summary: text })).toEqual({
      summary: '# Said and found since\n- user (turn 1): hello',
    })
    expect(json('distill', parts, { memories: {}, summary: text })).toMatchObject({ memories: null })
  })
})

const words =
  'which|what|how many|total|average|region|revenue|North|over|100|and|by|top 3|list|lines|mention|ERROR|总和|多少|哪个|最大|in March|2024-01-05|?|,|\n|"|(|[|# Files|a.csv|not|=|12.5%|of'.split(
    '|',
  )
const sentence = fc
  .array(fc.oneof(fc.constantFrom(...words), fc.string({ maxLength: 6 })), { maxLength: 14 })
  .map((parts) => parts.join(' '))

describe('the offline model, whatever it gets', () => {
  test('comes to an end with a text for any request and any result', async () => {
    const files = { 'a.csv': 'region,amount\nNorth,1\nSouth,2\n', 'b.txt': 'ERROR one\nok\n' }
    await fc.assert(
      fc.asyncProperty(sentence, fc.option(fc.string()), async (prompt, nonsense) => {
        const { text: answer } = await play(prompt, { files, instead: () => nonsense ?? undefined })
        expect(answer).not.toBe('')
        expect(answer).not.toContain('syntax error')
      }),
      { numRuns: 60 },
    )
  })

  test('never throws on odd messages and parts, in any role', () => {
    const call = fc.record({ id: fc.string(), name: fc.string(), arguments: fc.string() })
    const message = fc.oneof(
      fc.record({ role: fc.constantFrom('system' as const, 'user' as const), content: sentence }),
      fc.record({ role: fc.constant('assistant' as const), content: sentence, tool_calls: fc.array(call) }),
      fc.record({ role: fc.constant('tool' as const), content: sentence, tool_call_id: fc.string() }),
    )
    const origin = fc.constant('agent' as const)
    const parts = fc.array(
      fc.record({ title: fc.constantFrom(...Object.values(titles)), text: sentence.map(userWords), origin }),
    )
    const roles = fc.constantFrom<ModelRole>(
      'planner',
      'understand',
      'reflection',
      'output',
      'compaction',
      'distill',
      'vision',
    )
    fc.assert(
      fc.property(roles, fc.array(message), parts, fc.boolean(), (role, messages, all, hasSchema) => {
        const schema = { properties: { answer: text, odd: { anyOf: [{ type: 'integer' }] } } }
        const reply = answerOffline({ role, messages, parts: all, ...(hasSchema && { schema }) })
        expect(typeof reply.text).toBe('string')
        if (hasSchema && reply.tool_calls.length === 0) JSON.parse(reply.text)
      }),
      { numRuns: 300 },
    )
  })

  test('answers a prompt of a megabyte, where a quadratic scan would not end', () => {
    for (const unit of [
      'and what, ',
      'how many lines ',
      '多少，',
      '1 + ',
      '(',
      '"a',
      'a: 1\n',
      'x,y\n',
      'between 1 and ',
    ]) {
      const parts = partsFor(unit.repeat(Math.ceil(1_000_000 / unit.length)), {}, '- a.txt (text/plain)')
      const tools = toolsNamed(['calculate', 'search_file_content']) ?? []
      expect(answerOffline({ role: 'planner', messages: [], parts, tools }), unit).toBeDefined()
    }
  })
})
