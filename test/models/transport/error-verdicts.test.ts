import { expect, test } from 'vitest'
import { isSchemaRefusal } from '../../../src/models/transport/error-table.ts'
import {
  createStatusError,
  mayHaveActed,
  type ProviderError,
  readErrorObject,
} from '../../../src/models/transport/provider-errors.ts'
import { readBodyWaitMs, readHeaderWaits } from '../../../src/models/transport/stated-waits.ts'
import { findReportedError } from '../../../src/models/transport/upstream-error.ts'

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
  // no balance, in any language
  [400, 'Ihr Guthaben ist aufgebraucht.', 'e', 'model_unauthorized', 'no_balance'],
  [403, 'Crédit insuffisant : veuillez recharger votre compte.', 'e', 'model_unauthorized', 'no_balance'],
  [429, 'Saldo insuficiente', 'e', 'model_rate_limited', 'no_balance'],
  [400, '帳戶餘額不足', 'e', 'model_unauthorized', 'no_balance'],
  [403, '残高が不足しています', 'e', 'model_unauthorized', 'no_balance'],
  [400, 'Недостаточно средств на счёте', 'e', 'model_unauthorized', 'no_balance'],
  [400, '크레딧이 부족합니다', 'e', 'model_unauthorized', 'no_balance'],
  [403, '预扣费额度失败', 'insufficient_user_quota', 'model_unauthorized', 'no_balance'],
  [400, 'Budget has been exceeded! Max budget: 1.0', 'e', 'model_unauthorized', 'no_balance'],
  [403, 'The free tier of the model has been exhausted.', 'e', 'model_unauthorized', 'no_balance'],
  [400, 'Your thinking must be less than the budget', 'e', 'model_bad_request', undefined],
  // what other vendors say
  [200, 'Open api qps request limit reached', 'e', 'model_rate_limited', 'rate_limited'],
  [400, 'the request limits are: 10 tools', 'e', 'model_bad_request', undefined],
  [200, 'Access token invalid or no longer valid', 'e', 'model_unauthorized', 'bad_key'],
  [400, 'Tool call validation failed: parameters for x', 'e', 'model_bad_reply', 'bad_output'],
  [400, 'Invalid model name passed in model=m1', 'e', 'model_bad_request', 'unknown_model'],
  [400, 'model ID m1 with on-demand throughput isn’t supported', 'e', 'model_bad_request', 'unknown_model'],
  [403, 'It requires moderation and your input was flagged', 'e', 'model_content_filtered', 'filtered'],
  [
    400,
    'input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000',
    'e',
    'model_context_too_long',
    'too_long',
  ],
  [
    422,
    '`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 and 500',
    'e',
    'model_context_too_long',
    'too_long',
  ],
  [400, 'Die Eingabe ist zu lang.', 'e', 'model_context_too_long', 'too_long'],
  [400, 'Der Name der Funktion ist zu lang.', 'e', 'model_bad_request', undefined],
  [400, 'context overflow strategy x is not supported', 'e', 'model_bad_request', undefined],
  [400, 'Invalid model parameter: temperature', 'e', 'model_bad_request', undefined],
  [400, 'The token is invalid at position 4 of JSON', 'e', 'model_bad_request', undefined],
  [400, "'credits' ist nicht aus der Liste der Felder", 'e', 'model_bad_request', undefined],
  [
    400,
    'Insufficient quota: only 50 requests are allowed per 24 hours',
    'e',
    'model_unauthorized',
    'no_balance',
  ],
  [400, "This model's strict tools isn't supported with stream", 'e', 'model_bad_request', undefined],
  [400, "Model output format: 'verbosity' isn't available on this tier", 'e', 'model_bad_request', undefined],
  [
    400,
    "The model call failed: the tool name isn't supported: only ASCII",
    'e',
    'model_bad_request',
    undefined,
  ],
  [400, 'Invalid model: temperature must be between 0 and 2', 'e', 'model_bad_request', undefined],
  [400, 'Das Kontextfenster wird nicht unterstützt', 'e', 'model_bad_request', undefined],
  [400, 'Das Kontextfenster ist überschritten', 'e', 'model_context_too_long', 'too_long'],
  [400, 'Die Anfrage überschreitet das Kontextfenster', 'e', 'model_context_too_long', 'too_long'],
  [400, 'context limit of 5 tools exceeded', 'e', 'model_bad_request', undefined],
  [400, 'context limit of 4096 tokens exceeded', 'e', 'model_context_too_long', 'too_long'],
  [400, 'request limit exceeded 32 MB', 'e', 'model_bad_request', undefined],
  [400, 'Saldo: parámetro insuficiente', 'e', 'model_bad_request', undefined],
  [400, 'параметр баланса недостаточен', 'e', 'model_bad_request', undefined],
  // what vendors of today say
  [403, 'Key limit exceeded (monthly limit). Manage it', 'e', 'model_unauthorized', 'no_balance'],
  [429, 'Your account has exhausted its free trial quota', 'e', 'model_rate_limited', 'no_balance'],
  [429, 'you have used up your daily free allocation', 'e', 'model_rate_limited', 'no_balance'],
  [429, '您的套餐已到期，续费即可恢复', '1309', 'model_rate_limited', 'no_balance'],
  [400, 'Organization has been restricted.', 'organization_restricted', 'model_unauthorized', 'bad_key'],
  [400, 'the user input is restricted to 5 items', 'e', 'model_bad_request', undefined],
  [200, 'Open api daily request limit reached', 'e', 'model_rate_limited', 'rate_limited'],
  [200, '5-hour usage limit reached', 'e', 'model_rate_limited', 'rate_limited'],
  [400, 'The provided model identifier is invalid.', 'e', 'model_bad_request', 'unknown_model'],
  [403, "You don't have access to the model with this ID.", 'e', 'model_bad_request', 'unknown_model'],
  [400, 'It does not work with the specified model, m.', 'e', 'model_bad_request', 'unknown_model'],
  [403, 'Model disabled.', 'e', 'model_bad_request', 'unknown_model'],
  [400, 'the tool of this model disabled its cache', 'e', 'model_bad_request', undefined],
  [500, 'input is too large to process.', 'e', 'model_context_too_long', 'too_long'],
  [400, 'Input is longer than the maximum model length of 4096', 'e', 'model_context_too_long', 'too_long'],
  [400, "Input is longer than the model's context length", 'e', 'model_context_too_long', 'too_long'],
  [400, 'The prompt is greater than the context length', 'e', 'model_context_too_long', 'too_long'],
  [429, 'Request too large for m on tokens per min: 9', 'tokens', 'model_context_too_long', 'too_long'],
  [429, 'Rate limit reached for m on tokens per min', 'tokens', 'model_rate_limited', 'rate_limited'],
  [500, 'Failed to parse input at pos 9: <tool_call>', 'e', 'model_bad_reply', 'bad_output'],
  [400, 'Failed to parse fc related info to json format!', 'e', 'model_bad_reply', 'bad_output'],
  [400, 'Failed to parse the request', 'e', 'model_bad_request', undefined],
  [400, 'It was considered high risk', 'e', 'model_content_filtered', 'filtered'],
  [400, 'no', 'InputTextSensitiveContentDetected', 'model_content_filtered', 'filtered'],
  // a token of JSON, and one of access
  [400, 'The token is incorrect for JSON at position 4', 'e', 'model_bad_request', undefined],
  [400, 'Your access token has expired', 'e', 'model_unauthorized', 'bad_key'],
] as const)('%i %s (%s) is %s, %s', (status, message, type, code, meaning) => {
  const verdict = toVerdict(status, message, type)
  expect([verdict.code, verdict.meaning]).toEqual([code, meaning])
})

test.each([
  [{ header: { code: 11202, message: 'AppIdQpsOverFlowError:(qps overflow)' } }, 'rate_limited'],
  [{ Response: { Error: { Code: 'FailedOperation.ResourcePackExhausted', Message: 'no' } } }, 'no_balance'],
  [{ Response: { Error: { Code: 'ResourceUnavailable.InArrears', Message: 'no' } } }, 'no_balance'],
  [{ Response: { Error: { Code: 'AuthFailure.SecretIdNotFound', Message: 'no' } } }, 'bad_key'],
] as const)('the error %j in a reply is %s', (body, meaning) => {
  expect([findReportedError(body), readErrorObject(body).meaning]).toEqual([body, meaning])
})

test.each([
  ['no_balance', 'Billing hard limit has been reached'],
  ['no_balance', 'Your account has hit its monthly budget cap.'],
  ['no_balance', 'You have 0 credits left. Upgrade your plan.'],
  ['no_balance', 'Your subscription has expired. Please renew it.'],
  ['no_balance', 'No active subscription found for this account'],
  ['no_balance', 'Usage limit reached for this month. Please add a payment method.'],
  ['no_balance', 'insufficient wallet balance'],
  ['bad_key', '无效的令牌'],
  ['bad_output', 'Could not parse the model output as JSON'],
  ['bad_output', 'Tool call arguments generated by the model are not valid JSON'],
  ['unknown_model', 'No endpoints found for acme/m1.'],
  ['unknown_model', '模型 m1 不存在'],
  ['unknown_model', 'The API deployment for this resource does not exist'],
  ['unavailable', 'no healthy upstream'],
  ['unavailable', '服务繁忙，请稍后重试'],
  ['unavailable', 'server busy, please try again later'],
  ['rate_limited', 'You are sending requests too quickly'],
  ['rate_limited', 'Concurrency limit exceeded'],
  [undefined, 'The parameter top_p does not exist'],
  [undefined, 'tools[0]: could not parse the schema of charge_subscription'],
  [undefined, 'The file of this deployment note has no schema'],
  // a part of the request, or a quotation of it
  [undefined, 'thinking budget limit is 24576 tokens'],
  [undefined, 'the reasoning budget cap must be below max_tokens'],
  [undefined, 'budget limit exceeded for thinking tokens'],
  [undefined, 'billing limit must be a positive number'],
  [undefined, 'metadata.budget cap: must be a string'],
  [undefined, 'This size costs 4.0 credits; choose 1024x1024'],
  [undefined, 'quality hd costs 10.0 credits per image and is not supported with n > 1'],
  [
    undefined,
    'tools.0.function.description: "Add a payment method to the account" is longer than 1024 characters',
  ],
  [
    undefined,
    'tools.0.function.description: "Refuses on insufficient wallet balance. Please add a payment method." is too long',
  ],
  [undefined, 'Invalid enum value: expected "active" | "subscription expired"'],
  [undefined, 'logit_bias 中有无效的令牌 50257'],
  [undefined, '输入包含无效的令牌'],
  [undefined, '无效的令牌数量 max_tokens'],
  [undefined, '模型 m1 不支持，参数 top_k 不存在'],
  [undefined, '模型参数 top_k 不存在'],
  [undefined, '模型请求中引用的文件 file-1 不存在'],
  [undefined, '模型 m1 的函数 get_weather 不存在'],
  [undefined, 'The deployment region parameter does not exist'],
  [undefined, 'deployment gpt-4o: the voice "x" does not exist'],
  [undefined, 'No endpoints found for the requested quantization'],
  [undefined, 'No endpoints found for tool use with this model'],
  [undefined, 'Could not parse tool_calls of messages[3]: arguments are not valid JSON'],
  [undefined, 'Unable to parse tool_calls[0].function.arguments in messages'],
  [undefined, 'Could not parse the model output JSON schema'],
  [undefined, 'image generated by the model is not valid JSON'],
  [undefined, 'batch concurrency limit must be between 1 and 8'],
  [undefined, 'enum: "server is busy" is not one of'],
])('a 400 means %s by its words alone: %s', (meaning, message) => {
  expect(toVerdict(400, message).meaning).toBe(meaning)
})

test('a reply whose header is good reports no error', () => {
  expect(findReportedError({ header: { code: 0, message: 'Success' }, payload: {} })).toBe(null)
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

const startMs = Date.parse('2026-01-01T00:00:00Z')

test.each([
  ['The model is available 3 days a week', undefined],
  ['retry attempts 3 s', undefined],
  ['您的账户在7天后到期', undefined],
  ['The model is available again in 3 minutes', 180_000],
  ['retry your request after 3 s', 3000],
  ['请在 20 秒后重试', 20_000],
  ['20秒之后再试', 20_000],
  ['30秒後に再試行してください', 30_000],
  ['Bitte versuchen Sie es in 30 Sekunden erneut.', 30_000],
  ['Bitte warten Sie 2 Stunden', 7_200_000],
  ['Veuillez réessayer dans 20 secondes', 20_000],
  ['Inténtelo de nuevo en 15 segundos', 15_000],
  ['Next request allowed in 7 sec', 7000],
  ['Bitte in 1,5 Minuten erneut versuchen', 90_000],
  ['20s后重试', 20_000],
  ['請在 2 小時後重試', 7_200_000],
  ['1時間後に再度お試しください', 3_600_000],
  ['３０秒お待ちください', 30_000],
  ['Слишком много запросов. Повторите попытку через 20 секунд.', 20_000],
  ['Подождите 2 минуты', 120_000],
  ['Попробуйте ещё раз через 1 час', 3_600_000],
  ['Ваш тариф истекает через 7 дней', undefined],
  ['Не более 20 запросов за 60 секунд, повторите через 5 сек.', 5000],
  ['20초 후에 다시 시도해 주세요.', 20_000],
  ['1분 뒤 재시도하십시오', 60_000],
  ['30초 동안 기다려 주세요', 30_000],
  ['요청은 60초당 20회까지 허용됩니다', undefined],
  ['Tente novamente em 20 segundos.', 20_000],
  ['Aguarde 2 minutos', 120_000],
  ['Riprova tra 20 secondi.', 20_000],
  ['Attendi 1 ora', 3_600_000],
  ['Lütfen 20 saniye sonra tekrar deneyin.', 20_000],
  ['2 dakika bekleyin', 120_000],
  ['Vui lòng thử lại sau 20 giây.', 20_000],
  ['Hãy đợi 2 phút', 120_000],
  ['Silakan coba lagi dalam 20 detik.', 20_000],
  ['Harap tunggu 2 menit', 120_000],
  ['يرجى المحاولة مرة أخرى بعد 20 ثانية', 20_000],
  ['انتظر ٣٠ ثانية', 30_000],
  ['Probeer het over 20 seconden opnieuw', 20_000],
  ['Spróbuj ponownie za 2 minuty', 120_000],
  ['कृपया 20 सेकंड बाद पुनः प्रयास करें', 20_000],
  ['กรุณาลองใหม่ใน 20 วินาที', 20_000],
  ['20 requests are allowed per 60 seconds; retry after 3 seconds', 3000],
  ['at most 3 are allowed within 1 day. Try again in 20s', 20_000],
  ['Only 50 free requests are allowed per 24 hours', undefined],
  ['Your limit resets at 2026-01-01 00:00:09 UTC', 9000],
] as const)('the words "%s" ask for a wait of %s', (words, ms) => {
  expect(readBodyWaitMs({}, words, startMs)).toBe(ms)
})

test.each([
  ['soon 5', undefined],
  ['model 5', undefined],
  ['Thu, 01 Jan 2026 00:00:09 GMT', 9000],
  ['Thursday, 01-Jan-26 00:00:09 GMT', 9000],
  ['2026-01-01T00:00:09.5Z', 9500],
  ['2025-01-01T00:00:00Z', 0],
] as const)('the field of a wait with "%s" asks for %s', (value, ms) => {
  expect(readBodyWaitMs({ retry_after: value }, '', startMs)).toBe(ms)
})

test.each([
  ['limit=100, remaining=0, reset=30', null, 30_000],
  ['limit=100, remaining=7, reset=300', null, undefined],
  ['"default";r=0;t=30', '"default";q=100;w=60', 30_000],
  ['"burst";r=0;t=3, "day";r=0;t=500;pk=:cHJv:, "hour";r=9;t=400', null, 500_000],
  ['day;t=20;r=0', null, 20_000],
  ['"burst, fast";r=5;t=50, "day";r=0', '"burst, fast";q=9;w=9, "day";q=100;w=60;qu="requests"', 60_000],
  ['limit=10, remaining=0', '10;w=40', 40_000],
  ['"default";r=0', null, undefined],
  ['soon', null, undefined],
] as const)('RateLimit %s with the policy %s asks for a wait of %s', (limit, policy, ms) => {
  const headers = { RateLimit: limit, ...(policy && { 'RateLimit-Policy': policy }) }
  expect(readHeaderWaits(new Headers(headers), new Date()).resetMs).toBe(ms)
})

test.each([
  [{ resets_in_seconds: 30 }, 30_000],
  [{ error: { resets_at: startMs / 1000 + 60 } }, 60_000],
  [{ cooldown_seconds: 9 }, 9000],
  [{ next_available_at: '2026-01-01T00:00:20Z' }, 20_000],
  [{ error: { details: [{ retryDelay: { seconds: 34, nanos: 0 } }] } }, 34_000],
])('the body %j asks for a wait of %s', (body, ms) => {
  expect(readBodyWaitMs(body, '', startMs)).toBe(ms)
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
