import type { RunView } from '../../src/state/run-view.ts'
import type { RuntimeState } from '../../src/state/runtime-state.ts'
import { checkInvariants } from '../../test/support/invariants.ts'
import { remedies } from './failures.ts'
import type { ModelRequestRecord } from './responder.ts'

export type EndedRun = {
  view: RunView
  state: RuntimeState
  /** What the run asked of the model, in order. */
  asked: readonly ModelRequestRecord[]
  endedAtMs: number
}

/** Everything that does not hold of a run that met bad models; `mostMs`: from a request to its next one, or to its end. */
export const checkRun = (ended: EndedRun, mostMs: number): string[] =>
  [checkEnd(ended), checkUsage(ended), checkTime(ended, mostMs), checkState(ended)].flatMap(
    (failure) => failure ?? [],
  )

/**
 * Whether a run failed by the machine and not by the model: a clock ran out on a good reply, or a connection was lost
 * before the server saw the request. A busy machine does that; the campaign bounds how often.
 */
export const isUnlucky = ({ view: { error }, asked }: Pick<EndedRun, 'view' | 'asked'>): boolean => {
  const last = asked.at(-1)?.failure
  if (!error || error.code === last?.code) return false
  return error.code === 'model_timeout' || /could not be reached/.test(error.message)
}

const checkEnd = (ended: EndedRun): string | null => {
  const { view, asked } = ended
  const { status, error, answer } = view
  if (status === 'completed')
    return answer || view.finish_reason === 'time' ? null : 'completed without an answer'
  if (status !== 'failed' || !error) return `ended as ${status}`
  const last = asked.at(-1)?.failure
  if (error.code !== last?.code && !isUnlucky(ended))
    return `failed with ${error.code}, though the last reply was ${last?.name ?? 'good'}: ${error.message.slice(0, 200)}`
  const remedy = remedies[error.code as keyof typeof remedies]
  return remedy?.test(error.message) ? null : `failed without a remedy: ${error.message.slice(0, 300)}`
}

/** Each request counts at most once, with the last usage the server reported. */
const checkUsage = ({ view, asked }: EndedRun): string | null => {
  const reported = sumReportedTokens(asked)
  return view.usage.total_tokens <= reported
    ? null
    : `counts ${view.usage.total_tokens} tokens, the server reported ${reported}: ${asked.map(({ failure }) => failure?.name ?? 'good').join(', ')}`
}

export const sumReportedTokens = (requests: readonly ModelRequestRecord[]): number =>
  requests.reduce((sum, { request }) => sum + (request.reportedUsage?.total_tokens ?? 0), 0)

const checkTime = ({ asked, endedAtMs }: EndedRun, mostMs: number): string | null => {
  const longest = longestGap([...asked.map(({ request }) => request.atMs), endedAtMs])
  return longest > mostMs ? `hung for ${Math.round(longest)} ms, more than ${mostMs}` : null
}

export const longestGap = (times: readonly number[]): number =>
  Math.max(0, ...times.slice(1).map((at, n) => at - (times[n] ?? at)))

const checkState = ({ state }: EndedRun): string | null => {
  try {
    checkInvariants(state)
    return null
  } catch (error) {
    return `breaks an invariant: ${String(error).slice(0, 300)}`
  }
}
