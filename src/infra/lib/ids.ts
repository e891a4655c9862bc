import { hash, randomBytes, randomUUID } from 'node:crypto'

/** An id that sorts by creation time (the layout of UUID v7, RFC 9562, without dashes). The random part is of a UUID v4. */
export const createTimeOrderedId = (): string => {
  const random = randomUUID()
  const time = Date.now().toString(16).padStart(12, '0')
  return `${time}7${random.slice(15, 18)}${random.slice(19, 23)}${random.slice(24)}`
}

/** A new run id, sorted by time. */
export const newRunId = (): string => `run_${createTimeOrderedId()}`
/** A new session id, sorted by time. */
export const newSessionId = (): string => `ses_${createTimeOrderedId()}`
/** A new id of an uploaded file, sorted by time. */
export const newFileId = (): string => `file_${createTimeOrderedId()}`
/** A new id of a question to a person, sorted by time. */
export const newInputRequestId = (): string => `inp_${createTimeOrderedId()}`
/** A new id of a row of the log of changes, sorted by time. */
export const newAuditId = (): string => `aud_${createTimeOrderedId()}`
/** A new id of a list of runs to act on, sorted by time. */
export const newBulkJobId = (): string => `bulk_${createTimeOrderedId()}`
/** A new id of a database. */
export const newDatabaseId = (): string => `db_${createTimeOrderedId()}`
/** A new id of a worker, with its process id. */
export const newWorkerId = (): string => `worker_${process.pid}_${randomBytes(4).toString('hex')}`
/** A new id of an attempt to append an action, sorted by time. */
export const newAttemptId = (): string => createTimeOrderedId()

/** The SHA-256 hash in hexadecimal. */
export const sha256 = (data: string | Uint8Array): string => hash('sha256', data)
