import type { RecalledMemory } from '../state/memory-kinds.ts'
import { derivedLabel } from '../state/provenance.ts'
import { computeOverlap, extractTerms } from './relevance-rank.ts'

/** Another session of the user, and what was written down of it when its latest run was learned from. */
export type EarlierSession = {
  session_id: string
  summary: string
  /** The latest turn that it covers. */
  summary_turn: number
  updated_at: Date
}

/** One for all versions of a talk, which goes on after it was recalled; any other id of a memory as it is. */
export const toSessionMemoryKey = (id: string): string => id.replace(/^(session \S+) \d+$/, '$1')

/** The session whose talk this is the id of; null: it is the id of a memory. */
export const parseSessionMemoryId = (id: string): string | null => /^session (\S+) \d+$/.exec(id)?.[1] ?? null

/** "Where were we yesterday": the request goes back to the talk before this one. */
const pointsBack =
  /\b(?:last time|last (?:talk|chat|session|conversation)|previous(?:ly)? (?:talk|chat|session|conversation|discussed)|earlier (?:talk|chat|session|conversation)|left off|yesterday|the other day|continue (?:with|from|where|our|what)|we (?:talked|spoke|discussed)|as (?:we )?(?:discussed|agreed))\b|上次|上一次|昨天|前几天|之前(?:聊|说|谈|讨论)|接着|继续/i

/** How many of the request's content words the earlier session must contain; fewer than two words decide nothing. */
const minOverlap = 0.6
const minTerms = 2

const maxSummaryChars = 1000

/**
 * The talk a request goes back to, as an episode: the one that holds its words, else, where it says that it goes back, the
 * latest. `talks` come latest first. The summary was made of what was said and found, so it is not to be trusted.
 */
export const findEpisode = (request: string, sessions: readonly EarlierSession[]): RecalledMemory | null => {
  const terms = extractTerms(request)
  const [best] = sessions
    .map((talk) => ({ talk, shared: terms.length < minTerms ? 0 : computeOverlap(talk.summary, terms) }))
    .filter(({ shared }) => shared >= minOverlap)
    .toSorted((a, b) => b.shared - a.shared)
  const talk = best?.talk ?? (pointsBack.test(request) ? sessions[0] : undefined)
  if (!talk) return null
  const at = talk.updated_at.toISOString()
  return {
    id: `session ${talk.session_id} ${talk.summary_turn}`,
    kind: 'episode',
    content: `Earlier talk, until ${at.slice(0, 10)}: ${cutToEnd(talk.summary)}`,
    relevance: best ? best.shared * 0.8 : 0.6,
    source_action_ids: [],
    created_at: at,
    ...derivedLabel,
  }
}

/** The end of a summary, on one line: what came last is what is gone on from. */
const cutToEnd = (summary: string): string => {
  const line = summary.trim().replaceAll(/(?<!\s)\s*\n\s*/g, ' / ')
  return line.length <= maxSummaryChars
    ? line
    : `…${line.slice(1 - maxSummaryChars).replace(/^[\uDC00-\uDFFF]/, '')}`
}
