import type { UpstreamError } from './upstream-error.ts'

/** What an error of a vendor means, whatever its status. */
export type ErrorMeaning =
  | 'filtered'
  | 'too_long'
  /** The model wrote a call or JSON that its server could not read. */
  | 'bad_output'
  | 'no_balance'
  | 'bad_key'
  | 'rate_limited'
  | 'unknown_model'
  | 'unavailable'

/** `words`: the part of the message that says so, where no code or type does. */
export type KnownError = { meaning: ErrorMeaning; words?: string }

/** `statuses`: others say enough; 200: an error inside a reply. `names`: codes and types. `words`: messages; they may quote the request, see `KnownError`. */
type Row = [meaning: ErrorMeaning, statuses: RegExp, names: RegExp, words: RegExp]

/**
 * How vendors name and word their errors; the first row that fits counts, by its names before its words. Sources: the
 * vendors' pages of error codes and reports of their users. Numbers: Zhipu 1113, 1211, 1261, 1301, 1302 to 1305; MiniMax
 * 1002, 1004, 1008, 1026, 1027, 1039; SiliconFlow 20012, 30001.
 */
const table: readonly Row[] = [
  [
    'filtered',
    /^(?!401|429)/,
    /content_?(filter|policy|management)|ResponsibleAI|moderation|censor|sensitive_?content|data_?inspection_?failed|invalid_prompt|\b(1301|1026|1027)\b/i,
    /flagged (as|by|for)|(?:input|prompt|content|request) was flagged|content exists risk|rejected as a result of our safety|(violat(es?|ed|ing|ion of)|against) (our |its )?(usage|content) (policy|policies|guidelines)|blocked by .{0,30}(safety|content|guardrail)|outputted is blocked|considered high risk|may contain sensitive|敏感内容|inappropriate content/i,
  ],
  [
    'too_long',
    /^(?!401)/,
    /context_length|context_window|exceed_context|context_too_long|string_above_max_length|\b(1261|1039)\b/i,
    /maximum (?:context|prompt) length|context (?:window|size|length|limit(?! of))\b.{0,200}exceed|exceed.{0,200}context (?:window|size|length|limit)|context\b.{0,20}\boverflows\b|(?:longer|greater) than the (?:model['’]s )?(?:maximum )?(?:context|model) length|input is too large to process|request too large for|inputs?\W{0,2} tokens \+ \W?max_\w{0,20}tokens|Kontextfenster.{0,60}(?:überschr|zu klein|zu lang)|überschr.{0,60}Kontextfenster|(?:prompt|input|request|message) is too long|(?:eingabe|anfrage|nachricht|entr[ée]e|requ[êe]te|entrada|mensaje)\b.{0,30}(?:zu lang|trop long|demasiado larg)|range of input length|reduce the length of|上下文长度|(?:输入|提示词?|请求).{0,12}(?:过长|超长|超过.{0,20}长度)/i,
  ],
  [
    'bad_output',
    /200|400|422|500/,
    /tool_use_failed|json_validate_failed|failed_generation|output_parse_failed|malformed_function_call/i,
    /failed_generation|failed to (call a function|generate (valid )?json|generate a valid tool|parse (?:input at pos|fc related))|tool call validation failed|(error|failed) (parsing|to parse) (the )?(tool.?call|model(?:'s)? (output|response)|generated)|model (generated|produced|returned|output) (an? )?(invalid|malformed|unparsable)|output that could not be parsed/i,
  ],
  [
    'no_balance',
    /^/,
    /insufficient_?(?:user_?|account_?)?(quota|balance|funds|credits?)|budget_?exceeded|pack_?exhausted|free_?tier_?only|billing|exceeded_current_quota|payment_required|credit_?balance|arrear|out_of_(credits?|quota)|\b(1113|1008|30001)\b/i,
    /insufficient (account )?(balance|credits?|funds|quota)|(balance|credits?|quota) (is |are |has been |have been )?(not enough|insufficient|exhausted|used up|too low|negative|depleted)|(out of|not enough|not have (?:enough|sufficient)|no|run out of|requires? more) (remaining )?(credits?|balance|funds)\b|trial (?:period )?(?:has )?(?:ended|expired)|reached (?:your|the) .{0,20}(?:usage|spending|billing) limit|exceeded your current quota|plan (and|&) billing|(please |to )recharge|(add|purchase|buy) (more )?(credits?|funds)|top.?up|used all (your |its )?(available )?credits|spending limit|payment (is )?required|in arrears|overdue|unpaid (bill|invoice)|budget has been exceeded|free tier\b.{0,40}\bexhausted|(?:exhausted|used up) (?:its|your) (?:daily )?free|key limit exceeded|套餐.{0,4}到期|欠费|额度失败|(余额|余量|额度|资源包|餘額|額度|残高|クレジット).{0,4}(不足|耗尽|用尽|用完|耗盡|用盡)|(?<!параметр )(?:guthaben|kontingent|saldo|solde|cr[ée]dits?|cr[ée]ditos?|credito|средств|баланс|크레딧|잔액)[^:：.]{0,40}(?:aufgebraucht|ersch[öo]pft|reicht nicht|insuffisant|[ée]puis[ée]|insuficiente|insufficiente|agotad|esgotad|esaurit|недостаточ|исчерпан|부족)|недостаточно средств/i,
  ],
  [
    'bad_key',
    /200|400|403/,
    /invalid_?api_?key|api_?key_?(invalid|expired)|authentication_?(error|failed)|invalid_?(authentication|credentials|token)(?![a-z])|unauthenticated|auth_?failure|(?:account|organization)_?(deactivated|suspended|disabled|restricted)|\b1004\b/i,
    /(invalid|incorrect|wrong|expired|revoked|missing|unknown).{0,12}api.?key|api.?key.{0,30}(invalid|not valid|expired|incorrect|revoked|disabled|not found|leaked)|invalid (authentication|credentials)|(account|organization|user|workspace)\b.{0,60}(deactivated|suspended|disabled|banned|terminated)|organization has been restricted|login fail|no (?:auth|authentication) credentials|(?:^|\b(?:access|auth\w{0,20}|api|bearer|your|the|this) )token (?:is |has )?expired|(?:access|auth\w{0,20}|api|bearer|your) token (?:is )?invalid\b|(令牌|密钥)(无效|已过期|不正确)/i,
  ],
  [
    'rate_limited',
    /200|400|403/,
    /rate_?limit|too_?many_?requests|throttl|resource_?exhausted|quota_?exceeded|\b(1302|1303|1305|1002)\b/i,
    /too many ((concurrent )?requests|tokens\b.{0,20}\bwait)|rate.?limit|(requests|tokens) per (minute|second|day|hour)|(?:qps|rpm|tpm|usage|(?:qps|daily|hourly) request) limit (?:reached|exceeded)|qps.?over|quota exceeded|throttl|请求过于频繁|速率限制|并发/i,
  ],
  [
    'unknown_model',
    /200|400|403|422/,
    /model_?not_?(found|exist|supported|available)|invalid_?model|unknown_?model|no_such_model|\b(1211|20012)\b/i,
    /\bmodel\b(?:(?!param|argument|field).){0,120}(does(n't| not) exist|not exist|not found|is not (a valid|supported|available|accessible|loaded)|is enabled only|(?:been|is) (?:deprecated|sunset|retired|removed|decommissioned)|no longer (?:available|supported))|(?:(?:user|your) (?:location|country|region)|country, region, or territory)\b.{0,40}not (?:supported|available|allowed)|\bmodel(?: id)?(?: \S{1,120})?(?: with on-demand throughput)? isn[’']t (?:a valid|supported|available|accessible|loaded)|not a valid model|model identifier is invalid|(?:do not|don[’']t) have access to (?:the|this) model|not work with the specified model|^model disabled|(unknown|no such|unsupported) model|invalid model(?: name| id| ["'`])|unable to access .{0,30}model|模型不存在|无可用渠道/i,
  ],
  [
    'unavailable',
    /400|403/,
    /overloaded|unavailable|server_?error|upstream_?error|internal_?error|bad_response_status/i,
    /overloaded|(?:temporarily|currently) unavailable|at capacity|model is (currently )?loading|upstream (request )?(error|failed)/i,
  ],
  // words that errors of other meanings share
  [
    'too_long',
    /200|400|413|422|500/,
    /(?!)/,
    /^(?![\s\S]*(?:max_\w{0,20}tokens|\b(?:rate|quota|per[ -](?:minute|day)|credit|queue|timed? ?out|expired|wait|image|should be (?:greater|less) than)))[\s\S]*(?:\b(?:inputs?|prompts?|tokens?)\b.{0,60}\b(?:exceed|(?:less|fewer|greater|longer|more) than \d[\d,]{2})|exceed.{0,60}\d tokens|too many tokens(?! per))/i,
  ],
]

/** The codes in JSON that a message quotes: gateways pass on what the vendor behind them said. */
const readQuotedNames = (message: string): string =>
  [...message.matchAll(/"(?:code|type|status|reason)"\s{0,3}:\s{0,3}"?([\w.-]{1,60})/g)].join(' ')

/** What an error means, as far as more than its status says so. */
export const classifyError = (
  { names, message = '' }: Pick<UpstreamError, 'names' | 'message'>,
  status: number | undefined,
): KnownError | undefined => {
  const rows = table.filter(([, statuses]) => statuses.test(String(status ?? 200)))
  const named = rows.find(([, , pattern]) => pattern.test(names))
  if (named) return { meaning: named[0] }
  const quoted = readQuotedNames(message)
  for (const [meaning, , pattern, words] of rows) {
    const match = words.exec(message) ?? pattern.exec(quoted)
    if (match) return { meaning, words: match[0] }
  }
  return undefined
}

const form =
  /json_?schema|json_?(mode|object)|json\s?(格式|模式)|response[\s_-]?(schema|mime)|output_(config|format|schema)|guided_(json|grammar)|(structured|json|constrained|guided).?(output|response|mode|decoding|generation)|grammar|结构化/i
/** Words that are of the form where the server did not fail; some of them where they are of no other part either. */
const words =
  /response[\s_-]?format|^(?!.*(function|tool|audio|image|messages?\[|schema validation|database)).*(\bschemas?\b|["'`.]format\b)/is

/** Whether an error is about the form of the answer that was asked for. Only of a request that had one. */
export const isSchemaRefusal = ({ status, body = '' }: { status?: number; body?: string }): boolean =>
  status !== undefined &&
  [400, 404, 415, 422, 500, 501].includes(status) &&
  (form.test(body) || (status < 500 && words.test(body))) &&
  !/failed_generation|json_validate_failed|tool_use_failed/i.test(body)
