import { z } from 'zod'
import { MasonError } from '../state/errors.ts'
import { provenanceOrigins } from '../state/provenance.ts'

/** What parts ask their visits for. They may be JavaScript, which no compiler has checked. */

const [text, ms] = [z.string(), z.number().positive()]
/** A field that is called. */
export const isFunction = z.custom<unknown>((value) => typeof value === 'function', 'must be a function')

const result = { text, is_error: z.boolean(), found: z.number(), provenance: z.enum(provenanceOrigins) }
const effect = z.looseObject({ request: text, send: isFunction })
const wait = z.looseObject({
  kind: z.enum(['payment', 'run', 'job']),
  refId: text,
  expiresInMs: ms.optional(),
})
const requests = {
  checkpoint: z.looseObject({ summary: text, result: z.looseObject(result).partial().optional() }),
  ask: z.looseObject({
    question: text,
    schema: z.looseObject({}),
    options: z.array(text),
    expires_in_ms: ms,
  }),
  effect: z.discriminatedUnion('class', [
    effect.extend({ class: z.literal('keyed'), windowMs: ms }),
    effect.extend({ class: z.literal('queryable'), lookup: isFunction }),
    effect.extend({ class: z.literal('manual') }),
  ]),
  wait: wait
    .refine(({ kind, poll }) => kind === 'job' || !poll, 'only a job is polled: leave out poll')
    .refine((one) => !one.neverExpires || !one.expiresInMs, 'it never expires: leave out expiresInMs'),
}

/** What is wrong with the fields of a value, each by its path; '': nothing. */
export const describeIssues = (schema: z.ZodType, value: unknown): string => {
  const error = (issue: { input?: unknown }) => (issue.input === undefined ? 'is missing' : undefined)
  const lines = schema
    .safeParse(value, { error })
    .error?.issues.map((issue) => [z.core.toDotPath(issue.path), issue.message].filter(Boolean).join(': '))
  return lines?.join('; ') ?? ''
}

/** Throws where the fields of a request are missing or wrong. */
export const checkRequest = (kind: keyof typeof requests, value: unknown): void => {
  const error = describeIssues(requests[kind], value)
  if (error) throw new MasonError('node_failed', `${kind}() was called with wrong fields: ${error}`)
}
