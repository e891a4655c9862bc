import type { ErrorCode } from '../../src/state/errors.ts'
import { openaiError } from '../../test/support/fake-model/answer.ts'
import type { FakeFailure } from '../../test/support/fake-model/types.ts'

/**
 * A failure of a model server. `code`: with what a run fails whose last request met it; null where a reply came through. After
 * `model_unavailable` a run waits, and fails when its time is up.
 */
type BadModel = { name: string; failure: FakeFailure; code: ErrorCode | null }

const page = { 'content-type': 'text/html' }
const named = (failure: Extract<FakeFailure, string>, code: ErrorCode | null): BadModel => ({
  name: failure,
  failure,
  code,
})

/** The 24 failures: those of the wire, and four refusals. */
export const badModels: readonly BadModel[] = [
  named('stall_headers', 'model_timeout'),
  named('stall_body', 'model_timeout'),
  named('stall_after_first_chunk', 'model_timeout'),
  named('cut', 'model_unavailable'),
  named('cut_after_usage', 'model_unavailable'),
  named('reset', 'model_unavailable'),
  // a page is of a gateway: the run waits for the model behind it
  named('garbage', 'model_unavailable'),
  named('garbage_sse', 'model_bad_reply'),
  named('no_choices', 'model_bad_reply'),
  named('end_without_finish', 'model_unavailable'),
  named('no_usage', null),
  named('cumulative_usage', null),
  named('split_utf8', null),
  named('duplicate_tool_ids', null),
  named('missing_tool_ids', null),
  named('bad_json_arguments', 'bad_tool_call'),
  named('huge_line', 'model_bad_reply'),
  named('nul_and_surrogates', null),
  named('plain_json', null),
  named('never_closes', null),
  { name: '429', failure: { status: 429, headers: { 'retry-after-ms': '20' } }, code: 'model_unavailable' },
  {
    name: '503',
    failure: { status: 503, body: '<html>Bad gateway</html>', headers: page },
    code: 'model_unavailable',
  },
  {
    name: '400',
    failure: {
      status: 400,
      body: openaiError('too long', 'invalid_request_error', 'context_length_exceeded'),
    },
    code: 'model_context_too_long',
  },
  {
    name: 'error in a 200',
    failure: { status: 200, body: openaiError('overloaded', 'server_error') },
    code: 'model_unavailable',
  },
]

/** Words of the remedy that a failure's message has to name. */
export const remedies: Partial<Record<ErrorCode, RegExp>> = {
  model_timeout: /run again, or give the model more time/,
  model_unavailable: /submit the run again once a model is available/,
  model_bad_reply: /OPENAI_BASE_URL is the address of an OpenAI-compatible API/,
  model_context_too_long: /shorten the prompt/,
  bad_tool_call: /another model may serve better/,
}
