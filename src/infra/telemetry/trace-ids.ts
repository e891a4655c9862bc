import { createHash } from 'node:crypto'

/** Where a span stands: 32 and 16 hexadecimal digits, as W3C writes them. */
export type Place = { traceId: string; spanId: string }

const ownId = /^run_([0-9a-f]{32})$/

/**
 * The root of a run's trace, from its id alone, so that every process finds it without being told: the id's own digits
 * are the trace, and the root's span is made of them.
 */
export const rootOfRun = (runId: string): Place => {
  const digest = createHash('sha256').update(runId).digest('hex')
  return { traceId: ownId.exec(runId)?.[1] ?? digest.slice(32), spanId: digest.slice(0, 16) }
}

const header = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** What a `traceparent` header says (W3C Trace Context); null where it is none. Later versions may go on after the flags. */
export const readTraceparent = (text: string | undefined): (Place & { sampled: boolean }) | null => {
  const [, version, traceId, spanId, flags, more] = header.exec(text ?? '') ?? []
  if (!traceId || !spanId || !flags || version === 'ff' || (version === '00' && more)) return null
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}
