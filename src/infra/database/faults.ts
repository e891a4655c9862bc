import { isMasonError, MasonError } from '../../state/errors.ts'

/** Faults that pass by themselves: the server was out of reach, full, or broke off this statement to save others. */
const passing = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  // connection_exception and its kind (08P01: a pooler between tells so that its server went), admin_shutdown,
  // crash_shutdown, cannot_connect_now, idle_session_timeout
  '08000',
  '08001',
  '08003',
  '08004',
  '08006',
  '08007',
  '08P01',
  '57P01',
  '57P02',
  '57P03',
  '57P05',
  // read_only_sql_transaction: this server was the primary until a moment ago
  '25006',
  // query_canceled (statement_timeout), idle transaction ended
  '57014',
  '25P03',
  // disk_full, out_of_memory, too_many_connections
  '53100',
  '53200',
  '53300',
  // serialization_failure, deadlock_detected
  '40001',
  '40P01',
])

const isPassing = (error: unknown): boolean => {
  if (!(error instanceof Error)) return false
  const { code } = error as { code?: unknown }
  if (typeof code === 'string') return passing.has(code)
  // pg gives these no code of their own
  return /^(Connection terminated|timeout exceeded when trying to connect|timeout expired|Client has encountered a connection error|Client was closed|Query read timeout)/.test(
    error.message,
  )
}

/** A fault of the driver as it goes on: `database_unavailable` when the statement may or may not have been done. */
export const databaseFault = (error: unknown): unknown => {
  if (!isPassing(error)) return error
  const [message, remedy] = isFull(error)
    ? ['the disk of the database is full', 'free space on it; what was accepted goes on by itself then']
    : ['the database could not be reached', 'try again; `mason doctor` says what is wrong with it']
  return new MasonError('database_unavailable', message, { remedy, cause: error })
}

const isFull = (error: unknown): boolean => (error as { code?: unknown }).code === '53100'

/** Whether a statement failed in a way that passes: it may or may not have been done. */
export const isUnavailable = (error: unknown): error is MasonError =>
  isMasonError(error, 'database_unavailable')
