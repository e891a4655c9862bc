import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { builtInFormats } from '../../../../src/models/formats/built-in/built-in-formats.ts'
import { checkFormat } from '../../../../src/models/formats/format-check.ts'
import { testFormat } from '../../../../src/models/formats/format-test.ts'
import { inferFormat } from '../../../../src/models/formats/infer/format-inference.ts'
import { formatInputSchema } from '../../../../src/models/schemas/response-format.ts'

const samples = builtInFormats().flatMap((format) =>
  format.samples.map((sample, at) => ({ title: `${format.name} ${at}`, format, sample })),
)
const good = samples.filter(({ sample }) => !Object.hasOwn(sample.expected, 'error'))
const bad = samples.filter(({ sample }) => Object.hasOwn(sample.expected, 'error'))

/** What a proposal says of itself holds. */
const holds = (raw: unknown, category?: string) => {
  const { proposal, parsed, ...more } = inferFormat(raw, category)
  if (proposal === null || parsed === null) throw new Error(`nothing is proposed: ${more.unsure.join('; ')}`)
  expect(formatInputSchema.parse(proposal)).toBeTruthy()
  expect(proposal.samples.length).toBe(1)
  expect(checkFormat(proposal)).toEqual([])
  return { proposal, parsed, ...more }
}

describe('a format inferred from a pasted answer', () => {
  test.each(good)('is a built-in one for $title', ({ format, sample }) => {
    // an edited image looks like a new one
    const category = format.category === 'image-edit' ? format.category : undefined
    const { built_in, parsed, proposal } = holds(sample.raw, category)
    const known = builtInFormats().find(({ name }) => name === built_in)
    expect(known).toBeDefined()
    const own = testFormat(format, sample.raw)
    if (!own.ok) throw new Error(own.detail)
    expect({ text: parsed.text, usage: parsed.usage, finish: parsed.finish }).toEqual({
      text: own.parsed.text,
      usage: own.parsed.usage,
      finish: own.parsed.finish,
    })
    expect(proposal.category).toBe(format.category)
  })

  test.each(bad)('is refused for $title as an error, or marked as a guess', ({ sample }) => {
    const { proposal, unsure } = inferFormat(sample.raw)
    if (proposal !== null) expect(Object.keys(sample.raw as object)).not.toContain('error')
    expect(unsure.length).toBeGreaterThan(0)
  })

  /** Names do not show an empty answer, or which parts are the vendor's own. */
  const unrecognizable = {
    'openai-chat': [11, 13],
    'openai-responses': [6, 8],
    'anthropic-messages': [3, 6, 11],
    'deepseek-chat': [7],
    'gemini-generate-content': [7],
    'zhipu-chat': [2],
  }
  const excluded = new Set(
    Object.entries(unrecognizable).flatMap(([name, places]) => places.map((at) => `${name} ${at}`)),
  )
  /** Names do not show a recording, a stream, a job, or Gemini's flag for thoughts. */
  const recognizable = good.filter(
    ({ title, format, sample }) =>
      typeof sample.raw !== 'string' &&
      format.poll == null &&
      format.category !== 'text-to-speech' &&
      !excluded.has(title) &&
      !(format.name === 'gemini-generate-content' && ['0', '2', '3', '4'].includes(title.slice(-1))),
  )
  test.each(recognizable)('reads $title by names and shapes alone', ({ sample, format }) => {
    const renamed = { pasted: sample.raw }
    const { parsed, built_in } = holds(renamed, format.category)
    const own = testFormat(format, sample.raw)
    if (!own.ok) throw new Error(own.detail)
    expect(built_in).toBeNull()
    expect(parsed.text).toBe(own.parsed.text)
    expect(parsed.embeddings).toEqual(own.parsed.embeddings)
    expect(parsed.ranking).toEqual(own.parsed.ranking)
    expect(parsed.images).toEqual(own.parsed.images)
    expect(parsed.tool_calls.map(({ name }) => name)).toEqual(own.parsed.tool_calls.map(({ name }) => name))
  })

  test('reads odd shapes: chat with counts under names of their own', () => {
    const { parsed, proposal } = holds({
      ok: true,
      payload: {
        utterances: [{ speaker: 'bot', says: 'The parcel is at the depot.' }],
        tally: { tokens_in: 12, tokens_out: 5 },
        'inner voice': { thinking: 'Where is it?' },
      },
      why_stopped: 'length',
    })
    expect(proposal.category).toBe('text')
    expect(parsed).toMatchObject({
      text: 'The parcel is at the depot.',
      reasoning: 'Where is it?',
      finish: 'length',
      usage: { prompt_tokens: 12, completion_tokens: 5 },
    })
  })

  test('reads odd shapes: a list at the root', () => {
    const { parsed, unsure } = holds([{ generated_text: 'Once upon a time' }])
    expect(parsed.text).toBe('Once upon a time')
    expect(unsure.join()).toContain('usage')
  })

  test('reads odd shapes: lines of a stream distinguished by their kind', () => {
    const lines = [
      { kind: 'piece', words: 'The par' },
      { kind: 'piece', words: 'cel is here.' },
      { kind: 'action', action: { tool: 'open_door', with: { floor: 2 } } },
      { kind: 'summary', words: 'The parcel is here.' },
      { kind: 'end', tokens: { in: 31, out: 7 } },
    ]
    const raw = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
    const { parsed, proposal, unsure } = holds(raw)
    expect(proposal.stream?.format).toBe('ndjson')
    expect(parsed).toMatchObject({
      text: 'The parcel is here.',
      tool_calls: [{ name: 'open_door', arguments: '{"floor":2}' }],
      usage: { prompt_tokens: 31, completion_tokens: 7 },
    })
    expect(unsure.join()).toContain('whole response')
  })

  test('reads odd shapes: events with an end of their own', () => {
    const raw = 'event: x\ndata: {"seq":1,"chunk":"Hel"}\n\ndata: {"seq":2,"chunk":"lo you"}\n\ndata: END\n\n'
    const { parsed, proposal } = holds(raw)
    expect(parsed.text).toBe('Hello you')
    expect(proposal.stream).toMatchObject({ format: 'sse', done: 'END' })
  })

  test('reads odd shapes: vectors, rankings and videos under strange names', () => {
    const vectors = holds({
      result: {
        vecs: [
          [0.1, 0.2],
          [0.3, 0.4],
        ],
      },
      consumed: { tokens_total: 9 },
    })
    expect(vectors.parsed.embeddings).toEqual([
      [0.1, 0.2],
      [0.3, 0.4],
    ])
    expect(vectors.parsed.usage?.total_tokens).toBe(9)
    const ranks = holds({
      order: [
        { position: 2, similarity: 0.9 },
        { position: 0, similarity: 0.1 },
      ],
    })
    expect(ranks.parsed.ranking).toEqual([
      { index: 2, score: 0.9 },
      { index: 0, score: 0.1 },
    ])
    const clip = holds({ made: { clip: { at: 'https://cdn.example/v/1.mp4' } }, took: 3 })
    expect(clip.proposal.category).toBe('text-to-video')
    expect(clip.parsed.video).toEqual({ url: 'https://cdn.example/v/1.mp4' })
  })

  test('reads odd shapes: a job that is not done, with words to be looked up', () => {
    const { parsed, proposal, unsure } = holds({ taskId: 'T-17', state: 'queued', eta: 12 })
    expect(parsed.job).toEqual({ id: 'T-17', status: 'queued' })
    expect(proposal.poll?.done).toContain('succeeded')
    expect(unsure.join()).toContain('poll')
  })

  test.each([
    ['a word', 'hello there'],
    ['nothing', null],
    ['an empty text', ''],
    ['a number', 7],
    ['numbers', [1, 2, 3].map(String)],
    ['an empty object', {}],
    ['a half event', 'data: {"a":'],
  ])('proposes nothing for %s, and says why', (_, raw) => {
    const { proposal, unsure } = inferFormat(raw)
    expect(proposal).toBeNull()
    expect(unsure[0]).not.toBe('')
  })

  test('never throws, and what it proposes passes its own check', () => {
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue({ maxDepth: 5 }), fc.json()), (raw) => {
        const { proposal } = inferFormat(raw)
        if (proposal !== null) expect(checkFormat(proposal)).toEqual([])
      }),
      { numRuns: 150 },
    )
  })
})
