import { type AnsweredCall, listAnsweredCalls } from '../../state/calls.ts'
import type { RuntimeState } from '../../state/runtime-state.ts'
import { cutText } from '../../state/text/cut-text.ts'

/** A report whose citations were checked: the text with its list of sources, and the ids it cites. */
type CitedReport = { text: string; cited: number[]; unknown: number[] }

const citation = /\s?\[\^a(\d+)\]/g
/** What models write in their own ways: `[action 12]`, `[actions 3 and 4]`, `[^12]`. */
const otherForms = /\[(?:actions?\s+|\^)(\d+(?:\s*(?:,|and|&)\s*(?:\^|actions?\s+)?\d+)*)\](?!\(|:)/gi
/** The sources are listed here, by what was really done. */
const definition = /^\[\^a?\d+\]:.*(?:\n(?: {2,}|\t).*)*\n?/gm

const maxSources = 50
const maxLine = 300

/**
 * Checks the citations of a report against the actions there are: those of no action are removed and reported, the others get
 * their source as a footnote. A report that cites nothing names all it rests on.
 */
export const addSources = (report: string, state: Pick<RuntimeState, 'action_history'>): CitedReport => {
  const known = new Map(state.action_history.flatMap(listAnsweredCalls).map((one) => [one.action.id, one]))
  const cited = new Set<number>()
  const unknown = new Set<number>()
  const text = report
    .replace(definition, '')
    .replace(otherForms, (_, ids: string) => (ids.match(/\d+/g) ?? []).map((id) => `[^a${id}]`).join(''))
    .replace(citation, (whole, digits: string) => {
      const id = Number(digits)
      if (!known.has(id)) unknown.add(id)
      else cited.add(id)
      return known.has(id) ? whole.replace(digits, String(id)) : ''
    })
    .trim()
  const isBare = cited.size === 0
  if (isBare) for (const id of listRelevantActions(state)) cited.add(id)
  const ids = [...cited].sort((a, b) => a - b)
  const footnotes = ids.flatMap((id) => {
    const one = known.get(id)
    return one ? [`[^a${id}]: ${toSource(one)}`] : []
  })
  const marks = isBare && ids.length > 0 ? `Sources: ${ids.map((id) => `[^a${id}]`).join(' ')}` : ''
  const parts = [text, marks, footnotes.join('\n')].filter((part) => part !== '')
  return { text: parts.join('\n\n'), cited: ids, unknown: [...unknown].sort((a, b) => a - b) }
}

/** What the turn found without error, the most relevant where there is much. */
const listRelevantActions = ({ action_history }: Pick<RuntimeState, 'action_history'>): number[] =>
  listAnsweredCalls(action_history.at(-1) ?? [])
    .filter(({ action }) => action.result.is_error !== true)
    .toSorted((a, b) => b.action.relevance - a.action.relevance)
    .slice(0, maxSources)
    .map(({ action }) => action.id)

const toSource = ({ call, action }: AnsweredCall): string => {
  const args = cutText(JSON.stringify(call.args), maxLine / 2)
  return cutText(
    `action ${action.id}, ${call.tool} ${args}: ${action.summary}`.replaceAll(/\s+/g, ' '),
    maxLine,
  )
}
