import type { Fault } from '../wire/faults.ts'

/**
 * What a provider request told of the key and the endpoint it went to. `unknown`: nothing, so that a probe of it
 * has to be made again.
 */
export type Verdict = {
  key: 'good' | 'cool' | 'disable' | 'unknown'
  endpoint: 'good' | 'bad' | 'unknown'
}

/** Who is to blame for a fault. Null: there was none. A refused request and an unreadable answer blame nobody. */
export const verdictOf = (fault: Fault | null): Verdict => {
  if (fault === null) return { key: 'good', endpoint: 'good' }
  switch (fault.code) {
    case 'model_unauthorized':
      return { key: 'disable', endpoint: 'good' }
    case 'model_rate_limited':
      // a quota that is used up does not come back within seconds
      return { key: fault.retry ? 'cool' : 'disable', endpoint: 'good' }
    case 'model_unavailable':
    case 'model_timeout':
      // not retried: our own deadline ran out, or we may not go there
      return { key: 'unknown', endpoint: fault.retry ? 'bad' : 'unknown' }
    case 'model_bad_reply':
      return { key: 'unknown', endpoint: 'unknown' }
    case 'model_bad_request':
    case 'model_content_filtered':
    case 'model_context_too_long':
    case 'model_unreadable_answer':
      return { key: 'good', endpoint: 'good' }
    default:
      throw fault.code satisfies never
  }
}
