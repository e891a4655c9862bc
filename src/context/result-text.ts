import type { AnsweredCall } from '../state/calls.ts'
import type { PromptPart } from '../state/prompt-part.ts'
import { type DataFence, readActionLabel } from '../state/provenance.ts'
import { cutText } from '../state/text/cut-text.ts'
import { estimateTokens } from '../state/text/tokens.ts'
import type { ReadonlyAction } from '../state/turn.ts'
import { compareRanks, rankAction } from './relevance-rank.ts'
import { part, titles } from './sections.ts'

/** Characters of a large result that a prompt shows. */
const headChars = 2000

/** What the text of a result says of itself, as a model reads it; large ones by their start. */
export const readResultText = ({ result }: ReadonlyAction): string => {
  if (typeof result.text === 'string') return result.text
  if (typeof result.head === 'string') return result.head
  const { call: _call, provenance: _provenance, ...own } = result
  return JSON.stringify(own)
}

/** How a result is rendered: at most so many tokens whole; `canOpen`: the reader has `read_result` for the rest. */
type ResultOptions = { maxTokens: number; canOpen: boolean }

/** A result whole while it is small, else its start, what it is and how to read the rest. */
export const renderResultText = (
  action: ReadonlyAction,
  { maxTokens, canOpen: canReadRest }: ResultOptions,
): string => {
  const text = readResultText(action)
  const spilled = isInBlob(action)
  // no text has more tokens than characters
  if (!spilled && (text.length <= maxTokens || estimateTokens(text) <= maxTokens)) return text
  const size = spilled ? `${String(action.result.bytes)} bytes` : `${text.length} characters`
  const head = cutText(text, Math.min(headChars, Math.max(200, maxTokens)))
  return `${head}\n[cut: ${cutText(action.summary, 200)}; ${size} in all; ${explainReading(action, canReadRest)}]`
}

/** Whether its text left the state for a blob. */
export const isInBlob = ({ result }: ReadonlyAction): boolean =>
  result.text === undefined && typeof result.blob === 'string' && typeof result.head === 'string'

const explainReading = ({ id }: ReadonlyAction, canOpen: boolean): string =>
  canOpen ? `read_result with action_id ${id} reads the rest` : 'ask for a smaller part'

/** One line in place of a result that a prompt has no room for. */
export const renderStub = (action: ReadonlyAction, canOpen: boolean): string =>
  `[left out: ${cutText(action.summary, 200)}${canOpen ? `; read_result with action_id ${action.id} reads it` : ''}]`

const renderHeading = ({ call, action }: AnsweredCall): string => {
  const fault = action.result.is_error === true ? ' (error)' : ''
  return `## Action ${action.id}: ${call.tool} ${cutText(JSON.stringify(call.args), 1000)}${fault}`
}

/**
 * The results of calls, by action, within so many tokens: the best ones whole, of the others a line, and where even
 * those have no room, how many there are.
 */
export const renderResults = (
  calls: readonly AnsweredCall[],
  budget: number,
  fence: DataFence,
): PromptPart => {
  const maxTokens = Math.max(100, Math.floor(budget / 4))
  const shown = new Map<AnsweredCall, string>()
  let left = budget
  const take = (one: AnsweredCall, text: string): boolean => {
    const whole = `${renderHeading(one)}\n${fence(text, readActionLabel(one.action))}`
    const tokens = estimateTokens(whole)
    if (tokens > left) return false
    left -= tokens
    shown.set(one, whole)
    return true
  }
  for (const one of calls.toSorted((a, b) => compareRanks(rankAction(a.action), rankAction(b.action))))
    if (!take(one, renderResultText(one.action, { maxTokens, canOpen: false })))
      take(one, renderStub(one.action, false))
  const hidden = calls.length - shown.size
  const texts = calls.flatMap((one) => shown.get(one) ?? [])
  const more = hidden > 0 ? `[${hidden} more results left out]` : ''
  return part(titles.results, [...texts, more].join('\n\n'), 'tool')
}
