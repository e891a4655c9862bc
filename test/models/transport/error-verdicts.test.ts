import { expect, test } from 'vitest'
import { isSchemaRefusal } from '../../../src/models/transport/error-table.ts'
import {
  createStatusError,
  mayHaveActed,
  type ProviderError,
  readErrorObject,
} from '../../../src/models/transport/provider-errors.ts'
import { readBodyWaitMs, readHeaderWaits } from '../../../src/models/transport/stated-waits.ts'

/** What an error of a vendor means, by its status (200: inside a reply), type and words. */
const toVerdict = (status: number, message: string, type = 'e'): ProviderError => {
  const error = { message, type }
  return status === 200 ? readErrorObject(error) : createStatusError(status, JSON.stringify({ error }))
}

test.each([
  // the vendor refused the content
  [
    451,
    'The content you provided or machine outputted is blocked.',
    'censorship_blocked',
    'model_content_filtered',
    'filtered',
  ],
  [
    400,
    'The content you provided or machine outputted is blocked.',
    'e',
    'model_content_filtered',
    'filtered',
  ],
  [451, 'no', 'e', 'model_bad_request', undefined],
  // not too long
  [
    402,
    'Prompt tokens limit exceeded: 42353 > 36352. To increase, visit https://a.example/settings/credits',
    'e',
    'model_unauthorized',
    'no_balance',
  ],
  [402, "Your account's prepaid tokens exceeded, please recharge", 'e', 'model_unauthorized', 'no_balance'],
  [200, 'Too many tokens, please wait before trying again.', 'e', 'model_rate_limited', 'rate_limited'],
  [
    200,
    'Number of input tokens has exceeded your per-minute rate limit',
    'e',
    'model_rate_limited',
    'rate_limited',
  ],
  [403, 'input tokens per minute quota exceeded', 'e', 'model_rate_limited', 'rate_limited'],
  [403, 'token has expired: exceeds max age', 'e', 'model_unauthorized', 'bad_key'],
  [
    503,
    'The service is temporarily unavailable: prompts in queue exceed limit',
    'e',
    'model_unavailable',
    undefined,
  ],
  [504, 'Request timed out: prompt processing exceeded 300 s', 'e', 'model_unavailable', undefined],
  [500, 'Request timed out: prompt processing exceeded 300 s', 'e', 'model_unavailable', undefined],
  [422, 'Input should be greater than 0', 'e', 'model_bad_request', undefined],
  [400, 'top_logprobs: Input must be less than 20', 'e', 'model_bad_request', undefined],
  [400, 'n_predict tokens must be greater than 0', 'e', 'model_bad_request', undefined],
  [400, 'prompt 3: input image size exceeds 5 MB', 'e', 'model_bad_request', undefined],
  // too long
  [400, 'line1\ninput tokens exceed 4096', 'e', 'model_context_too_long', 'too_long'],
  [400, 'input and generated tokens exceed 4096', 'e', 'model_context_too_long', 'too_long'],
  [422, 'inputs must have less than 4,096 tokens', 'e', 'model_context_too_long', 'too_long'],
  [413, 'too many tokens', 'e', 'model_context_too_long', 'too_long'],
  // full or gone for now, which is not an unknown model
  [498, 'no', 'capacity_exceeded', 'model_unavailable', undefined],
  [420, 'no', 'e', 'model_unavailable', undefined],
  [421, 'no', 'e', 'model_unavailable', undefined],
  [423, 'no', 'e', 'model_unavailable', undefined],
  [428, 'no', 'e', 'model_bad_request', undefined],
  [407, 'no', 'e', 'model_bad_request', 'unknown_model'],
  // a part of the request, not the model
  [400, "Function 'search' with argument location is not supported", 'e', 'model_bad_request', undefined],
  [400, "parameter country: value 'XX' not allowed", 'e', 'model_bad_request', undefined],
  [400, "tools.0: property 'region' is not allowed", 'e', 'model_bad_request', undefined],
  [400, 'model X: the parameter logit_bias has been deprecated', 'e', 'model_bad_request', undefined],
  [403, 'Your country is not supported', 'e', 'model_bad_request', 'unknown_model'],
  [403, 'Country, region, or territory not supported', 'e', 'model_bad_request', 'unknown_model'],
  // a token of JSON, and one of access
  [400, 'The token is incorrect for JSON at position 4', 'e', 'model_bad_request', undefined],
  [400, 'Your access token has expired', 'e', 'model_unauthorized', 'bad_key'],
] as const)('%i %s (%s) is %s, %s', (status, message, type, code, meaning) => {
  const verdict = toVerdict(status, message, type)
  expect([verdict.code, verdict.meaning]).toEqual([code, meaning])
})

test('of a gateway that gave up says that the vendor may have acted', () => {
  const statuses = [400, 408, 409, 429, 499, 500, 502, 503, 504, 524]
  expect(statuses.filter((status) => mayHaveActed(createStatusError(status, '')))).toEqual([
    408, 499, 502, 504, 524,
  ])
})

test.each([
  [
    400,
    "* GenerateContentRequest.tools[0].function_declarations[0].parameters.properties[when].format: only 'enum' and 'date-time' are supported for STRING type",
    false,
  ],
  [500, 'unexpected response format from upstream', false],
  [400, 'messages[0]: audio "format" must be wav', false],
  [400, 'request body failed schema validation: temperature must be a number', false],
  [404, 'database schema out of date', false],
  [400, 'response format is not supported together with tools', true],
  [400, "unknown field 'format'", true],
  [400, 'this schema has too many levels', true],
  [500, 'Failed to compile grammar', true],
] as const)('%i %s refuses the form of the answer: %s', (status, message, isRefusal) => {
  expect(isSchemaRefusal({ status, body: JSON.stringify({ error: { message } }) })).toBe(isRefusal)
})

test.each([
  ['The model is available 3 days a week', undefined],
  ['retry attempts 3 s', undefined],
  ['您的账户在7天后到期', undefined],
  ['The model is available again in 3 minutes', 180_000],
  ['retry your request after 3 s', 3000],
  ['请在 20 秒后重试', 20_000],
  ['20秒之后再试', 20_000],
] as const)('the words "%s" ask for a wait of %s', (words, ms) => {
  expect(readBodyWaitMs({}, words)).toBe(ms)
})

test.each([
  ['soon 5', undefined],
  ['model 5', undefined],
  ['Thu, 01 Jan 2026 00:00:09 GMT', 9000],
  ['Thursday, 01-Jan-26 00:00:09 GMT', 9000],
  ['2026-01-01T00:00:09.5Z', 9500],
  ['2025-01-01T00:00:00Z', 0],
] as const)('the field of a wait with "%s" asks for %s', (value, ms) => {
  expect(readBodyWaitMs({ retry_after: value }, '', Date.parse('2026-01-01T00:00:00Z'))).toBe(ms)
})

test.each([
  ['none of a limit that is not used up', { 'requests-day': ['14399', '33011.38'] }, undefined],
  ['the nearest, as one of them may be used up for a moment', { requests: ['9', '1s'] }, 1000],
  ['that of a limit that is used up', { requests: ['9', '1s'], tokens: ['0.0', '20s'] }, 20_000],
  ['10 minutes at most', { tokens: ['0', '2h'] }, 600_000],
  ['that of a limit of which nothing is known', { tokens: [null, '2m'] }, 120_000],
] as const)('of the resets of limits counts %s', (_, limits, ms) => {
  const headers = Object.entries(limits).flatMap(([kind, [left, reset]]) => [
    ...(left === null ? [] : [[`x-ratelimit-remaining-${kind}`, left] as [string, string]]),
    [`x-ratelimit-reset-${kind}`, reset] as [string, string],
  ])
  expect(readHeaderWaits(new Headers(headers), new Date()).resetMs).toBe(ms)
})
