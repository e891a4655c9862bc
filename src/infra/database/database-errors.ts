import { isMasonError, MasonError } from '../../state/errors.ts'
import { stripCredentials } from '../lib/strip-credentials.ts'

/** The code by which Postgres refuses a statement that waits for one which waits for it. */
export const deadlockDetected = '40P01'

const hasCode =
  (code: string) =>
  (error: unknown): boolean =>
    (error as { code?: unknown } | null)?.code === code

/** Whether a statement would have added a second row of a unique key. */
export const isUniqueViolation = hasCode('23505')
/** Whether a statement waited for a lock for longer than its `lock_timeout`. */
export const isLockTimeout = hasCode('55P03')
/** Whether a statement would have broken a CHECK. */
export const isCheckViolation = hasCode('23514')
/** Whether a server refused values as such: too long for an index, out of range, or with characters that it cannot store. */
export const isValueRefused = (error: unknown): boolean =>
  /^(22|54)/.test(String((error as { code?: unknown } | null)?.code))
/** Whether a statement took longer than it may, as a caller sees it. */
export const isStatementTimeout = (error: unknown): boolean =>
  isMasonError(error, 'database_unavailable') && hasCode('57014')(error.cause)
const isDiskFull = hasCode('53100')

/** Transient errors: the server was unreachable or full, or cancelled this statement for the sake of others. */
const transientCodes = new Set(
  [
    'ECONNREFUSED ECONNRESET EPIPE ETIMEDOUT ENOTFOUND EAI_AGAIN EHOSTUNREACH ENETUNREACH',
    // admin_shutdown, crash_shutdown, cannot_connect_now, idle_session_timeout
    '57P01 57P02 57P03 57P05',
    // read_only_sql_transaction: this server was the primary until a moment ago
    '25006',
    // query_canceled (statement_timeout), idle transaction ended
    '57014 25P03',
    // disk_full, out_of_memory, too_many_connections
    '53100 53200 53300',
    // serialization_failure
    `40001 ${deadlockDetected}`,
  ].flatMap((codes) => codes.split(' ')),
)

const isTransient = (error: unknown): boolean => {
  if (!(error instanceof Error)) return false
  const { code } = error as { code?: unknown }
  // class 08 is connection_exception (08P01: a pooler reports so that its server is gone)
  if (typeof code === 'string') return transientCodes.has(code) || code.startsWith('08')
  // pg gives these errors no code
  return /^(Connection terminated|timeout exceeded when trying to connect|timeout expired|Client has encountered a connection error|Client was closed|Query read timeout)/.test(
    error.message,
  )
}

/** A driver's error for callers: a transient one becomes `database_unavailable`, after which the statement may or may not be done. */
export const toDatabaseError = (error: unknown): unknown => {
  if (!isTransient(error)) return error
  const [message, remedy] = isDiskFull(error)
    ? ['the disk of the database is full', 'free disk space; accepted runs then continue by themselves']
    : ['the database could not be reached', 'try again, or run `mason doctor` to find the cause']
  return new MasonError('database_unavailable', message, { remedy, cause: error })
}

const toConnectRemedies = (setting: string): Readonly<Record<string, string>> => ({
  '28P01': `correct the user or the password in ${setting}`,
  '28000': `correct the user in ${setting}, or allow it in the server's pg_hba.conf`,
  '3D000': `create the database, or correct its name in ${setting}`,
  ECONNREFUSED: `start PostgreSQL there, or correct the host and port in ${setting}`,
  ENOTFOUND: `correct the host in ${setting}`,
})

/** What is wrong, and what to do, where the server of a setting cannot be connected to. */
export const describeUnreachable = (
  url: string,
  error: unknown,
  setting = 'DATABASE_URL',
): { problem: string; remedy: string } => {
  const { code, message } = error as { code?: string; message: string }
  return {
    problem: `PostgreSQL at ${stripCredentials(url)} cannot be used: ${message || code}`,
    remedy:
      toConnectRemedies(setting)[code ?? ''] ??
      `correct ${setting}, or make the server reachable from this machine`,
  }
}

/** The result of a driver, with its error for callers: see `toDatabaseError`. */
export const translateErrors = <T>(result: Promise<T>): Promise<T> =>
  result.catch((error: unknown) => {
    throw toDatabaseError(error)
  })

/** Whether a statement failed with a transient error: it may or may not be done. */
export const isDatabaseUnavailable = (error: unknown): error is MasonError =>
  isMasonError(error, 'database_unavailable')
