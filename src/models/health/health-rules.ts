import type { FailureSource, HealthStatus } from '../ports/call-ports.ts'

/**
 * Whom a failure closes a subject for. What a request holds may cause its failure, so one prompt closes nothing for others:
 * two prompts of one business close it for that business, those of two businesses for all. docs/decisions/0136.
 */

/** A failure: whose, and with which model. `model` null: it shows the same for all models. */
export type SeenFailure = {
  business: string
  run: string | null
  prompt: string
  model: string | null
  /** How often this source failed there. */
  failures: number
  /** By the monotonic clock. */
  atMs: number
}

/** A subject that is not healthy. `seen`: the latest failures, which say whom it is closed for unless it is for all. */
export type HealthEntry = {
  state: HealthStatus['state']
  failures: number
  dueAtMs: number
  forAll: boolean
  seen: readonly SeenFailure[]
}

/** A failure to add. `evidence` null: no content causes it, so it counts for all. */
export type NewFailure = {
  kind: 'cool' | 'disable'
  evidence: SeenFailure | null
  /** It closes the subject for its own prompt too. */
  isStrong: boolean
  isProbe: boolean
  retryAfterMs?: number | undefined
  /** The longest wait that the vendor did not ask for. */
  maxMs: number
}

/** Two models within this time show that it is the endpoint or the key. */
const sameTimeMs = 10_000
const maxAgeMs = 600_000
const maxSeen = 8

type Identity = Pick<SeenFailure, 'business' | 'run' | 'prompt'>
const isSame = (a: Identity, b: Identity): boolean =>
  a.business === b.business && ((a.run !== null && a.run === b.run) || a.prompt === b.prompt)

const toIdentity = ({ business, run, prompt }: FailureSource): Identity => ({
  business,
  run,
  prompt: prompt(),
})

/** The evidence of a failure now. */
export const toEvidence = (source: FailureSource, model: string | null, atMs: number): SeenFailure => ({
  ...toIdentity(source),
  model,
  failures: 1,
  atMs,
})

const isClosedForIdentity = ({ forAll, seen }: HealthEntry, identity: Identity): boolean => {
  if (forAll) return true
  const own = seen.filter(({ business }) => business === identity.business)
  return own.some((one) => isSame(one, identity) || (own[0] !== undefined && !isSame(one, own[0])))
}

/** Whether a subject is closed for a source. */
export const isClosedFor = (entry: HealthEntry, source: FailureSource): boolean =>
  entry.forAll ||
  (entry.seen.some(({ business }) => business === source.business) &&
    isClosedForIdentity(entry, toIdentity(source)))

/** How much later than others a source may probe: those that have not failed there come first. */
export const countOwnFailures = ({ seen }: HealthEntry, source: FailureSource): number => {
  if (seen.length < 2) return 0
  const identity = toIdentity(source)
  return seen.find((one) => isSame(one, identity))?.failures ?? 0
}

/** Adds a failure to a list, once for each source and model. */
export const addEvidence = (known: readonly SeenFailure[], latest: SeenFailure): SeenFailure[] => {
  const same = known.find((one) => isSame(one, latest) && one.model === latest.model)
  const others = known.filter((one) => one !== same)
  return [...others, { ...latest, failures: latest.failures + (same?.failures ?? 0) }].slice(-maxSeen)
}

/** Whom the failures close a subject for. Null: no one, they are of one model only. */
const judgeEvidence = (
  known: readonly SeenFailure[],
  latest: SeenFailure,
): 'all' | 'business' | 'prompt' | null => {
  const maxMs = latest.model === null ? maxAgeMs : sameTimeMs
  const recent = known.filter(({ atMs }) => latest.atMs - atMs <= maxMs)
  if (latest.model !== null && recent.every(({ model }) => model === latest.model)) return null
  if (recent.some(({ business }) => business !== latest.business)) return 'all'
  return recent.some((one) => !isSame(one, latest)) ? 'business' : 'prompt'
}

/**
 * The subject after a failure; null: no change. `suspects`: failures that closed nothing yet; those before `goodAtMs`, the
 * last success, do not count. Many calls fail together: the first closes the subject, later ones count only for more
 * callers, for a longer wait that the vendor asks for, and for a refusal of the key.
 */
export const addFailure = (
  before: HealthEntry | undefined,
  { kind, evidence, isStrong, isProbe, retryAfterMs, maxMs }: NewFailure,
  { suspects, goodAtMs, nowMs }: { suspects: readonly SeenFailure[]; goodAtMs: number; nowMs: number },
  toWaitMs: (state: 'cooling' | 'disabled', failures: number) => number,
): HealthEntry | null => {
  const known = [...(before?.seen ?? []), ...suspects].filter(({ atMs }) => atMs > goodAtMs)
  const reach = evidence === null ? 'all' : judgeEvidence(known, evidence)
  const wasProbe = isProbe && before !== undefined
  const isWider = reach === 'all' && before?.forAll !== true
  const wasClosed =
    before !== undefined && (evidence === null ? before.forAll : isClosedForIdentity(before, evidence))
  const state = kind === 'cool' ? 'cooling' : 'disabled'
  if (!wasProbe && !isWider) {
    const isMore = before?.state === 'cooling' && (retryAfterMs !== undefined || state === 'disabled')
    if (wasClosed ? !isMore : reach === null || (reach === 'prompt' && !isStrong)) return null
  }
  const failures = before === undefined || isWider ? 1 : before.failures + (wasProbe ? 1 : 0)
  const forMs = retryAfterMs ?? Math.min(maxMs, toWaitMs(state, failures))
  const leftMs = before === undefined || wasProbe || isWider ? 0 : before.dueAtMs - nowMs
  const seen = suspects.reduce(addEvidence, [...(before?.seen ?? [])])
  return {
    state: before?.state === 'disabled' && !wasProbe ? 'disabled' : state,
    failures,
    dueAtMs: nowMs + Math.max(forMs, leftMs),
    forAll: before?.forAll === true || reach === 'all',
    seen: evidence === null ? seen : addEvidence(seen, evidence),
  }
}
