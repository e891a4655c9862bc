import type { ProviderError } from '../transport/provider-errors.ts'

/** What a provider request shows about its key and its endpoint. `unknown`: nothing, so a probe has to be repeated. */
export type HealthVerdict = {
  key: 'good' | 'cool' | 'disable' | 'unknown'
  endpoint: 'good' | 'bad' | 'unknown'
}

/** Whether an error is that of the key or of the endpoint. Null: there was none. Refused requests and unreadable answers count as good. */
export const judgeRequest = (error: ProviderError | null): HealthVerdict => {
  if (error === null) return { key: 'good', endpoint: 'good' }
  switch (error.code) {
    case 'model_unauthorized':
      return { key: 'disable', endpoint: 'good' }
    case 'model_rate_limited':
      // a used-up quota does not return within seconds
      return { key: error.retry ? 'cool' : 'disable', endpoint: 'good' }
    case 'model_unavailable':
    case 'model_timeout':
      // no retry: our own deadline has passed, or the address is refused
      return { key: 'unknown', endpoint: error.retry ? 'bad' : 'unknown' }
    case 'model_bad_reply':
      return { key: 'unknown', endpoint: 'unknown' }
    case 'model_bad_request':
    case 'model_content_filtered':
    case 'model_context_too_long':
    case 'model_unreadable_answer':
      return { key: 'good', endpoint: 'good' }
    default:
      throw error.code satisfies never
  }
}
