import {
  A2AError,
  RequestMalformedError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from '@a2a-js/sdk/errors'
import { isMasonError, type MasonError } from '../../../state/errors.ts'
import type { FieldError } from '../../../state/resource-schema.ts'

/** A bad request, in the protocol's own error (-32602, or 400). */
export const malformed = (message: string): RequestMalformedError => new RequestMalformedError(message)

/** What the SDK failed at with an error of its program: the request, or, once the handler has answered, our response. */
export const reportError = (
  call: { isAnswered?: boolean; onMistyped(error: unknown): void; onError(error: unknown): void },
  error: unknown,
): RequestMalformedError => {
  if (call.isAnswered) call.onError(error)
  else call.onMistyped(error)
  return malformed(
    "the request has a member of another type than the protocol gives it; check the message against the protocol's schema",
  )
}

const listFields = ({ message, remedy, detail }: MasonError): string => {
  const { errors = [] } = (detail ?? {}) as { errors?: FieldError[] }
  if (errors[0]?.pointer === '/cursor') return 'pageToken must be the nextPageToken of an earlier response'
  const fields = errors.slice(0, 5).map(({ pointer, detail }) => `${pointer.slice(1) || 'it'}: ${detail}`)
  return [fields.length > 0 ? fields.join('; ') : message, remedy].filter(Boolean).join('; ')
}

/**
 * The protocol's error for one of the runtime, or null where HTTP has the better answer: quotas, budgets, a database that is
 * away, and what is our own error, whose message is never sent.
 */
export const toA2AError = (error: unknown): Error | null => {
  if (error instanceof A2AError || (error instanceof Error && 'envelopeCode' in error)) return error
  if (isMasonError(error, 'not_found')) return new TaskNotFoundError(error.message)
  if (isMasonError(error, 'invalid_request')) return malformed(listFields(error))
  if (isMasonError(error, 'input_answered', 'run_ended', 'session_of_another_user'))
    return new UnsupportedOperationError(error.message)
  return null
}
