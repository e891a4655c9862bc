import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { modelWords, ownText } from '../../../../src/state/provenance.ts'
import { type FakeModel, startFakeModel } from '../../../support/fake-model/fake-model.ts'
import { ask, never, openTestModels } from '../../../support/models.ts'

let server: FakeModel
beforeEach(async () => {
  server = await startFakeModel()
})
afterEach(async () => {
  await server.close()
})

const search = { name: 'search', description: 'Looks things up', parameters: { type: 'object' } }
const calls = [
  { id: 'a', name: 'search', arguments: { query: 'one', limit: 5 } },
  { id: 'b', name: 'search', arguments: { query: 'two' } },
]

describe('tool calls', () => {
  it('are put together from interleaved pieces, in order', async () => {
    server.script({ planner: [{ text: 'Looking', tool_calls: calls }] })
    const { models } = openTestModels(server)
    const reply = await models.call(ask({ tools: [search] }), never())
    expect(reply).toMatchObject({ text: 'Looking', finish: 'tool_calls' })
    expect(reply.tool_calls).toEqual([
      { id: 'a', name: 'search', arguments: '{"query":"one","limit":5}' },
      { id: 'b', name: 'search', arguments: '{"query":"two"}' },
    ])
    expect(server.requests()[0]?.tools).toEqual([{ type: 'function', function: search }])
  })

  it.each(['duplicate_tool_ids', 'missing_tool_ids'] as const)(
    'come out with unique ids for %s',
    async (failure) => {
      server.script({ planner: [{ tool_calls: calls, failure }] })
      const { models } = openTestModels(server)
      const before = { id: 'call_same', name: ownText`search`, arguments: ownText`{}` }
      const messages = [
        { role: 'user', content: ownText`go` },
        { role: 'assistant', content: ownText``, tool_calls: [before] },
        { role: 'tool', content: ownText`found`, tool_call_id: 'call_same' },
      ] as const
      const { tool_calls } = await models.call(ask({ messages }), never())
      expect(tool_calls.map((call) => call.arguments)).toEqual([
        '{"query":"one","limit":5}',
        '{"query":"two"}',
      ])
      const ids = tool_calls.map((call) => call.id)
      expect(new Set([...ids, 'call_same']).size).toBe(3)
      expect(ids.every((id) => /^[\w-]{5,40}$/.test(id))).toBe(true)
    },
  )

  it('keep arguments that are no JSON as the model wrote them, and send them back as an object', async () => {
    server.script({
      planner: [{ tool_calls: calls.slice(0, 1), failure: 'bad_json_arguments' }, { text: 'ok' }],
    })
    const { models } = openTestModels(server)
    const { tool_calls } = await models.call(ask(), never())
    expect(tool_calls[0]?.arguments).toBe('{"query":"one","limit":5,')
    await models.call(
      ask({
        messages: [
          {
            role: 'assistant',
            content: ownText``,
            tool_calls: tool_calls.map(({ id, ...call }) => ({
              id,
              name: modelWords(call.name),
              arguments: modelWords(call.arguments),
            })),
          },
        ],
      }),
      never(),
    )
    expect(server.requests()[1]?.messages[0]).toEqual({
      role: 'assistant',
      content: null,
      tool_calls: [
        {
          id: 'a',
          type: 'function',
          function: {
            name: 'search',
            arguments: '{"unreadable_arguments":"{\\"query\\":\\"one\\",\\"limit\\":5,"}',
          },
        },
      ],
    })
  })
})

describe('odd but good replies', () => {
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }

  it('count the last usage, never the sum', async () => {
    server.script({ planner: [{ text: 'abcdef', failure: 'cumulative_usage' }] })
    await expect(openTestModels(server).models.call(ask(), never())).resolves.toMatchObject({ usage })
  })

  it('have no usage when the server counts none', async () => {
    server.script({ planner: [{ text: 'abc', failure: 'no_usage' }] })
    const reply = await openTestModels(server).models.call(ask(), never())
    expect(reply.usage).toEqual({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 })
  })

  it('may come as plain JSON in place of a stream, tool calls included', async () => {
    server.script({
      planner: [{ text: 'Looking', reasoning: 'why', tool_calls: calls, failure: 'plain_json' }],
    })
    const heard: string[] = []
    const reply = await openTestModels(server).models.call(
      ask({ onText: (text) => heard.push(text) }),
      never(),
    )
    expect(reply).toMatchObject({ text: 'Looking', reasoning: 'why', finish: 'tool_calls', usage })
    expect(reply.tool_calls.map((call) => call.id)).toEqual(['a', 'b'])
    expect(heard).toEqual(['Looking'])
  })

  it('may split characters between chunks', async () => {
    server.script({ planner: [{ text: 'naïve 文字 👩‍👩‍👧', failure: 'split_utf8' }] })
    const reply = await openTestModels(server).models.call(ask(), never())
    expect(reply.text).toBe('naïve 文字 👩‍👩‍👧')
  })

  it('may hold NUL and lone surrogates, which are replaced, and split pairs, which are not', async () => {
    server.script({ planner: [{ failure: 'nul_and_surrogates' }] })
    const heard: string[] = []
    const messages = [{ role: 'user', content: ownText`a\u0000\ud800b` }] as const
    const { models } = openTestModels(server)
    const reply = await models.call(ask({ messages, onText: (text) => heard.push(text) }), never())
    expect(reply.text).toBe('a\u0000b\ufffdcd\ufffde😀f')
    expect(heard.join('')).toBe(reply.text)
    expect(heard.every((text) => text.isWellFormed())).toBe(true)
    expect(server.requests()[0]?.messages[0]?.content).toBe('a\u0000\ufffdb')
  })

  it('have at most 4 Mi characters of text', async () => {
    server.script({ planner: [{ failure: 'huge_line' }] })
    const call = openTestModels(server).models.call(ask(), never())
    await expect(call).rejects.toMatchObject({ code: 'model_bad_reply' })
    expect(server.requests()).toHaveLength(1)
  })

  it('are complete with their finish_reason, and over with [DONE] although the connection stays open', async () => {
    server.script({ planner: [{ text: 'all of it', failure: 'never_closes' }] })
    const reply = await openTestModels(server).models.call(ask(), never())
    expect(reply).toMatchObject({ text: 'all of it', finish: 'stop', usage })
  })

  it('are not harmed by a listener that throws', async () => {
    const onText = (): void => {
      throw new Error('the listener is gone')
    }
    await expect(openTestModels(server).models.call(ask({ onText }), never())).resolves.toMatchObject({
      text: 'Done.',
    })
  })
})
