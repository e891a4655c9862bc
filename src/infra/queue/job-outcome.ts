import type { FieldError } from '../../state/resource-schema.ts'

/**
 * What became of a job of the public queue: the run that it is, with its status then, or the errors for which it was refused.
 *
 * @example
 * ```ts
 * import type { JobOutcome } from 'mason-runtime/queue'
 *
 * const describe = (outcome: JobOutcome): string =>
 *   'errors' in outcome ? outcome.errors.map(({ pointer, detail }) => `${pointer} ${detail}`).join('; ') : outcome.run_id
 * ```
 */
export type JobOutcome = { run_id: string; status: string } | { errors: FieldError[] }
