import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { splitRecord } from '../../src/infra/models/offline/delimited.ts'
import { createOfflineFetch } from '../../src/infra/models/offline/fetch.ts'
import { plain, readNumber, show } from '../../src/infra/models/offline/numbers.ts'
import { reply } from '../../src/infra/models/offline/reply.ts'
import { allTools, play, toolList } from './offline-chat.ts'

const words = [
  'which',
  'what',
  'how many',
  'total',
  'average',
  'region',
  'revenue',
  'North',
  'over',
  '100',
  'and',
  'by',
  'top 3',
  'list',
  'lines',
  'mention',
  'ERROR',
  '总和',
  '多少',
  '哪个',
  '最大',
  'compare',
  'percent',
  'in March',
  '2024-01-05',
  '?',
  ',',
  '\n',
  '"',
  '(',
  '[',
  '# Files',
  'a.csv',
  'not',
  '=',
  '12.5%',
  'of',
]
const sentence = fc
  .array(fc.oneof(fc.constantFrom(...words), fc.string({ maxLength: 6 })), { maxLength: 14 })
  .map((parts) => parts.join(' '))
const fileText = fc.oneof(
  fc.string({ maxLength: 200 }),
  fc
    .array(
      fc.array(
        fc.constantFrom(
          'North',
          'South',
          '10',
          '-3.5',
          '$1,200',
          '',
          '"',
          '2024-01-05',
          'a,b',
          '|',
          '12%',
          '{',
          ']',
        ),
        { minLength: 1, maxLength: 4 },
      ),
      { maxLength: 8 },
    )
    .map((rows) => rows.map((row) => row.join(',')).join('\n')),
)

describe('the offline model, whatever it gets', () => {
  it('comes to an end with a text for any request on any file', () => {
    fc.assert(
      fc.property(
        sentence,
        fc.dictionary(fc.constantFrom('a.csv', 'b.md', 'c.json', 'd.log', 'e (1).txt'), fileText, {
          maxKeys: 3,
        }),
        fc.boolean(),
        (prompt, files, previews) => {
          expect(
            play(prompt, {
              files,
              previews,
              instead: (name) => (name === 'ask_user' ? 'the first' : undefined),
            }).text,
          ).not.toBe('')
        },
      ),
      { numRuns: 300 },
    )
  })

  it('comes to an end when the tools answer nonsense', () => {
    fc.assert(
      fc.property(sentence, fc.string(), fileText, (prompt, nonsense, text) => {
        expect(
          play(prompt, { files: { 'a.csv': text, 'b.txt': text }, instead: () => nonsense }).text,
        ).not.toBe('')
      }),
      { numRuns: 150 },
    )
  })

  it('never throws on odd messages, in any role, and gives JSON where a schema is asked', () => {
    const message = fc.record(
      {
        role: fc.constantFrom('system', 'user', 'assistant', 'tool', 'x'),
        content: fc.oneof(sentence, fc.constant(null), fc.array(fc.anything(), { maxLength: 2 })),
        tool_calls: fc.anything(),
        tool_call_id: fc.anything(),
      },
      { requiredKeys: ['role'] },
    )
    const body = fc.oneof(
      fc.anything(),
      fc.record({
        messages: fc.array(message, { maxLength: 5 }),
        tools: fc.anything(),
        response_format: fc.anything(),
      }),
    )
    fc.assert(
      fc.property(
        body,
        fc.constantFrom('planner', 'understand', 'reflection', 'output', 'other', ''),
        (value, role) => {
          expect(typeof reply(value, role).text).toBe('string')
        },
      ),
      { numRuns: 500 },
    )
    const schema = {
      type: 'object',
      properties: { answer: { type: 'string' }, odd: { anyOf: [{ type: 'integer' }] } },
    }
    fc.assert(
      fc.property(
        fc.array(message, { maxLength: 4 }),
        fc.constantFrom('understand', 'reflection', 'output'),
        (messages, role) => {
          const { text } = reply(
            { messages, response_format: { type: 'json_schema', json_schema: { name: role, schema } } },
            role,
          )
          expect(Object.keys(JSON.parse(text) as object).sort()).toEqual(['answer', 'odd'])
        },
      ),
    )
  })

  it('answers any body over HTTP with a status and never rejects', async () => {
    const offline = createOfflineFetch()
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.string(), fc.json()), async (body) => {
        const response = await offline('http://x/v1/chat/completions', { method: 'POST', body })
        expect([200, 400]).toContain(response.status)
      }),
    )
  })

  it('does not stall on a megabyte of prompt', () => {
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
      const prompt = unit.repeat(Math.ceil(1_000_000 / unit.length))
      const answered = reply(
        { messages: [{ role: 'user', content: `# Request\n${prompt}` }], tools: toolList(allTools) },
        'planner',
      )
      expect(typeof answered.text, unit).toBe('string')
    }
  })
})

describe('figures of any table', () => {
  const amount = fc.integer({ min: -1_000_000, max: 10_000_000 }).map((cents) => cents / 100)
  const row = fc.record({ shop: fc.constantFrom('Riga', 'Oslo', 'Bern'), amount })

  it('adds up what is in the file, in all and by group', () => {
    fc.assert(
      fc.property(fc.array(row, { minLength: 3, maxLength: 60 }), (rows) => {
        const files = {
          'shops.csv': `shop,amount\n${rows.map((r) => `${r.shop},${plain(r.amount)}`).join('\n')}\n`,
        }
        const cents = (shop?: string) =>
          rows.filter((r) => !shop || r.shop === shop).reduce((sum, r) => sum + Math.round(r.amount * 100), 0)
        const style = { before: '', after: '', decimals: 2 }
        expect(play('What is the total amount?', { files }).text).toContain(
          `**${show(cents() / 100, style)}**`,
        )
        const byShop = play('total amount by shop', { files }).text
        for (const shop of new Set(rows.map((r) => r.shop)))
          expect(byShop).toContain(`- ${shop}: ${show(cents(shop) / 100, style)} `)
      }),
      { numRuns: 60 },
    )
  })

  it('reads back every number it shows, with signs and separators', () => {
    const style = fc.record({
      before: fc.constantFrom('', '$', '€'),
      after: fc.constantFrom('', '%'),
      decimals: fc.constant(2),
    })
    fc.assert(
      fc.property(amount, style, (value, s) => {
        expect(readNumber(show(value, s))).toBe(Object.is(value, -0) ? 0 : value)
      }),
    )
  })

  it('reads back any quoted record', () => {
    const cell = fc.string({ unit: fc.constantFrom('a', '"', ',', ' ', '\n', 'é'), maxLength: 8 })
    fc.assert(
      fc.property(fc.array(cell, { minLength: 1, maxLength: 5 }), (cells) => {
        const text = cells.map((c) => `"${c.replaceAll('"', '""')}"`).join(',')
        expect(splitRecord(text, ',')).toEqual({ cells, open: false })
      }),
    )
  })
})
