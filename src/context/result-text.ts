import type { AnsweredCall } from '../state/calls.ts'
import { maxLargeChars } from '../state/checkpoint.ts'
import { parseBlobResult } from '../state/inline-blobs.ts'
import { memoizeByObject } from '../state/memoize.ts'
import type { Blobs } from '../state/ports/blobs.ts'
import type { PromptPart } from '../state/prompt-part.ts'
import {
  type DataFence,
  derivedLabel,
  joinTexts,
  ownText,
  type PromptText,
  type ProvenanceLabel,
  readActionLabel,
  userWords,
} from '../state/provenance.ts'
import { cutText } from '../state/text/cut-text.ts'
import { estimateTokens } from '../state/text/tokens.ts'
import type { ReadonlyAction } from '../state/turn.ts'
import { compareRanks, rankAction } from './relevance-rank.ts'
import type { PlanRound } from './rounds.ts'
import { part, titles } from './sections.ts'

/** Characters of a large result that a prompt shows where only its beginning is known. */
const headChars = 2000

/** What the text of a result says of itself, as a model reads it; large ones by their start. */
export const readResultText = ({ result }: ReadonlyAction): string => {
  if (typeof result.text === 'string') return result.text
  if (typeof result.head === 'string') return result.head
  const { call: _call, provenance: _provenance, ...own } = result
  return JSON.stringify(own)
}

/** The text of a result in a blob, as far as a prompt may show it, and how many characters the whole has. */
type LargeText = { text: string; total: number }
/** Texts of results in blobs, by their actions. */
export type LargeTexts = ReadonlyMap<ReadonlyAction, LargeText>

/** Blobs never change: each is read once while its action lives. */
const largeTexts = new WeakMap<ReadonlyAction, LargeText>()

/** The results of a round that are in blobs; a round that is over is looked through once. */
const listLargeResults = memoizeByObject(({ calls }: PlanRound): ReadonlyAction[] =>
  calls.flatMap(({ answer }) => (answer && isInBlob(answer) ? [answer] : [])),
)

/** The texts of the results of these rounds that are in blobs. One whose bytes are gone is left out. */
export const readLargeTexts = async (
  rounds: readonly PlanRound[],
  blobs: Pick<Blobs, 'read'>,
): Promise<LargeTexts> => {
  const texts = new Map<ReadonlyAction, LargeText>()
  for (const action of rounds.flatMap((round) => listLargeResults(round))) {
    const known = largeTexts.get(action)
    const whole = known ? null : await readWholeText(action, blobs)
    const large =
      known ?? (whole !== null && { text: whole.slice(0, maxLargeChars).toWellFormed(), total: whole.length })
    if (!large) continue
    largeTexts.set(action, large)
    texts.set(action, large)
  }
  return texts
}

/** The fields of a result, out of its blob where it is in one; null: its bytes are gone. */
export const readWholeResult = async (
  action: ReadonlyAction,
  blobs: Pick<Blobs, 'read'>,
): Promise<ReadonlyAction['result'] | null> => {
  if (!isInBlob(action)) return action.result
  const bytes = await blobs.read(String(action.result.blob))
  return bytes && parseBlobResult(Buffer.from(bytes).toString('utf8'))
}

/** The whole text of a result, out of its blob where it is in one; null: its bytes are gone. */
export const readWholeText = async (
  action: ReadonlyAction,
  blobs: Pick<Blobs, 'read'>,
): Promise<string | null> => {
  const result = await readWholeResult(action, blobs)
  return result ? readResultText({ ...action, result }) : null
}

/**
 * How a result is rendered: at most so many tokens; `canOpen`: the reader has `read_result` for the rest; `large`: its text
 * where it is in a blob.
 */
type ResultOptions = { maxTokens: number; canOpen: boolean; large?: LargeText | undefined }

/** A result whole where it fits, else its start, what it is and how to read the rest. */
export const renderResultText = (
  action: ReadonlyAction,
  { maxTokens, canOpen, large }: ResultOptions,
): string => {
  const text = large?.text ?? readResultText(action)
  const isHeadOnly = !large && isInBlob(action)
  // no text has more tokens than characters
  const tokens = text.length <= maxTokens ? text.length : estimateTokens(text)
  const total = large?.total ?? text.length
  if (!isHeadOnly && tokens <= maxTokens && text.length === total) return text
  const maxChars = isHeadOnly
    ? Math.min(headChars, maxTokens)
    : tokens <= maxTokens
      ? text.length
      : Math.floor((text.length * maxTokens) / tokens)
  const head = cutText(text, Math.max(200, maxChars))
  const size = isHeadOnly ? `${String(action.result.bytes)} bytes` : `${total} characters`
  const rest = explainReading(action, canOpen, isHeadOnly ? null : head.length)
  return `${head}\n[cut: ${cutText(action.summary, 200)}; ${size} in all; ${rest}]`
}

/** Whether its text left the state for a blob. */
const isInBlob = ({ result }: ReadonlyAction): boolean =>
  result.text === undefined && typeof result.blob === 'string' && typeof result.head === 'string'

const explainReading = ({ id }: ReadonlyAction, canOpen: boolean, shown: number | null): string => {
  if (!canOpen) return 'ask for a smaller part'
  return `read_result with action_id ${id}${shown === null ? '' : ` and from ${shown - 1}`} reads the rest`
}

/** One line in place of a result that a prompt has no room for. */
export const renderStub = (action: ReadonlyAction, canOpen: boolean): string =>
  `[left out: ${cutText(action.summary, 200)}${canOpen ? `; read_result with action_id ${action.id} reads it` : ''}]`

/** What was called, and its result: the arguments may come from anywhere, also where the result is a person's own words. */
export const fenceResult = (
  called: string,
  text: string,
  label: ProvenanceLabel,
  fence: DataFence,
): PromptText =>
  label.trusted
    ? joinTexts([fence(called, derivedLabel), userWords(text)], '\n')
    : fence(`${called}\n${text}`.trim(), label)

const renderResult = ({ call, action }: AnsweredCall, text: string, fence: DataFence): PromptText => {
  const failed = action.result.is_error === true ? ownText` (error)` : ownText``
  const called = `${call.tool} ${cutText(JSON.stringify(call.args), 1000)}`
  return ownText`## Action ${action.id}${failed}\n${fenceResult(called, text, readActionLabel(action), fence)}`
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
  const shown = new Map<AnsweredCall, PromptText>()
  let left = budget
  const take = (one: AnsweredCall, text: string): boolean => {
    const whole = renderResult(one, text, fence)
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
  const more = hidden > 0 ? ownText`[${hidden} more results left out]` : ownText``
  return part(titles.results, joinTexts([...texts, more], '\n\n'), 'tool')
}
