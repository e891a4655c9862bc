import type { ModelReply } from '../../state/ports/models.ts'

/**
 * The finish reasons of vendors and servers, by meaning, over all protocols and formats: letters and digits only, in small letters,
 * without the prefix of an enum (`FINISH_REASON_STOP`). The first that fits counts. `none`: sent in each event before the last.
 * `failed`: it is an error. `cut`: the reply is not whole.
 */
const reasonsByMeaning = {
  none: /^(null|none|unspecified|queued|inprogress|incomplete|generating|running|notfinished)$/,
  stop: /^(stop|stopped|stop(sequence|string|token|word)(found|reached)?|word|endturn|turnend|end|s|ended|(hit|stopped)?eos(token)?(found|id)?|endof(text|turn|sequence|token|message)|eot|eo[tm]id|eom|imend|completed?|completion|done|finish|finished|finalanswer|normal|natural|success|succeeded|ok|toolcalls?|tooluse|functioncalls?|load|unload)$/,
  contentfilter:
    /(?<!call)filter|safety|recitation|blocklist|blocked|prohibited|^spii$|^language$|(?<!connection)refus|sensitive|toxic|guardrail|modelarmor|moderation|policy|copyright|censor|flagged|risk|harm|unsafe|inappropriat|^other$/,
  failed:
    /error|fail|insufficient|malformed|invalid|unexpected|toomany(?!tokens)|connection|missing|cancel|abort|time(dout|out|limit)|deadline|exit|shutdown|preempt|overload|unavailable|ratelimit|interrupt|disconnect|noimage|imageother|expired|outofmemory|^oom$|crash|killed/,
  cut: /max|toomanytokens|length|limit|exceed|truncat|budget|contextwindow|numpredict|outoftokens|^pause|compaction/,
}
type Meaning = keyof typeof reasonsByMeaning
const rows = Object.entries(reasonsByMeaning)

/** What a finish reason means; `unknown` for one that fits nothing. */
export const readFinishMeaning = (reason: string): Meaning | 'unknown' => {
  // those of almost all replies, without the patterns
  if (reason === 'stop' || reason === 'tool_calls' || reason === 'end_turn') return 'stop'
  const plain = reason
    .toLowerCase()
    .replaceAll(/[^a-z\d]/g, '')
    .replace(/^(finish|stop)?reason/, '')
  return (rows.find(([, pattern]) => pattern.test(plain))?.[0] as Meaning | undefined) ?? 'unknown'
}

/** The finish reason in a reply, or the `type` in it; null while it goes on. `true` (as in `done: true`) is `stop`. */
export const readFinishReason = (value: unknown): string | null => {
  const reason = value === true ? 'stop' : ((value as { type?: unknown } | null)?.type ?? value)
  const isOpen = typeof reason !== 'string' || reason.trim() === '' || readFinishMeaning(reason) === 'none'
  return isOpen ? null : reason
}

/** That of a reply whose reason was `before`. One that says that it is not whole stays: gateways add a `stop` of their own. */
export const readLaterReason = (value: unknown, before: string | null): string | null => {
  const meaning = before === null ? 'unknown' : readFinishMeaning(before)
  return meaning === 'stop' || meaning === 'unknown' ? (readFinishReason(value) ?? before) : before
}

/** How a reply ended; null: the vendor gave no reason, but its end was marked. A reason that says failed has no finish. */
export const toFinish = (reason: string | null, hasCalls: boolean): ModelReply['finish'] => {
  const meaning = reason === null ? 'stop' : readFinishMeaning(reason)
  if (meaning === 'cut') return 'length'
  if (meaning === 'contentfilter') return 'content_filter'
  if (meaning === 'unknown') return 'unknown'
  return hasCalls ? 'tool_calls' : 'stop'
}
