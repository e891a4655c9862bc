import type { AnsweredCall } from '../calls.ts'
import { cutText } from '../cut-text.ts'
import { estimateTokens } from '../tokens.ts'
import type { ReadonlyAction } from '../turn.ts'
import { type Fence, labelOfAction } from './fence.ts'
import { byRank, rankOf } from './rank.ts'
import { section } from './section.ts'

/** Characters of a large result that a prompt shows. */
const headChars = 2000

/** What the text of a result says of itself, as a model reads it; large ones by their start. */
export const resultText = ({ result }: ReadonlyAction): string => {
  if (typeof result.text === 'string') return result.text
  if (typeof result.head === 'string') return result.head
  const { call: _call, provenance: _provenance, ...own } = result
  return JSON.stringify(own)
}

/** How a result is shown: at most so many tokens whole; `canOpen`: the reader has `read_result` for the rest. */
type ResultOptions = { maxTokens: number; canOpen: boolean }

/** A result whole while it is small, else its start, what it is and how to read the rest. */
export const shownResult = (action: ReadonlyAction, { maxTokens, canOpen }: ResultOptions): string => {
  const text = resultText(action)
  const spilled = isSpilled(action)
  // no text has more tokens than characters
  if (!spilled && (text.length <= maxTokens || estimateTokens(text) <= maxTokens)) return text
  const size = spilled ? `${String(action.result.bytes)} bytes` : `${text.length} characters`
  const head = cutText(text, Math.min(headChars, Math.max(200, maxTokens)))
  return `${head}\n[cut: ${cutText(action.summary, 200)}; ${size} in all; ${howToOpen(action, canOpen)}]`
}

/** Whether its text left the state for a blob. */
export const isSpilled = ({ result }: ReadonlyAction): boolean =>
  result.text === undefined && typeof result.blob === 'string' && typeof result.head === 'string'

const howToOpen = ({ id }: ReadonlyAction, canOpen: boolean): string =>
  canOpen ? `read_result with action_id ${id} reads the rest` : 'ask for a smaller part'

/** One line in place of a result that a prompt has no room for. */
export const stubOf = (action: ReadonlyAction, canOpen: boolean): string =>
  `[left out: ${cutText(action.summary, 200)}${canOpen ? `; read_result with action_id ${action.id} reads it` : ''}]`

const headingOf = ({ call, action }: AnsweredCall): string => {
  const fault = action.result.is_error === true ? ' (error)' : ''
  return `## Action ${action.id}: ${call.tool} ${cutText(JSON.stringify(call.args), 1000)}${fault}`
}

/**
 * What calls brought, by action, within so many tokens: the best ones are shown, of the others a line, and where even
 * those have no room, how many there are.
 */
export const resultsOf = (calls: readonly AnsweredCall[], budget: number, fence: Fence): string => {
  const maxTokens = Math.max(100, Math.floor(budget / 4))
  const shown = new Map<AnsweredCall, string>()
  let left = budget
  const take = (one: AnsweredCall, text: string): boolean => {
    const whole = `${headingOf(one)}\n${fence(text, labelOfAction(one.action))}`
    const tokens = estimateTokens(whole)
    if (tokens > left) return false
    left -= tokens
    shown.set(one, whole)
    return true
  }
  for (const one of calls.toSorted((a, b) => byRank(rankOf(a.action), rankOf(b.action))))
    if (!take(one, shownResult(one.action, { maxTokens, canOpen: false })))
      take(one, stubOf(one.action, false))
  const hidden = calls.length - shown.size
  const texts = calls.flatMap((one) => shown.get(one) ?? [])
  return section('Results', [...texts, hidden > 0 ? `[${hidden} more results left out]` : ''].join('\n\n'))
}
