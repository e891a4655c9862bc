import type { MeteredUsage } from './model-ports.ts'

/** Thrown by readers. `place`: the first difference, as a JSON pointer into the raw answer or the name of a path. */
export class UnreadableResponseError extends Error {
  readonly place: string
  /** The vendor's usage, where it could be read. */
  usage: MeteredUsage | null = null
  constructor(place: string, message: string) {
    super(message)
    this.name = 'UnreadableResponseError'
    this.place = place
  }
}

/** An answer of more than its readers take. The message follows "the model server sent". */
export class ReplyLimitError extends UnreadableResponseError {
  constructor(message: string) {
    super('', message)
    this.name = 'ReplyLimitError'
  }
}

/** An error that the vendor sent with a 2xx status: `error` is its text or object. */
export class VendorReportedError extends UnreadableResponseError {
  readonly error: unknown
  constructor(place: string, message: string, error: unknown) {
    super(place, message)
    this.name = 'VendorReportedError'
    this.error = error
  }
}

/** The error of a reply whose finish reason says failed; `error` is what the vendor says of it, where it does. */
export const createFailedFinishError = (
  reason: string | null,
  error: unknown = null,
): VendorReportedError => {
  const message = `the vendor ended its response with ${reason ?? 'an error'}`
  return new VendorReportedError('finish', message, error ?? { message, code: reason })
}
