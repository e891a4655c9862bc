import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openaiChat } from '../../../../src/features/response-formats/built-in/openai-chat.ts'
import { openEgress } from '../../../../src/infra/egress/egress.ts'
import { silentLog } from '../../../../src/infra/lib/silent-log.ts'
import type { CanonicalRequest, ProviderOutcome } from '../../../../src/models/ports/model-ports.ts'
import { createOpenAIProvider } from '../../../../src/models/providers/openai/openai-provider.ts'
import { type FakeModel, startFakeModel } from '../../../support/fake-model/fake-model.ts'
import type { FakeReply } from '../../../support/fake-model/types.ts'
import { askOf, type CallResult, keyOf, modelOf, openCaller } from '../../../support/http-call.ts'
import { createCountingClock, never, patient } from '../../../support/models.ts'
import { responseFormats } from '../../../support/response-formats.ts'

let fake: FakeModel
beforeAll(async () => {
  // LangChain takes its time to load, which is not to count as that of a vendor
  await import('../../../../src/models/providers/openai/langchain-clients.ts')
  fake = await startFakeModel()
})
afterAll(() => fake.close())

/** Short only where the server is to be waited for in vain. */
const timeoutsFor = ({ failure }: FakeReply) =>
  typeof failure === 'string' && failure.startsWith('stall')
    ? { firstByteMs: failure === 'stall_after_first_chunk' ? 20_000 : 400, idleMs: 400, totalMs: 60_000 }
    : patient
const tools: CanonicalRequest['tools'] = [
  { name: 'read', description: 'Reads', parameters: { type: 'object' } },
]
const maxBytes = 4 * 1024 * 1024

const byOpenAI = async (
  ask: Partial<CanonicalRequest>,
  timeouts: typeof patient,
): Promise<Omit<CallResult, 'raws' | 'usages'>> => {
  await using egress = openEgress()
  const clock = createCountingClock()
  const provider = createOpenAIProvider({ egress, formats: responseFormats, clock, log: silentLog, maxBytes })
  const deltas: CallResult['deltas'] = []
  const outcome = await provider.send(
    {
      model: { ...modelOf(null, fake.baseUrl, { timeouts, protocol: 'openai' }), category: 'text' },
      key: keyOf(),
      ask: askOf(ask),
      endsAtMs: clock.monotonicMs() + timeouts.totalMs,
      usedIds: ['used_1'],
      onDelta: (delta) => void deltas.push(delta),
    },
    never(),
  )
  return { outcome, deltas }
}
const byHttp = async (ask: Partial<CanonicalRequest>, timeouts: typeof patient): Promise<CallResult> => {
  await using caller = openCaller({ maxBytes })
  const format = openaiChat
  return await caller.call({ model: modelOf(format, fake.baseUrl, { timeouts }), ask })
}

/** What must come out alike; ids that were made up here are of one shape. */
const shown = (outcome: ProviderOutcome) => {
  if (!outcome.ok) {
    const { code, retry, status, retryAfterMs } = outcome.error
    return { code, retry, status, retryAfterMs, usage: outcome.usage }
  }
  const { result } = outcome
  const tool_calls = result.tool_calls.map((one) => ({
    ...one,
    id: one.id.replace(/^call_[0-9a-f]{24}$/, 'call_made_up'),
  }))
  return { ...result, tool_calls }
}

const two = [
  { id: 'a1', name: 'read', arguments: { path: 'Grüße/世界' } },
  { id: 'b2', name: 'read', arguments: '{"path":"b"}' },
]
const replies: [string, FakeReply][] = [
  ['text', { text: 'Hello 世界 🎈' }],
  ['text beside calls', { text: 'I shall look.', tool_calls: two }],
  ['reasoning', { text: 'So.', reasoning: 'Let me think.' }],
  ['an answer that was cut for its length', { text: 'So', finish: 'length' }],
  ['an answer that was withheld', { text: '', finish: 'content_filter' }],
  ['no text', { text: '' }],
  ...(
    [
      'cut',
      'cut_after_usage',
      'reset',
      'garbage',
      'garbage_sse',
      'no_usage',
      'cumulative_usage',
      'split_utf8',
      'duplicate_tool_ids',
      'missing_tool_ids',
      'bad_json_arguments',
      'huge_line',
      'nul_and_surrogates',
      'plain_json',
      'end_without_finish',
      'never_closes',
      'stall_headers',
      'stall_body',
      'stall_after_first_chunk',
    ] as const
  ).map((failure): [string, FakeReply] => [
    failure,
    {
      text: 'I shall look.',
      tool_calls: failure.includes('tool') || failure.includes('json') ? two : [],
      failure,
    },
  ]),
  ...[400, 401, 404, 413, 500, 529].map((status): [string, FakeReply] => [
    `${status}`,
    { failure: { status, body: { error: { message: 'no', type: 'x' } } } },
  ]),
  ['429 with Retry-After', { failure: { status: 429, headers: { 'retry-after': '3' } } }],
  ['an error in a 200', { failure: { status: 200, body: { error: { message: 'overloaded', code: 503 } } } }],
]

describe('a server of chat completions gives by templates and paths what it gives by the openai provider', () => {
  it('and a path that finds nothing is an error of the format', async () => {
    fake.script(() => ({ failure: 'no_choices' }))
    const { outcome } = await byHttp({ stream: true }, patient)
    expect(outcome).toMatchObject({ ok: false, error: { code: 'model_unreadable_answer' }, place: 'text' })
  })

  it.each(replies)('%s', async (_, reply) => {
    fake.script(() => reply)
    const timeouts = timeoutsFor(reply)
    // asked for whole answers, a server has other ways to fail: the openai provider streams all the same
    for (const stream of reply.failure === undefined ? [true, false] : [true]) {
      const [one, other] = [
        await byOpenAI({ tools, stream }, timeouts),
        await byHttp({ tools, stream }, timeouts),
      ]
      expect(shown(other.outcome)).toEqual(shown(one.outcome))
      if (stream && one.outcome.ok) {
        const joined = (called: Pick<CallResult, 'deltas'>) => called.deltas.map(({ text }) => text).join('')
        expect(joined(other)).toBe(joined(one))
      }
    }
  })
})
