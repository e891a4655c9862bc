import type { ModelReply } from '../../state/ports/models.ts'

/**
 * The finish reasons of vendors and servers, by meaning, over all protocols and formats. Written without case, spaces, `_`
 * and `-`, and without the prefix of an enum (`FINISH_REASON_STOP`). `cut`: the reply is not whole. `failed`: it is an error.
 */
const reasonsByMeaning = {
  stop:
    'stop stopped stopsequence stoptoken stopword word endturn turnend end eos eostoken eosfound stoppedeos endoftext endofturn ' +
    'endofsequence endoftoken eot complete completed completion done finish finished finalanswer normal natural success succeeded ' +
    'ok toolcalls toolcall tooluse functioncall functioncalls load unload',
  cut:
    'length maxtokens maxoutputtokens maxnewtokens maxcompletiontokens maxlength maxlen maxgeneratedtokens maxtokensreached ' +
    'maxoutputtokensreached modellength modelcontextwindowexceeded contextwindowexceeded contextlengthexceeded contextlength ' +
    'contextwindow contextlimit tokenlimit tokenlimitreached lengthlimit limit outputlimit numpredict truncated truncation ' +
    'stoppedlimit pauseturn compaction',
  contentfilter:
    'contentfilter contentfiltered filtered filter safety recitation blocklist blocked prohibitedcontent spii imagesafety language ' +
    'imageprohibitedcontent imagerecitation refusal refused sensitive errortoxic guardrail guardrailintervened guardrails ' +
    'modelarmor moderation other',
  failed:
    'error failed failure errorlimit insufficientsystemresource networkerror malformedfunctioncall malformedtoolcall ' +
    'malformedtooluse malformedmodeloutput invalidtoolcall invalidfunctioncall unexpectedtoolcall toomanytoolcalls ' +
    'missingthoughtsignature malformedresponse cancelled canceled usercancel abort aborted timeout timedout timelimit deadline ' +
    'serverexit shutdown preempted engineerror internalerror servererror upstreamerror overloaded engineoverloaded ' +
    'unavailable ratelimit ratelimited interrupted disconnected noimage imageother',
  /** Some vendors send these in each event before the last. */
  none: 'null none unspecified queued inprogress incomplete generating running notfinished',
}
type Meaning = keyof typeof reasonsByMeaning

const meaningByReason: ReadonlyMap<string, Meaning> = new Map(
  Object.entries(reasonsByMeaning).flatMap(([meaning, words]) =>
    words.split(' ').map((word) => [word, meaning as Meaning] as const),
  ),
)

const toPlainReason = (reason: string): string =>
  reason
    .toLowerCase()
    .replaceAll(/[\s_.-]/g, '')
    .replace(/^(finish|stop)reason/, '')

/** What a finish reason means; `unknown` for one that is not in the table. */
export const readFinishMeaning = (reason: string): Meaning | 'unknown' =>
  meaningByReason.get(toPlainReason(reason)) ?? 'unknown'

/** The finish reason in a reply; null while it goes on. `true` (as in `done: true`) is `stop`. */
export const readFinishReason = (value: unknown): string | null => {
  if (value === true) return 'stop'
  return typeof value !== 'string' || value.trim() === '' || readFinishMeaning(value) === 'none'
    ? null
    : value
}

/** How a reply ended; null: the vendor gave no reason, but its end was marked. A reason that says failed has no finish. */
export const toFinish = (reason: string | null, hasCalls: boolean): ModelReply['finish'] => {
  const meaning = reason === null ? 'stop' : readFinishMeaning(reason)
  if (meaning === 'cut') return 'length'
  if (meaning === 'contentfilter') return 'content_filter'
  if (meaning === 'unknown') return 'unknown'
  return hasCalls ? 'tool_calls' : 'stop'
}
