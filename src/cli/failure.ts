import { type Environment, faultsOf } from '../infra/config.ts'
import { isMasonError, MasonError } from '../state/errors.ts'

/** CONTRACT section 1. */
export const exitCodes = { done: 0, failed: 1, usage: 2, inputRequired: 3, cancelled: 130 } as const

/** What a person did in a way that can't be gone on from; exit code 2. */
export class UsageError extends Error {
  readonly remedy: string | undefined

  constructor(message: string, remedy?: string) {
    super(message)
    this.name = 'UsageError'
    this.remedy = remedy
  }
}

export const exitCodeOf = (error: unknown): number =>
  error instanceof UsageError || isMasonError(error, 'invalid_settings') ? exitCodes.usage : exitCodes.failed

const requestFaults = (error: MasonError): string[] => {
  const { errors } = (error.detail ?? {}) as { errors?: { pointer?: string; detail?: string }[] }
  return Array.isArray(errors) ? errors.map(({ pointer, detail }) => `  ${pointer || '/'}  ${detail}`) : []
}

/** What went wrong and what to do, as lines for people; the stack only for those who debug. */
export const describeFailure = (error: unknown, env: Environment): string => {
  const known = error instanceof UsageError || error instanceof MasonError ? error : null
  const faults = error instanceof MasonError ? faultsOf(error) : []
  const lines =
    faults.length > 0
      ? [
          `mason: ${faults.length === 1 ? 'one setting is wrong' : `${faults.length} settings are wrong`}`,
          ...faults.flatMap(({ setting, problem, remedy }) => [
            `  ${setting} ${problem}`,
            `    -> ${remedy}`,
          ]),
        ]
      : [
          `mason: ${error instanceof Error ? error.message || error.name : String(error)}`,
          ...(error instanceof MasonError ? requestFaults(error) : []),
          ...(known?.remedy ? [`  -> ${known.remedy}`] : []),
        ]
  if (env.LOG_LEVEL === 'debug' || env.LOG_LEVEL === 'trace') lines.push(stackOf(error))
  return lines.join('\n')
}

const stackOf = (error: unknown): string => {
  if (!(error instanceof Error)) return ''
  const cause = error.cause === undefined ? '' : `\ncaused by ${stackOf(error.cause) || String(error.cause)}`
  return `${error.stack ?? error.message}${cause}`
}
