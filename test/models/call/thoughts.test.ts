import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { openThoughts } from '../../../src/models/call/thoughts.ts'
import { emptyResult } from '../../../src/models/ports/model-ports.ts'

/** Thoughts within the text of a reply, split off while it streams and in its result. */

/** What those who follow hear of a text in these chunks, and what its result has. */
const read = (chunks: readonly string[], canRestart = true) => {
  const heard = { text: '', reasoning: '' }
  const thoughts = openThoughts(canRestart, ({ text, reasoning, restart }) => {
    heard.text = (restart ? '' : heard.text) + text
    heard.reasoning = (restart ? '' : heard.reasoning) + reasoning
  })
  for (const text of chunks) thoughts.take({ text, reasoning: '' })
  const { text, reasoning } = thoughts.finish({ ...emptyResult, text: chunks.join('') })
  return { heard, result: { text, reasoning } }
}
const cutInTwo = (text: string): string[][] =>
  Array.from(text, (_, at) => [text.slice(0, at), text.slice(at)])

/** The text, its answer, and its thoughts. */
const replies = [
  ['<think>a</think>b', 'b', 'a'],
  ['<think></think>b', 'b', ''],
  ['<think>a</think><thinking>b</thinking>\nc', 'c', 'ab'],
  ['<think>a<think>b</think>c</think>d', 'd', 'a<think>bc'],
  ['<think>a\n<think>\nb\n</think>\n</think>\nc', 'c', 'a\n<think>\nb'],
  ['<think><think>a</think>b', 'b', 'a'],
  ['<think>\n<think>\na</think>\n</think>\nb', 'b', 'a'],
  ['<think>a<think>b</think>c<think>d</think>e</think>f', 'f', 'a<think>bc<think>de'],
  ['<think>a <think> b</think>c', 'c', 'a <think> b'],
  ['<think>a "<think>" b</think>c', 'c', 'a "<think>" b'],
  ['<think>a<think>b</think>c', 'c', 'a<think>b'],
  ['<think>a<think>b</think>Write <think>x</think> here', 'Write <think>x</think> here', 'a<think>b'],
  ['<think>a</think>Write `</think>` here', 'Write `</think>` here', 'a'],
  ['<think>a</think>A </think> ends it', 'A </think> ends it', 'a'],
  ['</think>\r\na', 'a', ''],
  ['<think>a', '', 'a'],
  ...[
    'Qwen3 ends its thoughts with </think>',
    'The answer is 42.</think>',
    'The answer is 42.\n</think>\n',
    'The answer is 42.\n</think>\n</THINK>\n',
    'The closing tag is **</think>** and then the answer.',
    '结束标签是「</think>」。',
    '思考的结束标签是</think>，之后是答案。',
    '{"tag":"ends with</think>","n":1}',
    'It ends\n</think> and\n```\n</think>\n```\nb',
  ].map((answer) => [`<think>t</think>${answer}`, answer, 't'] as const),
  ...[
    'The answer is 42.</think>\n',
    'The answer is 42.</think>\n</think>',
    'Use <code></think></code> to end it.',
    'It is **</think>** or |</think>|.',
    '标签（</think>）「</think>」『</think>』。',
    '~~~\na</think>b\n~~~\nc',
    '~~~\n```\na\n</think>\nb',
    '{"html":"a</think>b"}',
    '[{"html":"\\"a\\"</think>b"}]',
  ].map((answer) => [answer, answer, ''] as const),
] as const
/** Known only at their end: text that came before has to be taken back. */
const lateReplies = [
  ['a</think>b', 'b', 'a'],
  ['a\r\n</think>\r\nb', 'b', 'a'],
  ['a</think></think>b', 'b', 'a'],
  ['<think>a</think>b\n</think>\nc', 'c', 'ab'],
  ['<think>a</think>b\r\n </think> \r\n\r\nc', 'c', 'ab'],
  ['a</think>b\n</think>\nc</think>d', 'c</think>d', 'ab'],
  ['It is **a**</think>\nb', 'b', 'It is **a**'],
  ['好的~~~</think>b', 'b', '好的~~~'],
  ['{"a":"b"} is it</think>b', 'b', '{"a":"b"} is it'],
] as const

describe('thoughts', () => {
  test.each([...replies, ...lateReplies])(
    'are split from %j at each border of chunks',
    (text, answer, thoughts) => {
      for (const chunks of [[text], [...text], ...cutInTwo(text)]) {
        const { heard, result } = read(chunks)
        expect(result).toEqual({ text: answer, reasoning: thoughts })
        expect([heard.text, heard.reasoning.trim()]).toEqual([answer, thoughts])
      }
    },
  )

  test.each(replies)('are split from %j where nothing can be taken back', (text, answer, thoughts) => {
    for (const chunks of [[text], [...text], ...cutInTwo(text)]) {
      const { heard, result } = read(chunks, false)
      expect(result).toEqual({ text: answer, reasoning: thoughts })
      expect([heard.text, heard.reasoning.trim()]).toEqual([answer, thoughts])
    }
  })

  test('are the same for any parts in any chunks, and no part of the text is lost', () => {
    const tags = ['<think>', '</think>', '<thinking>', '</thinking>', '[think]', '[/think]', '<THINK>']
    const part = fc.constantFrom(
      ...tags,
      '<',
      '</thi',
      'a',
      ' ',
      '\n',
      '\r\n',
      '`',
      '```',
      '~~~',
      '*',
      '{',
      '"',
      'x y',
    )
    const reply = fc.array(part, { maxLength: 12 }).map((parts) => parts.join(''))
    const cuts = fc.array(fc.nat(80), { maxLength: 6 })
    fc.assert(
      fc.property(reply, cuts, fc.boolean(), (text, at, canRestart) => {
        const borders = [0, ...at.filter((one) => one < text.length).sort((a, b) => a - b), text.length]
        const chunks = borders.slice(1).map((end, n) => text.slice(borders[n], end))
        const { heard, result } = read(chunks, canRestart)
        expect(result).toEqual(read([text], canRestart).result)
        expect([heard.text, heard.reasoning.trim()]).toEqual([result.text, result.reasoning])
        const without = (some: string) => some.replaceAll(/<\/?think(ing)?>|\[\/?think\]|\s/gi, '')
        expect(without(heard.reasoning + heard.text)).toBe(without(text))
      }),
      { numRuns: 3000 },
    )
  })

  test.each([['a "</think>" '], ['```</think>'], ['a</think>'], ['<think>a</think>'], ['a\n<think>']])(
    'are split at 50 tags at most, so that many cost no time: %j',
    (part) => {
      const text = part.repeat(1000)
      for (const start of ['', '<think>']) {
        const { heard, result } = read(
          Array(1000)
            .fill(part)
            .with(0, start + part),
        )
        expect(heard).toEqual(read([start + text]).heard)
        expect(result.text.length + result.reasoning.length).toBeGreaterThan(text.length * 0.4)
      }
    },
  )

  test.each([true, false])(
    'are searched for 50 tags, however many there are; can restart: %s',
    (canRestart) => {
      const search = vi.spyOn(String.prototype, 'matchAll')
      try {
        read(['<think>'.repeat(75_000)], canRestart)
        // as it comes, and in the result
        expect(search.mock.calls.length).toBeLessThan(120)
      } finally {
        search.mockRestore()
      }
    },
  )
})
