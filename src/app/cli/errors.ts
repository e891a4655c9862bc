import { ClientError } from '../../client/client-error.ts'
import { type Environment, readSettingErrors } from '../../infra/config/config.ts'
import { isMasonError, MasonError } from '../../state/errors.ts'
import { withCommandName } from './command-name.ts'

/** The exit codes of every command. CONTRACT section 1. */
export const exitCodes = { done: 0, failed: 1, usage: 2, inputRequired: 3, cancelled: 130 } as const

/** Wrong usage of a command, with exit code 2. */
export class UsageError extends Error {
  readonly remedy: string | undefined

  constructor(message: string, remedy?: string) {
    super(message)
    this.name = 'UsageError'
    this.remedy = remedy
  }
}

/** 2 for wrong usage or settings, else 1. */
export const toExitCode = (error: unknown): number =>
  error instanceof UsageError || isMasonError(error, 'invalid_settings', 'invalid_request')
    ? exitCodes.usage
    : exitCodes.failed

const listFieldErrors = ({ message, detail }: MasonError): string[] => {
  const { errors } = (detail ?? {}) as { errors?: { pointer?: string; detail?: string }[] }
  if (!Array.isArray(errors)) return []
  // the message may have all of it
  const own = errors.filter(({ detail }) => detail !== undefined && !message.includes(detail))
  return own.map((field) => `  ${field.pointer || '/'}  ${field.detail}`)
}

const listSettingErrors = (errors: ReturnType<typeof readSettingErrors>): string[] => [
  `mason: ${errors.length === 1 ? 'one setting is wrong' : `${errors.length} settings are wrong`}`,
  ...errors.flatMap(({ setting, problem, remedy }) => [
    `  ${setting} ${problem}`,
    `    -> ${withCommandName(remedy)}`,
  ]),
]

/** What the log of the server names the request by. */
const listRequestIds = (error: unknown): string[] =>
  error instanceof ClientError && error.code === 'internal' && error.problem?.request_id
    ? [`  request id: ${error.problem.request_id}`]
    : []

/** An error and its remedy as lines for people. The stack is included at LOG_LEVEL debug and trace only. */
export const formatCliError = (error: unknown, env: Environment): string => {
  const remedy = error instanceof UsageError || error instanceof MasonError ? error.remedy : undefined
  const settingErrors = error instanceof MasonError ? readSettingErrors(error) : []
  const lines =
    settingErrors.length > 0
      ? listSettingErrors(settingErrors)
      : [
          `mason: ${error instanceof Error ? error.message || error.name : String(error)}`,
          ...(error instanceof MasonError ? listFieldErrors(error) : []),
          ...listRequestIds(error),
          ...(remedy ? [`  -> ${withCommandName(remedy)}`] : []),
        ]
  if (env.LOG_LEVEL === 'debug' || env.LOG_LEVEL === 'trace') lines.push(formatStack(error))
  return lines.join('\n')
}

const formatStack = (error: unknown): string => {
  if (!(error instanceof Error)) return ''
  const cause =
    error.cause === undefined ? '' : `\ncaused by ${formatStack(error.cause) || String(error.cause)}`
  return `${error.stack ?? error.message}${cause}`
}
