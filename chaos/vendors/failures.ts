import type { Usage } from '../../src/state/runtime-state.ts'
import { openaiError } from '../../test/support/fake-model/answer.ts'
import type { FakeReply, FakeRequest, NamedFailure } from '../../test/support/fake-model/types.ts'

/** What a failure makes of a good reply. */
export type VendorFailure = { name: string; spoil(reply: FakeReply, request: FakeRequest): FakeReply }

const named = (failure: NamedFailure): VendorFailure => ({
  name: failure,
  spoil: (reply) => ({ ...reply, failure }),
})

/** An error that repeats the key, as careless vendors do. */
const refusal = (name: string, status: number, headers: Record<string, string> = {}): VendorFailure => ({
  name,
  spoil: (reply, request) => ({
    ...reply,
    failure: {
      status,
      headers,
      body: openaiError(`not now, ${request.headers.authorization}`, 'fake_failure'),
    },
  }),
})

/** A total that is no sum, or a count below zero. */
const wrongUsage: VendorFailure = {
  name: 'wrong usage',
  spoil: (reply, { nth }) => {
    const { prompt_tokens, completion_tokens } = reply.usage ?? { prompt_tokens: 10, completion_tokens: 5 }
    const usage =
      nth % 2 === 0
        ? { prompt_tokens, completion_tokens, total_tokens: 7777 }
        : { prompt_tokens, completion_tokens: -completion_tokens }
    return { ...reply, usage: usage as Usage }
  },
}

/** The 24 failures: each clock, each refusal, each way to cut, garble and miscount. */
export const vendorFailures: readonly VendorFailure[] = [
  named('stall_headers'),
  named('stall_body'),
  named('stall_after_first_chunk'),
  named('drip'),
  refusal('429 with Retry-After', 429, { 'retry-after': '1' }),
  refusal('429', 429),
  refusal('500', 500),
  refusal('529', 529),
  named('cut'),
  named('cut_after_usage'),
  named('reset'),
  named('end_without_finish'),
  named('never_closes'),
  named('garbage'),
  named('garbage_sse'),
  named('no_choices'),
  named('split_utf8'),
  named('duplicate_tool_ids'),
  named('bad_json_arguments'),
  named('huge_line'),
  named('nul_and_surrogates'),
  named('no_usage'),
  wrongUsage,
  named('cumulative_usage'),
]
