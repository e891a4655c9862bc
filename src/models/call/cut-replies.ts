import { isJsonText } from '../../infra/lib/json-text.ts'
import { MasonError } from '../../state/errors.ts'
import type { ModelResponse, ModelSelector } from '../ports/call-ports.ts'
import {
  addMeteredUsage,
  type CanonicalMessage,
  type CanonicalRequest,
  type ModelCaller,
  toPlainUsage,
} from '../ports/model-ports.ts'
import type { AskServices } from '../providers/response-formats.ts'

/** One call whose reply may be cut; `onText` gets its text, as in `ModelRequest`. */
type UncutCall = {
  selector: ModelSelector
  ask: CanonicalRequest
  caller: ModelCaller
  onText(text: string, attempt: number): void
}

const shorterNote =
  'Your answer was cut at the output limit. Answer again, much shorter, with the whole JSON and nothing else.'
const continueNote =
  'Your answer was cut at the output limit. Continue exactly there: begin with the last line of it once more, ' +
  'as far as it goes, and write on to the end. Say nothing of the cut.'

/** Fewer characters at the seam may be the same by chance. */
const minOverlap = 4
const maxOverlap = 2000

/** The continuation of a text without what it repeats of it: all of it, or its end from the beginning of a word on. */
const dropOverlap = (before: string, after: string): string => {
  if (after.startsWith(before)) return after.slice(before.length)
  const rest = after.trimStart()
  for (let length = Math.min(before.length, rest.length, maxOverlap); length >= minOverlap; length--) {
    const begin = before.length - length
    const isWord = begin === 0 || /\s/.test(before[begin - 1] ?? '') || /\W/.test(before[begin] ?? '')
    if (isWord && before.endsWith(rest.slice(0, length))) return rest.slice(length)
  }
  return after
}

/** What a model gets that goes on with a cut reply. */
const toContinuation = (text: string, how: 'none' | 'prefill' | 'flag'): CanonicalMessage[] => {
  const said = { role: 'assistant', content: text } as const
  if (how === 'none') return [said, { role: 'user', content: continueNote }]
  return [how === 'flag' ? { ...said, prefix: true } : said]
}

/** A later response of one call, with what the first one took. */
const addSpent = (later: ModelResponse, first: ModelResponse): ModelResponse => ({
  ...later,
  usage: addMeteredUsage(first.usage, later.usage),
  attempts: [...first.attempts, ...later.attempts],
})

/**
 * One call of a role. A reply that was cut at the output limit is asked for again with the model's full limit, where that of
 * the request was lower, else continued once; JSON is asked for once more, shorter, and never stitched. What stays cut
 * has `finish: "length"`. One with calls is the caller's: none of them may be made. Throws `model_bad_reply` for JSON that
 * stays cut, and what the gateway throws.
 */
export const askUncut = async (
  { ask, registry, log }: Pick<AskServices, 'ask' | 'registry' | 'log'>,
  { selector, ask: request, caller, onText }: UncutCall,
  signal: AbortSignal,
): Promise<ModelResponse> => {
  let attempts = 0
  const send = (to: ModelSelector, asked: CanonicalRequest, isStreamed = true): Promise<ModelResponse> => {
    const before = attempts
    return ask(
      to,
      asked,
      caller,
      ({ text, restart }, attempt) => {
        if (!isStreamed) return
        attempts = Math.max(attempts, before + attempt)
        if (text !== '' || restart) onText(text, before + attempt)
      },
      signal,
    )
  }
  const first = await send(selector, request)
  const { text, finish, tool_calls, reasoning } = first.result
  const isJsonReply = request.schema !== null
  const isTold = tool_calls.length > 0 || request.end?.continues(text) === false
  if (finish !== 'length' || isTold || (isJsonReply && isJsonText(text))) return first

  const entry = registry.view.models.get(first.model)
  // a format sends the limit of its model by itself
  const unknownUsage = entry?.format ? (entry.max_output ?? 0) : 0
  const used = first.result.usage?.completion_tokens ?? unknownUsage
  const isLower = entry?.max_output != null && used < entry.max_output
  const full = isLower ? { ...request.parameters, max_tokens: entry.max_output } : request.parameters
  const same = { ...selector, model: first.model }
  /** Another request, whose failure leaves the first reply as it is. */
  const again = async (asked: CanonicalRequest, isStreamed?: boolean): Promise<ModelResponse | null> => {
    log.info({ role: request.role, model: first.model }, 'a reply was cut at the output limit: asked again')
    try {
      return addSpent(await send(same, asked, isStreamed), first)
    } catch (error) {
      if (signal.aborted) throw error
      log.warn({ role: request.role, error: String(error) }, 'a cut reply stays as it is')
      return null
    }
  }
  if (isJsonReply) {
    const messages = [...request.messages, { role: 'user' as const, content: shorterNote }]
    const second = await again({ ...request, messages, parameters: full })
    if (second && (second.result.finish !== 'length' || isJsonText(second.result.text))) return second
    throw new MasonError('model_bad_reply', 'the JSON of the model was cut at its output limit, twice', {
      remedy: 'raise max_output of the model, or ask for less',
      detail: { usage: toPlainUsage((second ?? first).usage) },
    })
  }
  if (text.trim() === '' && reasoning.trim() === '') return first
  if (text.trim() === '' || isLower) {
    // reasoning took all of it: what is not known to be full is doubled
    const parameters = isLower || entry?.max_output != null ? full : { ...full, max_tokens: used * 2 || 8192 }
    if (parameters === request.parameters) return first
    return (await again({ ...request, parameters })) ?? first
  }
  const how = entry?.continuation ?? 'none'
  const base = how === 'none' ? text : text.trimEnd()
  const messages = [...request.messages, ...toContinuation(base, how)]
  const second = await again({ ...request, messages }, false)
  if (second === null || second.result.tool_calls.length > 0 || second.result.text.trim() === '')
    return second === null ? first : { ...second, result: first.result }
  const more = dropOverlap(base, second.result.text)
  if (more !== '' && base === text) onText(more, Math.max(attempts, 1))
  if (base !== text) onText(base + more, attempts + 1)
  return {
    ...second,
    result: {
      ...second.result,
      text: base + more,
      reasoning,
      finish: second.result.finish === 'stop' ? 'stop' : 'length',
    },
  }
}
